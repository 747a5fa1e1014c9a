//! Tests for waits for work.
//!
//! A call is one by its name, or if it reads an object that others fill; see
//! [`whyslow_model::syscall::waits`]. A sleep is one if the thread is an idle kernel thread, or is
//! in such a call.

use std::sync::Arc;

use arrow_array::RecordBatch;

use super::clause::{Clause, Verdicts};
use crate::AnalysisError;
use crate::idle_sleeps::IdleSleeps;
use crate::scan::ColumnRef;

/// Which rows a pass keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Waits for work.
    Waits,
    /// All others.
    Others,
}

pub(super) enum WaitTest {
    Calls(Calls),
    States(States),
}

pub(super) struct Calls {
    pub(super) waits: Clause,
    pub(super) reads: Clause,
    pub(super) is_filled: Clause,
    pub(super) is_device: Clause,
    pub(super) is_filled_device: Clause,
}

pub(super) struct States {
    pub(super) sleeps: Clause,
    pub(super) ts: ColumnRef,
    pub(super) utid: ColumnRef,
    pub(super) idle: Arc<IdleSleeps>,
}

impl WaitTest {
    /// Whether each of these rows is a wait for work.
    pub(super) fn judge(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &[u32],
    ) -> Result<Vec<bool>, AnalysisError> {
        match self {
            WaitTest::Calls(calls) => calls.judge(verdicts, batch, rows),
            WaitTest::States(states) => states.judge(verdicts, batch, rows),
        }
    }
}

impl Calls {
    fn judge(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &[u32],
    ) -> Result<Vec<bool>, AnalysisError> {
        let mut waits = marked(&self.waits, verdicts, batch, rows)?;
        let reads = marked(&self.reads, verdicts, batch, rows)?;
        if !reads.contains(&true) {
            return Ok(waits);
        }
        let is_filled = marked(&self.is_filled, verdicts, batch, rows)?;
        let is_device = marked(&self.is_device, verdicts, batch, rows)?;
        let devices = if is_device.contains(&true) {
            marked(&self.is_filled_device, verdicts, batch, rows)?
        } else {
            Vec::new()
        };
        for (place, wait) in waits.iter_mut().enumerate() {
            let has_filled_device = is_device[place] && devices[place];
            *wait |= reads[place] && (is_filled[place] || has_filled_device);
        }
        Ok(waits)
    }
}

impl States {
    fn judge(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &[u32],
    ) -> Result<Vec<bool>, AnalysisError> {
        let mut sleeps = marked(&self.sleeps, verdicts, batch, rows)?;
        let (ts, utid) = (self.ts.ints(batch)?, self.utid.ints(batch)?);
        for (row, sleeps) in rows.iter().zip(&mut sleeps) {
            if *sleeps {
                let utid = utid.get(*row);
                *sleeps = utid.is_some_and(|utid| self.idle.holds(utid, ts.at(*row)));
            }
        }
        Ok(sleeps)
    }
}

fn marked(
    clause: &Clause,
    verdicts: &mut Verdicts,
    batch: &RecordBatch,
    rows: &[u32],
) -> Result<Vec<bool>, AnalysisError> {
    let mut passed = vec![false; rows.len()];
    clause.judge(verdicts, batch, rows)?.mark(rows, &mut passed);
    Ok(passed)
}
