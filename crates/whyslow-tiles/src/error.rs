use std::path::PathBuf;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why tiles could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TilesError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tables(#[from] AnalysisError),
    #[error("failed to {action} `{}`", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("`{}` is damaged: {what} at byte {offset}: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        what: &'static str,
        offset: u64,
        reason: String,
    },
    #[error("`{}` is no finished build: {reason}", path.display())]
    Unfinished { path: PathBuf, reason: String },
    #[error("there is no track `{name}`; there are {known}")]
    NoTrack { name: String, known: String },
    #[error("there is no level {level}; there are 0 to {max}")]
    NoLevel { level: u8, max: u8 },
    #[error("there is no heat map of `{kind}`; there are block and io")]
    NoHeat { kind: String },
    #[error("nowhere to keep what charts need: {reason}")]
    NoPlace { reason: String },
    #[error("given up as asked")]
    Cancelled,
}

impl TilesError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: std::io::Error,
    ) -> Self {
        TilesError::Io {
            action,
            path: path.into(),
            source,
        }
    }
}
