//! Errors of a lake, each with its hint. The hints are here and not in the command line, because
//! what helps depends on what the object store returned ([`of_store`]).

use std::error::Error;
use std::io::{self, ErrorKind};

use parquet::errors::ParquetError;

/// What went wrong with a lake.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// The place cannot be one.
    #[error("`{url}` is no place for a lake: {reason}")]
    Url {
        /// URL or path that was given.
        url: String,
        /// What is wrong with it.
        reason: String,
        /// What to give instead.
        hint: String,
    },
    /// The store refused, or did not answer.
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
    /// What the store has is not what was sent.
    #[error("`{object}` has {found} bytes in the store, not the {sent} that were sent")]
    Cut {
        /// Name of the object.
        object: String,
        /// Bytes that were sent.
        sent: u64,
        /// Bytes that the store reports.
        found: u64,
    },
    /// An object cannot be understood.
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
    /// The operating system refused an operation on a local file.
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
    /// A name that cannot be part of an object's.
    #[error("`{name}` cannot be the name of a {of}")]
    Name {
        /// What the name is for: `host`, `cluster`, `label`, `recording`.
        of: &'static str,
        /// Name that was given.
        name: String,
    },
    /// A file of many is never changed.
    #[error("recording {recording} is in a compacted file, and cannot be replaced there")]
    Merged {
        /// Id of the recording.
        recording: String,
    },
    /// What is readable there would stay so.
    #[error("recording {recording} is in the lake, of host `{host}`, with its texts {}", hidden(*.is_hidden))]
    Otherwise {
        /// Id of the recording.
        recording: String,
        /// Host that it is in the lake under.
        host: String,
        /// Whether its texts are hidden there, in another way than in this push.
        is_hidden: bool,
    },
    /// Somebody else is at it.
    #[error("another one compacts or expires this lake since {since}: `{object}`")]
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
        "hidden in another way"
    } else {
        "readable"
    }
}

impl LakeError {
    /// Whether there is no room left.
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

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            LakeError::Url { hint, .. } => hint.clone(),
            LakeError::Store { what, source, .. } => of_store(what, source).into(),
            LakeError::Cut { .. } => "push the recording again with --replace: it is sent anew".into(),
            LakeError::Name { of: "host", .. } => {
                "letters, digits, `.`, `_` and `-` only: name it with --host".into()
            }
            LakeError::Name {
                of: "recording", ..
            } => "26 capital letters and digits, as in the column `recording` of answers".into(),
            LakeError::Name { .. } => "letters, digits, `.`, `_` and `-` only".into(),
            LakeError::Merged { .. } => {
                "what it came to when it was pushed stays until its day expires".into()
            }
            LakeError::Otherwise { .. } => {
                "--replace under the same --host deletes what is there first; a compacted one stays until its day expires, and another lake is free of both".into()
            }
            LakeError::Busy { .. } => {
                "wait for it; if it was killed, its lock counts no more after an hour".into()
            }
            LakeError::Damaged { object, .. } if object.contains("/@") => {
                "it stands for many recordings, whose own files may be gone: bring it back from a copy, or expire its day".into()
            }
            LakeError::Damaged { .. } => {
                "push the recording again with --replace, or remove the object".into()
            }
            _ => return None,
        })
    }
}

/// By what the store, or the file system, said.
fn of_store(what: &str, source: &object_store::Error) -> &'static str {
    use object_store::Error as Store;
    match source {
        Store::NotFound { .. } if what == "read" => {
            "it was deleted, or never came: push the recording again with --replace"
        }
        Store::NotFound { .. } if what == "list" || what == "look at" => {
            "check the bucket and the path; a lake is made by the first push"
        }
        Store::NotFound { .. } => "check the bucket; the same command sends again what was lost",
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. }
            if !is_io(source, ErrorKind::PermissionDenied) =>
        {
            "credentials come from the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …) or from the machine's role"
        }
        _ if is_io(source, ErrorKind::PermissionDenied) => "whoever runs it may not do that there",
        _ if is_io(source, ErrorKind::StorageFull) => {
            "there is no room left: make some (`fleet expire`), then the same command goes on"
        }
        _ if is_io(source, ErrorKind::ConnectionRefused) => {
            "nothing answers there: check the address (AWS_ENDPOINT_URL, …)"
        }
        _ => "try again: the same command goes on where this one ended",
    }
}

/// Whether the system said so, however deep that is.
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
