//! What makes a trace unreadable as a whole.

use std::io;
use std::path::{Path, PathBuf};

use super::metadata::MetadataError;
use super::plan::PlanError;
use crate::archive::ArchiveError;

#[derive(Debug, thiserror::Error)]
pub enum CtfError {
    #[error("failed to open `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("failed to read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("no trace in `{}`: no file called `metadata` in it", path.display())]
    NoTrace { path: PathBuf },
    #[error("more than {limit} files in `{}`", path.display())]
    TooManyFiles { path: PathBuf, limit: usize },
    #[error("`{}`", path.display())]
    Metadata {
        path: PathBuf,
        source: MetadataError,
    },
    #[error("`{}` declares packets that cannot be decoded", path.display())]
    Packets { path: PathBuf, source: PlanError },
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
