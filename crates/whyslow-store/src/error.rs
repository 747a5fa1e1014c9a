use std::path::PathBuf;

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("failed to {action} `{}`", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("`{}` exists already", path.display())]
    Exists { path: PathBuf },
    #[error("`{}` is not a recording: {reason}", path.display())]
    NotARecording { path: PathBuf, reason: String },
    #[error("`{}` has format version {found}; this program reads {supported} and later", path.display())]
    TooOld {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    #[error("`{}` has format version {found}; this program reads up to {supported}", path.display())]
    TooNew {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    #[error("table `{table}` in `{}` is damaged: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        table: String,
        reason: String,
    },
    #[error("`{}` is no packed recording that can be read: byte {offset} unpacked: {reason}", path.display())]
    Packed {
        path: PathBuf,
        /// Byte of what is unpacked.
        offset: u64,
        reason: String,
    },
    #[error("`{}` unpacks to {bytes} bytes; there is room for {bytes_max}", path.display())]
    TooLarge {
        path: PathBuf,
        bytes: u64,
        bytes_max: u64,
    },
    #[error("failed to write")]
    Write { source: std::io::Error },
    #[error("table `{table}` has no column `{column}`")]
    NoColumn { table: String, column: String },
    /// Whoever asked does not want the answer any more, or it would cost more than is allowed.
    #[error("the question was stopped")]
    Stopped,
}

impl StoreError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: std::io::Error,
    ) -> Self {
        StoreError::Io {
            action,
            path: path.into(),
            source,
        }
    }
}
