//! Errors of reading and writing recordings: a variant for each rule, with path and numbers.
//!
//! What is missing from a recording is no error of this crate: losses are rows of its tables.

use std::path::PathBuf;

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused an operation on a file or directory.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// Verb phrase that completes "failed to …" before the path: `open`, `create`.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The target of a new recording exists, and [`Existing::Refuse`](crate::Existing) was given.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// A directory without a usable manifest, or with a link, FIFO or device in place of one of its
    /// files.
    #[error("`{}` is not a recording: {reason}", path.display())]
    NotARecording {
        /// Directory that was opened as a recording.
        path: PathBuf,
        /// What is missing or wrong, with the name of the file.
        reason: String,
    },
    /// Written in a format version that lacks what queries need; the source has to be imported
    /// again.
    #[error("`{}` has format version {found}; this program reads {supported} and later", path.display())]
    TooOld {
        /// The recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// Oldest version that this program reads.
        supported: u32,
    },
    /// Written by a later program in a format version that this one could misread.
    #[error("`{}` has format version {found}; this program reads up to {supported}", path.display())]
    TooNew {
        /// The recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// Latest version that this program reads, [`FORMAT_VERSION`](crate::FORMAT_VERSION).
        supported: u32,
    },
    /// A table file differs from what was written (checksums, size, row count), or its content is
    /// not what the declaration of the table allows.
    #[error("table `{table}` in `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The table file.
        path: PathBuf,
        /// Name of its table.
        table: String,
        /// The rule that it breaks, with byte offset or row count where there is one.
        reason: String,
    },
    /// A packed recording with an entry that does not belong there, or cut or damaged.
    #[error("`{}` is no packed recording that can be read: byte {offset} unpacked: {reason}", path.display())]
    Packed {
        /// The packed file, as [`unpack`](crate::packed::unpack) was given its name.
        path: PathBuf,
        /// Byte of what is unpacked.
        offset: u64,
        /// The rule that it breaks.
        reason: String,
    },
    /// A packed recording would unpack to more than
    /// [`Unpacking::bytes_max`](crate::packed::Unpacking::bytes_max); nothing was unpacked.
    #[error("`{}` unpacks to {bytes} bytes; there is room for {bytes_max}", path.display())]
    TooLarge {
        /// The packed file.
        path: PathBuf,
        /// Bytes of all its table files.
        bytes: u64,
        /// Bytes that may be unpacked.
        bytes_max: u64,
    },
    /// The output of [`pack`](crate::packed::pack) could not be written.
    #[error("failed to write")]
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
