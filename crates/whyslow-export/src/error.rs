//! Errors of exports.

use std::io;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A query of the recording failed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The recording cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output file or pipe cannot be written.
    #[error("cannot write the output")]
    Write(#[from] io::Error),
    /// A value that JSON cannot represent, or a failed write.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}
