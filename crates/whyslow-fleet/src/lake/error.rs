//! Errors of a lake, each with its hint. The hints are here rather than in the command line because
//! the remedy depends on what the object store returned ([`of_store`]).

use std::error::Error;
use std::io::{self, ErrorKind};

use parquet::errors::ParquetError;

/// Why an operation on a lake failed.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// The URL or path cannot be a lake.
    #[error("`{url}` is not a valid lake: {reason}")]
    Url {
        /// URL or path that was given.
        url: String,
        /// What is wrong with it.
        reason: String,
        /// What to use instead.
        hint: String,
    },
    /// The store rejected the request, or did not reply.
    #[error("failed to {what} `{object}`")]
    Store {
        /// Verb that completes "failed to …" before the object: `read`, `write`, `list`.
        what: &'static str,
        /// Name of the object below the root of the lake.
        object: String,
        /// Error of the store.
        #[source]
        source: object_store::Error,
    },
    /// The stored object is not what was sent.
    #[error("`{object}` is incomplete: {found} of {sent} bytes were stored")]
    Cut {
        /// Name of the object.
        object: String,
        /// Bytes that were sent.
        sent: u64,
        /// Bytes that the store reports.
        found: u64,
    },
    /// An object cannot be decoded.
    #[error("`{object}` is damaged: {reason}")]
    Damaged {
        /// Name of the object.
        object: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// Rows could not be encoded as Parquet.
    #[error("failed to write rows of `{table}`")]
    Encode {
        /// Name of the table.
        table: String,
        /// Error of the Parquet library.
        #[source]
        source: ParquetError,
    },
    /// The operating system rejected an operation on a local file.
    #[error("failed to {what} `{path}`")]
    Io {
        /// Verb that completes "failed to …" before the path.
        what: &'static str,
        /// The file, or the URL of the lake.
        path: String,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The recording could not be read or packed.
    #[error(transparent)]
    Recording(#[from] whyslow_store::StoreError),
    /// The recording could not be summarised.
    #[error(transparent)]
    Summary(#[from] crate::summary::SummaryError),
    /// A name that cannot be part of an object name.
    #[error("`{name}` is not a valid {of} name")]
    Name {
        /// What the name is for: `host`, `cluster`, `label`, `recording`.
        of: &'static str,
        /// Name that was given.
        name: String,
    },
    /// Compacted files are never modified.
    #[error("cannot replace recording {recording}: it is in a compacted file")]
    Merged {
        /// Id of the recording.
        recording: String,
    },
    /// Its unredacted texts would stay readable in the lake.
    #[error("recording {recording} is already in the lake under host `{host}`, with its texts {}", hidden(*.is_hidden))]
    Otherwise {
        /// Id of the recording.
        recording: String,
        /// Host that it has in the lake.
        host: String,
        /// Whether its texts in the lake are redacted, but differently from this push.
        is_hidden: bool,
    },
    /// Another compaction or expiry holds the lock.
    #[error("another `compact` or `expire` has locked this lake since {since}: `{object}`")]
    Busy {
        /// When the lock was taken.
        since: String,
        /// Name of the lock object.
        object: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

fn hidden(is_hidden: bool) -> &'static str {
    if is_hidden {
        "redacted differently"
    } else {
        "not redacted"
    }
}

impl LakeError {
    /// Whether the storage is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Store { source, .. } if is_io(source, ErrorKind::StorageFull))
    }

    pub(crate) fn store(
        what: &'static str,
        object: impl Into<String>,
    ) -> impl FnOnce(object_store::Error) -> Self {
        let object = object.into();
        move |source| Self::Store {
            what,
            object,
            source,
        }
    }

    /// Command or advice that resolves the error.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            LakeError::Url { hint, .. } => hint.clone(),
            LakeError::Store { what, source, .. } => of_store(what, source).into(),
            LakeError::Cut { .. } => "push the recording again with --replace".into(),
            LakeError::Name { of: "host", .. } => {
                "use letters, digits, `.`, `_` and `-` only: --host NAME".into()
            }
            LakeError::Name {
                of: "recording", ..
            } => "use 26 capital letters and digits, as in column `recording` of query results".into(),
            LakeError::Name { .. } => "use letters, digits, `.`, `_` and `-` only".into(),
            LakeError::Merged { .. } => {
                "leave it: its summary stays in the lake until its day expires".into()
            }
            LakeError::Otherwise { .. } => {
                "push with --replace and the same --host to delete the other version first; if it was compacted, use another lake".into()
            }
            LakeError::Busy { .. } => {
                "wait until it ends; if it was killed, its lock expires after an hour".into()
            }
            LakeError::Damaged { object, .. } if object.contains("/@") => {
                "restore it from a backup, or expire its day: it covers many recordings whose own files may have been deleted".into()
            }
            LakeError::Damaged { .. } => {
                "push the recording again with --replace, or delete the object".into()
            }
            _ => return None,
        })
    }
}

/// The hint for an error of the store or the file system.
fn of_store(what: &str, source: &object_store::Error) -> &'static str {
    use object_store::Error as Store;
    match source {
        Store::NotFound { .. } if what == "read" => {
            "push the recording again with --replace: the object was deleted or never stored"
        }
        Store::NotFound { .. } if what == "list" || what == "stat" => {
            "check the bucket and the path; the first push creates the lake"
        }
        Store::NotFound { .. } => {
            "check the bucket, then run the same command again: it sends what is missing"
        }
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. }
            if !is_io(source, ErrorKind::PermissionDenied) =>
        {
            "set credentials in the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …) or give the machine a role"
        }
        _ if is_io(source, ErrorKind::PermissionDenied) => "check the permissions of the directory",
        _ if is_io(source, ErrorKind::StorageFull) => {
            "free space (`whyslow fleet expire`), then run the same command again: it sends what is missing"
        }
        _ if is_io(source, ErrorKind::ConnectionRefused) => {
            "check the address (AWS_ENDPOINT_URL, …): the connection was refused"
        }
        _ => "run the same command again: it sends what is missing",
    }
}

/// Whether an I/O error of this kind is in the chain of sources.
fn is_io(error: &(dyn Error + 'static), kind: ErrorKind) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == kind)
        {
            return true;
        }
        next = error.source();
    }
    false
}
