//! Errors of building and reading tiles. Tiles are a cache: [`Place::open`](crate::Place::open)
//! returns `None` for a damaged set, and the caller builds it again.

use std::path::PathBuf;

use whyslow_analysis::AnalysisError;
use whyslow_store::StoreError;

/// Why tiles could not be built or read.
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
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// Verb phrase that completes "cannot …" before the path.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A corrupt tile file: a checksum, a size or an offset is wrong.
    #[error("`{}` is damaged: {what} at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The tile file.
        path: PathBuf,
        /// Part of the file that was read.
        what: &'static str,
        /// Offset of that part in the file.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory without a complete set of tiles: the build was interrupted.
    #[error("`{}` is not a complete build: {reason}", path.display())]
    Unfinished {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// An unknown track.
    #[error("unknown track `{name}` (tracks: {known})")]
    NoTrack {
        /// The given name.
        name: String,
        /// Names of all tracks, comma-separated.
        known: String,
    },
    /// A level coarser than the coarsest one.
    #[error("level {level} is out of range (0 to {max})")]
    NoLevel {
        /// The given level.
        level: u8,
        /// Coarsest level, [`LEVEL_MAX`](crate::LEVEL_MAX).
        max: u8,
    },
    /// A kind that has no heat map.
    #[error("no heat map for `{kind}` (heat maps: block, io)")]
    NoHeat {
        /// The given kind.
        kind: String,
    },
    /// Neither the recording nor the cache folder is writable.
    #[error("cannot store chart tiles: {reason}")]
    NoPlace {
        /// Reason, with the path.
        reason: String,
    },
    /// The `cancel` flag was set; the unfinished build is removed.
    #[error("cancelled")]
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
