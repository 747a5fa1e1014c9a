//! The tests that a row of the answer passes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use rustc_hash::FxHashSet;
use whyslow_model::{Ns, Window};

use super::clause::{Clause, Verdicts};
use super::keep::keep;
use super::waits::{Kept, WaitTest};
use crate::AnalysisError;
use crate::lost_ends::LostEnds;
use crate::scan::ColumnRef;
use crate::stack_choice::StackChoice;

pub(super) enum Test {
    /// Any clause holds.
    AnyOf(Vec<Clause>),
    /// The clause does not hold; null passes.
    Not(Clause),
    /// The value is one of these; null does not pass.
    OneOf(ColumnRef, FxHashSet<i64>),
    /// The value is not one of these; null passes.
    NoneOf(ColumnRef, FxHashSet<i64>),
    /// The stack is one of the selected ones.
    Stack(ColumnRef, Arc<StackChoice>),
    /// The column has a value above zero.
    Positive(ColumnRef),
    Size {
        column: ColumnRef,
        exact: Option<i64>,
        min: i64,
        max: i64,
    },
    /// It ended in the window.
    EndedIn { column: ColumnRef, window: Window },
    /// It is a wait for work, or it is none.
    Waits { of: Box<WaitTest>, kept: Kept },
    /// The column has a value.
    Known(ColumnRef),
    /// The column has no value.
    Unknown(ColumnRef),
    /// A part of the duration, which must be known.
    Stage { column: ColumnRef, min: Ns, max: Ns },
    Length {
        columns: [ColumnRef; 3],
        /// An end without a duration does not show how long it was, and an end may have been lost.
        is_paired: bool,
        min: Ns,
        max: Ns,
        ends: Arc<LostEnds>,
    },
}

impl Test {
    /// Removes the rows that do not pass.
    pub(super) fn retain(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        match self {
            Test::AnyOf(clauses) => match clauses.as_slice() {
                [clause] => clause.judge(verdicts, batch, rows)?.keep(rows),
                clauses => {
                    let mut passed = vec![false; rows.len()];
                    for clause in clauses {
                        clause.judge(verdicts, batch, rows)?.mark(rows, &mut passed);
                    }
                    let mut passed = passed.into_iter();
                    keep(rows, |_| passed.next() == Some(true));
                }
            },
            Test::Not(clause) => {
                let mut holds = vec![false; rows.len()];
                clause.judge(verdicts, batch, rows)?.mark(rows, &mut holds);
                let mut holds = holds.into_iter();
                keep(rows, |_| holds.next() == Some(false));
            }
            Test::OneOf(column, ids) => {
                let column = column.ints(batch)?;
                keep(rows, |row| {
                    column.get(row).is_some_and(|id| ids.contains(&id))
                });
            }
            Test::NoneOf(column, ids) => {
                let column = column.ints(batch)?;
                keep(rows, |row| {
                    column.get(row).is_none_or(|id| !ids.contains(&id))
                });
            }
            Test::Stack(column, choice) => {
                let column = column.ints(batch)?;
                keep(rows, |row| choice.takes(column.get(row)));
            }
            Test::Positive(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.or_zero(row) > 0);
            }
            Test::Size {
                column,
                exact,
                min,
                max,
            } => {
                let column = column.ints(batch)?;
                keep(rows, |row| match column.get(row) {
                    None => exact.is_none(),
                    Some(size) => {
                        *min <= size && size <= *max && exact.is_none_or(|exact| exact == size)
                    }
                });
            }
            Test::EndedIn { column, window } => {
                let ts_end = column.ints(batch)?;
                keep(rows, |row| {
                    let ts_end = ts_end.get(row);
                    ts_end.is_some_and(|ts_end| window.contains(ts_end))
                });
            }
            Test::Waits { of, kept } => {
                let mut waits = of.judge(verdicts, batch, rows)?.into_iter();
                keep(rows, |_| waits.next() == Some(*kept == Kept::Waits));
            }
            Test::Known(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.get(row).is_some());
            }
            Test::Unknown(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.get(row).is_none());
            }
            Test::Stage { column, min, max } => {
                let stage = column.ints(batch)?;
                keep(rows, |row| {
                    let stage = stage.get(row);
                    stage.is_some_and(|stage| *min <= stage && stage <= *max)
                });
            }
            Test::Length {
                columns: [ts, dur, ts_end],
                is_paired,
                min,
                max,
                ends,
            } => {
                let (ts, dur) = (ts.ints(batch)?, dur.ints(batch)?);
                let ts_end = ts_end.ints(batch)?;
                keep(rows, |row| {
                    if let Some(dur) = dur.get(row) {
                        return *min <= dur && dur <= *max;
                    }
                    let known = match ts_end.get(row) {
                        Some(_) if *is_paired => 0,
                        Some(end) => end - ts.at(row),
                        None if *is_paired => ends.known_until(ts.at(row)) - ts.at(row),
                        None => ends.recording_end() - ts.at(row),
                    };
                    *max == Ns::MAX && *min <= known
                });
            }
        }
        Ok(())
    }
}
