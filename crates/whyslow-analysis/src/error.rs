//! Errors of queries: mistakes of the user (`Query`, with a hint) and errors of the recording.

use whyslow_store::StoreError;

/// Why a query failed. `Query` is a mistake in the query, `Store` an error of the recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The recording could not be read, or the scan was stopped.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Message, and a hint.
    #[error("{message}")]
    Query {
        /// Sentence without a full stop.
        message: String,
        /// What to do instead; `None` if nothing helps.
        hint: Option<String>,
    },
    /// A column does not have the type that the format specifies.
    #[error("column `{column}` of table `{table}` has type {found}, not {expected}")]
    ColumnType {
        /// Name of the table.
        table: &'static str,
        /// Name of the column.
        column: &'static str,
        /// Arrow type in the file.
        found: String,
        /// Arrow types that the declaration allows.
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
