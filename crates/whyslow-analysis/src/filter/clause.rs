//! Conditions on one column, and the rows that fulfil them.
//!
//! A condition on a text is judged once per word of the dictionary of a batch.

use arrow_array::{Array, RecordBatch};

use super::keep::keep;
use crate::AnalysisError;
use crate::scan::{ColumnRef, Ints, PerWord, Texts};

/// Per-thread cache: the verdict on each word of a dictionary.
pub(crate) struct Verdicts(Vec<PerWord<Verdict>>);

impl Verdicts {
    /// For this number of dictionaries.
    pub(super) fn new(dictionaries: usize) -> Self {
        Self(vec![PerWord::new(); dictionaries])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    No,
    Yes,
}

pub(super) enum Clause {
    Text {
        column: ColumnRef,
        slot: usize,
        holds: TextTest,
    },
    Number(ColumnRef, Vec<i64>),
}

pub(super) type TextTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

impl Clause {
    /// The data that decides whether each of these rows passes.
    pub(super) fn judge<'j>(
        &'j self,
        verdicts: &'j mut Verdicts,
        batch: &'j RecordBatch,
        rows: &[u32],
    ) -> Result<Judged<'j>, AnalysisError> {
        match self {
            Clause::Text {
                column,
                slot,
                holds,
            } => {
                let texts = column.texts(batch)?;
                if texts.are_null() {
                    return Ok(Judged::No);
                }
                let verdicts = verdicts.0[*slot].of(&texts, Verdict::Open);
                let mut judge = |key: usize| {
                    if verdicts[key] == Verdict::Open {
                        let yes = holds(texts.words.value(key));
                        verdicts[key] = if yes { Verdict::Yes } else { Verdict::No };
                    }
                };
                // Judging all words at once is cheaper than checking for each row whether its word
                // was judged, unless there are fewer rows than words.
                if rows.len() >= texts.words.len() {
                    (0..texts.words.len()).for_each(judge);
                } else {
                    rows.iter()
                        .filter_map(|row| texts.key(*row))
                        .for_each(&mut judge);
                }
                Ok(Judged::Text(texts, verdicts))
            }
            Clause::Number(column, wanted) => Ok(Judged::Number(column.ints(batch)?, wanted)),
        }
    }
}

/// A clause bound to some rows of a batch.
pub(super) enum Judged<'j> {
    No,
    Text(Texts<'j>, &'j [Verdict]),
    Number(Ints<'j>, &'j [i64]),
}

impl Judged<'_> {
    pub(super) fn keep(&self, rows: &mut Vec<u32>) {
        match self {
            Judged::No => rows.clear(),
            Judged::Text(texts, verdicts) => keep(rows, |row| is_yes(texts, verdicts, row)),
            Judged::Number(column, wanted) => keep(rows, |row| is_among(column, wanted, row)),
        }
    }

    pub(super) fn mark(&self, rows: &[u32], passed: &mut [bool]) {
        let rows = rows.iter().zip(passed);
        match self {
            Judged::No => {}
            Judged::Text(texts, verdicts) => {
                rows.for_each(|(row, passed)| *passed |= is_yes(texts, verdicts, *row));
            }
            Judged::Number(column, wanted) => {
                rows.for_each(|(row, passed)| *passed |= is_among(column, wanted, *row));
            }
        }
    }
}

#[inline]
fn is_yes(texts: &Texts<'_>, verdicts: &[Verdict], row: u32) -> bool {
    texts
        .key(row)
        .is_some_and(|key| verdicts[key] == Verdict::Yes)
}

#[inline]
fn is_among(column: &Ints<'_>, wanted: &[i64], row: u32) -> bool {
    column.get(row).is_some_and(|value| wanted.contains(&value))
}
