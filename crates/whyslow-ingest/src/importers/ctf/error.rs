//! Errors that make a whole trace unreadable.

use std::io;
use std::path::{Path, PathBuf};

use super::metadata::MetadataError;
use super::plan::PlanError;
use crate::archive::ArchiveError;

/// Reason why a trace cannot be read at all; damage inside a stream is counted instead.
#[derive(Debug, thiserror::Error)]
pub enum CtfError {
    /// A file or directory cannot be opened.
    #[error("failed to open `{}`", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// No directory below the path has a `metadata` file.
    #[error("no trace in `{}`: no file called `metadata` in it", path.display())]
    NoTrace {
        /// The path.
        path: PathBuf,
    },
    /// A directory with more files than a trace has.
    #[error("more than {limit} files in `{}`", path.display())]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// Maximum number of files.
        limit: usize,
    },
    /// The metadata cannot be used.
    #[error("`{}`", path.display())]
    Metadata {
        /// The metadata file.
        path: PathBuf,
        /// Reason.
        source: MetadataError,
    },
    /// The packets declared in the metadata cannot be decoded.
    #[error("`{}` declares packets that cannot be decoded", path.display())]
    Packets {
        /// The metadata file.
        path: PathBuf,
        /// Reason.
        source: PlanError,
    },
    /// The archive could not be unpacked.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl CtfError {
    pub(super) fn open(path: &Path, source: io::Error) -> CtfError {
        CtfError::Open {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn read(path: &Path, source: io::Error) -> CtfError {
        CtfError::Read {
            path: path.to_owned(),
            source,
        }
    }
}
