//! Errors of writing a recording in the format of another tool.

use std::io;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why a recording could not be handed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A query over the recording failed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The recording could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file or pipe that it is written to.
    #[error("failed to write")]
    Write(#[from] io::Error),
    /// A value that JSON cannot hold, or a failed write of it.
    #[error("failed to write JSON")]
    Json(#[from] serde_json::Error),
}
