//! Errors of building and reading tiles. Tiles are a cache: callers that open them through
//! [`Place`](crate::Place) get none instead of a damaged set, and build them again.

use std::path::PathBuf;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why tiles could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TilesError {
    /// The recording could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A query over the recording failed.
    #[error(transparent)]
    Tables(#[from] AnalysisError),
    /// The operating system refused an operation on a file or directory of the tiles.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// Verb phrase that completes "failed to …" before the path.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A tile file that is not as it was written: a checksum, a size or an offset is wrong.
    #[error("`{}` is damaged: {what} at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The tile file.
        path: PathBuf,
        /// Part of the file that was read.
        what: &'static str,
        /// Where that part begins in the file.
        offset: u64,
        /// The rule that it breaks.
        reason: String,
    },
    /// A directory without a complete set of tiles: the build was interrupted.
    #[error("`{}` is no finished build: {reason}", path.display())]
    Unfinished {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A track that the recording does not have.
    #[error("there is no track `{name}`; there are {known}")]
    NoTrack {
        /// Name that was given.
        name: String,
        /// Names of the tracks that there are, comma-separated.
        known: String,
    },
    /// A level coarser than the coarsest one.
    #[error("there is no level {level}; there are 0 to {max}")]
    NoLevel {
        /// Level that was given.
        level: u8,
        /// Coarsest level, [`LEVEL_MAX`](crate::LEVEL_MAX).
        max: u8,
    },
    /// A kind that has no heat map.
    #[error("there is no heat map of `{kind}`; there are block and io")]
    NoHeat {
        /// Kind that was given.
        kind: String,
    },
    /// Neither the recording nor the cache folder can hold tiles.
    #[error("nowhere to keep what charts need: {reason}")]
    NoPlace {
        /// Why not, with the path.
        reason: String,
    },
    /// The `cancel` flag was set; what was begun is removed.
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
