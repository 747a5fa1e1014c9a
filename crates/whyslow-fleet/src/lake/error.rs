use parquet::errors::ParquetError;

/// What went wrong with a lake.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// The place cannot be one.
    #[error("`{url}` is no place for a lake: {reason}")]
    Url {
        url: String,
        reason: String,
        hint: String,
    },
    /// The store refused, or did not answer.
    #[error("failed to {what} `{object}`")]
    Store {
        what: &'static str,
        object: String,
        #[source]
        source: object_store::Error,
    },
    /// What the store has is not what was sent.
    #[error("`{object}` has {found} bytes in the store, not the {sent} that were sent")]
    Cut {
        object: String,
        sent: u64,
        found: u64,
    },
    /// An object cannot be understood.
    #[error("`{object}` is damaged: {reason}")]
    Damaged { object: String, reason: String },
    #[error("failed to write rows of `{table}`")]
    Encode {
        table: String,
        #[source]
        source: ParquetError,
    },
    #[error("failed to {what} `{path}`")]
    Io {
        what: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Recording(#[from] whyslow_store::StoreError),
    #[error(transparent)]
    Summary(#[from] crate::summary::SummaryError),
    /// A name that cannot be part of an object's.
    #[error("`{name}` cannot be the name of a {of}")]
    Name { of: &'static str, name: String },
    /// A file of many is never changed.
    #[error("recording {recording} is in a compacted file, and cannot be replaced there")]
    Merged { recording: String },
    /// Somebody else is at it.
    #[error("another one compacts or expires this lake since {since}: `{object}`")]
    Busy { since: String, object: String },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl LakeError {
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
            LakeError::Store { source, .. } => match source {
                object_store::Error::NotFound { .. } => {
                    "check the bucket and the path; a lake is made by the first push".into()
                }
                object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. } => {
                    "credentials come from the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …) or from the machine's role".into()
                }
                _ => "what was sent stays: the same command goes on where this one ended".into(),
            },
            LakeError::Cut { .. } => "push again: it is sent anew".into(),
            LakeError::Name { of: "host", .. } => {
                "letters, digits, `.`, `_` and `-` only: name it with --host".into()
            }
            LakeError::Name { .. } => "letters, digits, `.`, `_` and `-` only".into(),
            LakeError::Merged { .. } => {
                "what it came to when it was pushed stays until its day expires".into()
            }
            LakeError::Busy { .. } => {
                "wait for it; if it was killed, its lock counts no more after an hour".into()
            }
            LakeError::Damaged { .. } => {
                "push the recording again with --replace, or remove the object".into()
            }
            _ => return None,
        })
    }
}
