//! The rows of one table on their way to disk: from the order in which they became known to key
//! order.
//!
//! Goal: files sorted by (`ts`, id), with bounded memory, although an interval is known only when
//! it ends. Sorting everything at the end would need all rows twice on disk; waiting for the
//! longest interval would need them all in memory, since some thread always sleeps. So a table
//! buffers a limited number of rows; when the buffer is full, the older half is written. A row
//! whose position has already been written is *late*: these few are sorted in runs and become the
//! `_long` file.

use std::sync::Arc;

use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Row, Symbols, Table};

use crate::buffered::BufferedRows;
use crate::cells::{Cells, Extent};
use crate::checksums::ByFile;
use crate::limits::{self, Limits};
use crate::series::{Series, WrittenFile};
use crate::spill::{PutNext, Spill};
use crate::staging::Staging;
use crate::{StoreError, TableInfo};

type Key = (Ns, i64);

/// Shared state for writing.
pub(crate) struct Context<'c> {
    pub(crate) staging: &'c Staging,
    pub(crate) symbols: &'c Symbols,
}

pub(crate) struct TableWriter<R: Row> {
    buffered: BufferedRows<R>,
    buffered_max: usize,
    late: Vec<R>,
    late_max: usize,
    /// Keys up to this one have been written.
    written: Option<Key>,
    out: Output,
}

/// At least two, so that the older half is not empty.
fn rows_in<R>(bytes: usize) -> usize {
    (bytes / size_of::<R>()).max(2)
}

impl<R: Row> TableWriter<R> {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            buffered_max: rows_in::<R>(limits.reorder_bytes),
            late_max: rows_in::<R>(limits.late_bytes),
            buffered: BufferedRows::new(rows_in::<R>(limits.reorder_bytes)),
            late: Vec::new(),
            written: None,
            out: Output::new(R::TABLE),
        }
    }

    /// Adds a row; returns true if it is time to write.
    #[inline]
    pub(crate) fn take(&mut self, row: R) -> bool {
        if self.written.is_some_and(|written| row.key() < written) {
            self.late.push(row);
            self.late.len() >= self.late_max
        } else {
            self.buffered.push(row);
            self.buffered.len() >= self.buffered_max
        }
    }

    /// Writes rows in excess of the buffer.
    pub(crate) fn flush_ready(&mut self, context: &Context<'_>) -> Result<(), StoreError> {
        if self.buffered.len() >= self.buffered_max {
            self.release(self.buffered.len() / 2, context)?;
        }
        if self.late.len() >= self.late_max {
            self.spill_late(context)?;
        }
        Ok(())
    }

    /// Passes everything to the encoder threads.
    pub(crate) fn drain(mut self, context: &Context<'_>) -> Result<Drained, StoreError> {
        self.release(self.buffered.len(), context)?;
        if !self.late.is_empty() {
            self.spill_late(context)?;
        }
        self.out.end(context)
    }

    /// Writes the `count` rows with the lowest keys.
    fn release(&mut self, count: usize, context: &Context<'_>) -> Result<(), StoreError> {
        self.buffered.sort();
        for begin in (0..count).step_by(limits::BATCH_ROWS) {
            for row in self
                .buffered
                .sorted(begin..count.min(begin + limits::BATCH_ROWS))
            {
                row.put(&mut self.out.cells);
            }
            self.out.write(context)?;
        }
        if let Some(last) = self.buffered.sorted(0..count).last() {
            self.written = Some(last.key());
        }
        self.buffered.forget(count);
        Ok(())
    }

    fn spill_late(&mut self, context: &Context<'_>) -> Result<(), StoreError> {
        self.late.index_sort_by_ints(|row| {
            let (ts, id) = row.key();
            [ts, id, 0]
        });
        let mut rows = self.late.iter();
        self.out.spill(context, &mut |record| {
            let row = rows.next()?;
            row.put(record);
            Some(row.key())
        })?;
        self.late.clear();
        Ok(())
    }
}

/// Destination of a table's rows in their final order. It is independent of the row type, so that
/// there is one instance of the code for all tables.
struct Output {
    table: &'static Table,
    cells: Cells,
    main: Option<Series>,
    spill: Option<Spill>,
}

impl Output {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            cells: Cells::new(table),
            main: None,
            spill: None,
        }
    }

    /// Passes the cells to the encoder.
    fn write(&mut self, context: &Context<'_>) -> Result<(), StoreError> {
        let series = match &mut self.main {
            Some(series) => series,
            none => none.insert(start(self.table, context, "")?),
        };
        let spare = series.spare();
        series.write(self.cells.block(spare))
    }

    /// Writes late rows, in the order in which they are put, as one run.
    fn spill(&mut self, context: &Context<'_>, next: &mut PutNext<'_>) -> Result<(), StoreError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(context.staging.unnamed()?, self.table)),
        };
        let written = spill.write_run(next);
        written.map_err(|error| spill_failed(self.table, context, error))
    }

    fn end(mut self, context: &Context<'_>) -> Result<Drained, StoreError> {
        let in_main = self.cells.extent();
        let mut main = match self.main.take() {
            Some(series) => series,
            None => start(self.table, context, "")?,
        };
        main.end()?;
        let long = match self.spill.take() {
            Some(spill) => Some(self.write_long(spill, context)?),
            None => None,
        };
        Ok(Drained {
            main,
            long,
            in_main,
            all: self.cells.extent(),
        })
    }

    fn write_long(&mut self, spill: Spill, context: &Context<'_>) -> Result<Series, StoreError> {
        let mut series = start(self.table, context, "_long")?;
        let failed = |error| spill_failed(self.table, context, error);
        let mut merge = spill.merge().map_err(failed)?;
        loop {
            let more = merge.next(&mut self.cells).map_err(failed)?;
            let rows = self.cells.rows();
            if rows == limits::BATCH_ROWS || (!more && rows > 0) {
                let spare = series.spare();
                series.write(self.cells.block(spare))?;
            }
            if !more {
                series.end()?;
                return Ok(series);
            }
        }
    }
}

/// A table of which all rows have been passed on.
pub(crate) struct Drained {
    main: Series,
    long: Option<Series>,
    in_main: Extent,
    all: Extent,
}

impl Drained {
    /// Waits for the files and adds their checksums.
    pub(crate) fn join(mut self, checksums: &mut ByFile) -> Result<TableInfo, StoreError> {
        let mut names = |files: Vec<WrittenFile>| {
            let name = |file: WrittenFile| {
                checksums.insert(file.name.clone(), Arc::new(file.checksums));
                file.name
            };
            files.into_iter().map(name).collect()
        };
        Ok(TableInfo {
            rows: self.all.rows,
            dur_max_ns: self.in_main.span_ns_max,
            files: names(self.main.join()?),
            long_files: names(self.long.as_mut().map_or(Ok(Vec::new()), Series::join)?),
            unfinished: self.all.unfinished,
            ends_follow: self.all.elsewhere == 0,
        })
    }
}

fn start(table: &'static Table, context: &Context<'_>, suffix: &str) -> Result<Series, StoreError> {
    let stem = format!("{}{suffix}", table.name);
    let strings = context.symbols.strings();
    Series::start(context.staging.files(), table, stem, strings)
}

fn spill_failed(table: &Table, context: &Context<'_>, error: std::io::Error) -> StoreError {
    let path = context.staging.files().path(table.name);
    StoreError::io("write late rows of", path, error)
}
