//! Reads the rows of a table in order of time.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_store::Tables;

use crate::TilesError;

/// Progress and cancellation of a build.
pub(crate) struct Work<'w> {
    pub(crate) tables: &'w dyn Tables,
    pub(crate) cancel: &'w AtomicBool,
    progress: &'w dyn Fn(f64),
    rows: Cell<u64>,
    rows_total: u64,
}

impl<'w> Work<'w> {
    pub(crate) fn new(
        tables: &'w dyn Tables,
        progress: &'w dyn Fn(f64),
        cancel: &'w AtomicBool,
        read: &[&str],
    ) -> Self {
        let known = &tables.info().tables;
        let rows = read.iter().filter_map(|name| known.get(*name));
        let rows_total: u64 = rows.map(|table| table.rows).sum();
        Self {
            tables,
            cancel,
            progress,
            rows: Cell::new(0),
            rows_total: rows_total.max(1),
        }
    }

    /// Work that reports no progress.
    pub(crate) fn silent(tables: &'w dyn Tables, cancel: &'w AtomicBool) -> Self {
        Self::new(tables, &|_| (), cancel, &[])
    }

    /// Whether the table has rows.
    pub(crate) fn has(&self, table: &str) -> bool {
        let table = self.tables.info().tables.get(table);
        table.is_some_and(|table| table.rows > 0)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Calls `each` with every batch; returns [`TilesError::Cancelled`] if cancelled.
    pub(crate) fn each(
        &self,
        projection: &Projection,
        mut each: impl FnMut(&RecordBatch) -> Result<(), TilesError>,
    ) -> Result<(), TilesError> {
        let mut failure = None;
        in_order(self.tables, &projection.scan(None), |batch| {
            let done = if self.is_cancelled() {
                Err(TilesError::Cancelled)
            } else {
                each(batch)
            };
            self.add_progress(batch.num_rows());
            Ok::<_, AnalysisError>(match done {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            })
        })?;
        failure.map_or(Ok(()), Err)
    }

    pub(crate) fn add_progress(&self, rows: usize) {
        self.rows.set(self.rows.get() + rows as u64);
        (self.progress)((self.rows.get() as f64 / self.rows_total as f64).min(0.99));
    }
}
