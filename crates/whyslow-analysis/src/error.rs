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
    /// A table whose columns are not of the types the format promises.
    #[error("column `{column}` of table `{table}` has type {found}, not {expected}")]
    ColumnType {
        table: &'static str,
        column: &'static str,
        found: String,
        expected: &'static str,
    },
}

impl AnalysisError {
    pub(crate) fn query(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Query {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}
