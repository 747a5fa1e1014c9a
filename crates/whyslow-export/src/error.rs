use std::io;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why a recording could not be handed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file or pipe that it is written to.
    #[error("failed to write")]
    Write(#[from] io::Error),
    #[error("failed to write JSON")]
    Json(#[from] serde_json::Error),
}
