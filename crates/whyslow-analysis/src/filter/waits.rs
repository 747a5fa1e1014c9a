//! Tests for waits for work.
//!
//! A call is one by its name, or if it reads an object that others fill; see
//! [`whyslow_model::syscall::waits`]. A sleep is one if the thread is an idle kernel thread, or is
//! in such a call.

use std::sync::Arc;

use arrow_array::RecordBatch;
use whyslow_model::syscall::waits::{is_filled_by_others, is_filled_device, is_read, is_wait};

use super::{Builder, Clause, Selector, Test, Verdicts};
use crate::AnalysisError;
use crate::idle_sleeps::{IdleSleeps, SLEEPS};
use crate::scan::{ColumnRef, Projection};
use crate::waits::Kept;

pub(super) enum WaitTest {
    Calls(Calls),
    States(States),
}

pub(super) struct Calls {
    waits: Clause,
    reads: Clause,
    is_filled: Clause,
    is_device: Clause,
    is_filled_device: Clause,
}

pub(super) struct States {
    sleeps: Clause,
    ts: ColumnRef,
    utid: ColumnRef,
    idle: Arc<IdleSleeps>,
}

impl Selector {
    /// Keeps only system calls that wait for work, or only others. The named calls count as others:
    /// they were selected by name.
    pub(crate) fn only_waits_of_calls(
        &mut self,
        named: Vec<String>,
        kept: Kept,
        projection: &mut Projection,
    ) {
        let also_named = named.clone();
        self.add_wait_test(kept, projection, |builder| {
            let waits = move |name: &str| is_wait(name) && !has(&named, name);
            let reads = move |name: &str| is_read(name) && !has(&also_named, name);
            WaitTest::Calls(Calls {
                waits: builder.text("name", Box::new(waits)),
                reads: builder.text("name", Box::new(reads)),
                is_filled: builder.text("fd_class", Box::new(is_filled_by_others)),
                is_device: builder.text("fd_class", Box::new(|class: &str| class == "dev")),
                is_filled_device: builder.text("path", Box::new(is_filled_device)),
            })
        });
    }

    /// Keeps only states in which the thread waits for work, or only others.
    pub(crate) fn only_idle_sleeps(
        &mut self,
        idle: Arc<IdleSleeps>,
        kept: Kept,
        projection: &mut Projection,
    ) {
        self.add_wait_test(kept, projection, |builder| {
            WaitTest::States(States {
                sleeps: builder.text("state", Box::new(|state: &str| SLEEPS.contains(&state))),
                ts: builder.projection.need("ts"),
                utid: builder.projection.need("utid"),
                idle,
            })
        });
    }

    fn add_wait_test(
        &mut self,
        kept: Kept,
        projection: &mut Projection,
        make: impl FnOnce(&mut Builder<'_>) -> WaitTest,
    ) {
        let mut builder = Builder {
            projection,
            tests: Vec::new(),
            words: self.words,
        };
        let of = make(&mut builder);
        self.words = builder.words;
        self.tests.push(Test::Waits { of, kept });
    }
}

fn has(named: &[String], name: &str) -> bool {
    named.iter().any(|named| named == name)
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
