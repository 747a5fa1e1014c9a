//! Which rows failed, for kinds where a text column shows it.

use arrow_array::RecordBatch;

use crate::AnalysisError;
use crate::scan::{ColumnRef, Projection, Texts, per_word};
use crate::spec::Failure;

/// The column of a kind's [`Failure`] in a projection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failures {
    column: ColumnRef,
    is_failure: fn(&str) -> bool,
}

impl Failures {
    pub(crate) fn new(failure: Failure, projection: &mut Projection) -> Self {
        Self {
            column: projection.need(failure.column),
            is_failure: failure.is_failure,
        }
    }

    pub(crate) fn of<'b>(&self, batch: &'b RecordBatch) -> Result<Failed<'b>, AnalysisError> {
        let words = self.column.texts(batch)?;
        let is_failure = per_word(&words, self.is_failure);
        Ok(Failed { words, is_failure })
    }
}

/// The failed rows of a batch.
pub(crate) struct Failed<'b> {
    words: Texts<'b>,
    /// By word: each is tested once.
    is_failure: Vec<bool>,
}

impl Failed<'_> {
    #[inline]
    pub(crate) fn has(&self, row: u32) -> bool {
        self.words
            .key(row)
            .is_some_and(|word| self.is_failure[word])
    }
}
