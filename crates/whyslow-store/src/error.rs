//! Errors of reading and writing recordings: a variant per rule, with path and numbers.
//!
//! Missing data in a recording is not an error of this crate: losses are rows of its tables.

use std::path::PathBuf;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused an operation on a file or directory.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// Verb phrase that completes "cannot …" before the path: `open`, `create`.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The target of a new recording exists, and [`Existing::Refuse`](crate::Existing) was
    /// specified.
    #[error("`{}` already exists", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// A directory without a usable manifest, or with a link, FIFO or device in place of a file.
    #[error("`{}` is not a recording: {reason}", path.display())]
    NotARecording {
        /// Directory that was opened as a recording.
        path: PathBuf,
        /// What is missing or wrong, with the name of the file.
        reason: String,
    },
    /// The format version lacks data that queries need; the source has to be imported again.
    #[error("`{}` has format version {found}; this program reads {supported} and later", path.display())]
    TooOld {
        /// The recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// Oldest version that this program reads.
        supported: u32,
    },
    /// The format version is newer than this program, which could misread it.
    #[error("`{}` has format version {found}; this program reads up to {supported}", path.display())]
    TooNew {
        /// The recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// Latest version that this program reads, [`FORMAT_VERSION`](crate::FORMAT_VERSION).
        supported: u32,
    },
    /// A table file differs from its checksums, size or row count, or its content violates the
    /// declaration of the table.
    #[error("table `{table}` in `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The table file.
        path: PathBuf,
        /// Name of its table.
        table: String,
        /// The violated rule, with byte offset or row count if there is one.
        reason: String,
    },
    /// A packed recording with an unexpected entry, or truncated or damaged.
    #[error("cannot unpack `{}`: {reason} (at byte {offset} of the archive)", path.display())]
    Packed {
        /// The packed file, by the name passed to [`unpack`](crate::packed::unpack).
        path: PathBuf,
        /// Offset in the unpacked archive.
        offset: u64,
        /// The violated rule.
        reason: String,
    },
    /// A packed recording would unpack to more than
    /// [`Unpacking::bytes_max`](crate::packed::Unpacking::bytes_max); nothing was unpacked.
    #[error("cannot unpack `{}`: it needs {bytes} bytes, the limit is {bytes_max}", path.display())]
    TooLarge {
        /// The packed file.
        path: PathBuf,
        /// Total size of its table files.
        bytes: u64,
        /// Maximum size to unpack.
        bytes_max: u64,
    },
    /// The output of [`pack`](crate::packed::pack) cannot be written.
    #[error("cannot write the output")]
    Write {
        /// Error of the output.
        source: std::io::Error,
    },
    /// A scan names a column that its table does not declare.
    #[error("table `{table}` has no column `{column}`")]
    NoColumn {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// The caller no longer needs the answer, or it exceeded a limit.
    #[error("the query was stopped")]
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
