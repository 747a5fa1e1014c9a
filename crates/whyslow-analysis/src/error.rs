use whyslow_store::StoreError;

/// Why a question has no answer. `Query` is the asker's to mend, `Store` the recording's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Message, and what to try.
    #[error("{message}")]
    Query {
        message: String,
        hint: Option<String>,
    },
}
