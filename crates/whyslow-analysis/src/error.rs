//! Errors of queries: what the user can mend (`Query`, with a hint) apart from what is wrong with
//! the recording.

use whyslow_store::StoreError;

/// Why a question has no answer. `Query` is the asker's to mend, `Store` the recording's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The recording could not be read, or the scan was stopped.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Message, and what to try.
    #[error("{message}")]
    Query {
        /// Whole sentence without a full stop.
        message: String,
        /// What to query instead; `None` if nothing helps.
        hint: Option<String>,
    },
    /// A table whose columns are not of the types the format promises.
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
