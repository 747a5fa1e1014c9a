//! The rows of one table on their way to disk, from the order in which they became known to the
//! order of their keys.
//!
//! Goal: files sorted by (`ts`, id), with bounded memory, although an interval is known only when
//! it ends. Sorting everything at the end needs all rows twice on disk; waiting for the longest
//! interval needs them all in memory, as some thread always sleeps. So a table holds back a
//! bounded number of rows; when they are too many, the older half is written. A row whose place is
//! written already is *late*: these few are sorted in runs and become the `_long` file.

use std::sync::Arc;

use whyslow_model::{Ns, Row, Symbols};

use crate::cells::{Cells, DenseText, Extent};
use crate::checksums::ByFile;
use crate::limits::{self, Limits};
use crate::series::{Series, WrittenFile};
use crate::spill::Spill;
use crate::staging::Staging;
use crate::{StoreError, TableInfo};

type Key = (Ns, i64);

/// What writing needs besides the rows.
pub(crate) struct Context<'c> {
    pub(crate) staging: &'c Staging,
    pub(crate) symbols: &'c Symbols,
    pub(crate) dense: &'c mut DenseText,
}

pub(crate) struct TableWriter<R: Row> {
    held: Vec<R>,
    held_max: usize,
    late: Vec<R>,
    late_max: usize,
    /// Keys up to this one are written.
    written: Option<Key>,
    cells: Cells,
    main: Option<Series>,
    spill: Option<Spill>,
}

/// At least two, so that writing the older half writes something.
fn rows_in<R>(bytes: usize) -> usize {
    (bytes / size_of::<R>()).max(2)
}

impl<R: Row> TableWriter<R> {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            held_max: rows_in::<R>(limits.reorder_bytes),
            late_max: rows_in::<R>(limits.late_bytes),
            held: Vec::new(),
            late: Vec::new(),
            written: None,
            cells: Cells::new(R::TABLE),
            main: None,
            spill: None,
        }
    }

    /// Takes a row; true if it is time to write.
    #[inline]
    pub(crate) fn take(&mut self, row: R) -> bool {
        if self.written.is_some_and(|written| row.key() < written) {
            self.late.push(row);
            self.late.len() >= self.late_max
        } else {
            self.held.push(row);
            self.held.len() >= self.held_max
        }
    }

    /// Writes what is too much to hold.
    pub(crate) fn flush_ready(&mut self, context: &mut Context<'_>) -> Result<(), StoreError> {
        if self.held.len() >= self.held_max {
            self.release(self.held.len() / 2, context)?;
        }
        if self.late.len() >= self.late_max {
            self.spill_late(context)?;
        }
        Ok(())
    }

    /// Hands everything to the encoder threads.
    pub(crate) fn drain(mut self, context: &mut Context<'_>) -> Result<Drained, StoreError> {
        self.release(self.held.len(), context)?;
        if !self.late.is_empty() {
            self.spill_late(context)?;
        }
        let in_main = self.cells.extent();
        let mut main = match self.main.take() {
            Some(series) => series,
            None => start::<R>(context, "")?,
        };
        main.end()?;
        let long = match self.spill.take() {
            Some(spill) => Some(write_long::<R>(spill, &mut self.cells, context)?),
            None => None,
        };
        Ok(Drained {
            main,
            long,
            in_main,
            all: self.cells.extent(),
        })
    }

    /// Writes the `count` rows with the least keys.
    fn release(&mut self, count: usize, context: &mut Context<'_>) -> Result<(), StoreError> {
        let order = sorted(&self.held);
        let oldest = &order[..count];
        for chunk in oldest.chunks(limits::BATCH_ROWS) {
            for (_, index) in chunk {
                self.held[*index as usize].put(&mut self.cells);
            }
            let batch = self.cells.batch(context.symbols, context.dense);
            let series = match &mut self.main {
                Some(series) => series,
                none => none.insert(start::<R>(context, "")?),
            };
            series.write(batch)?;
        }
        if let Some(&last) = oldest.last() {
            self.written = Some(last.0);
            // In place: another buffer of that size would be new memory every time.
            let mut index = 0;
            self.held.retain(|row| {
                index += 1;
                (row.key(), index - 1) > last
            });
        }
        Ok(())
    }

    fn spill_late(&mut self, context: &mut Context<'_>) -> Result<(), StoreError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(context.staging.unnamed()?, R::TABLE)),
        };
        let order = sorted(&self.late);
        let rows = order.iter().map(|(_, index)| &self.late[*index as usize]);
        spill
            .write_run(rows)
            .map_err(|error| spill_failed::<R>(context, error))?;
        self.late.clear();
        Ok(())
    }
}

/// A table of which all rows are on their way.
pub(crate) struct Drained {
    main: Series,
    long: Option<Series>,
    in_main: Extent,
    all: Extent,
}

impl Drained {
    /// Waits for the files; their checksums are added to those of the others.
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
        })
    }
}

/// Keys with the places of their rows, in order; rows of equal keys stay as they came.
fn sorted<R: Row>(rows: &[R]) -> Vec<(Key, u32)> {
    let mut order: Vec<(Key, u32)> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| (row.key(), index as u32))
        .collect();
    order.sort_unstable();
    order
}

fn start<R: Row>(context: &Context<'_>, suffix: &str) -> Result<Series, StoreError> {
    let stem = format!("{}{suffix}", R::TABLE.name);
    Series::start(context.staging.files(), R::TABLE, stem)
}

fn write_long<R: Row>(
    spill: Spill,
    cells: &mut Cells,
    context: &mut Context<'_>,
) -> Result<Series, StoreError> {
    let mut series = start::<R>(context, "_long")?;
    let mut merge = spill
        .merge()
        .map_err(|error| spill_failed::<R>(context, error))?;
    loop {
        let more = merge
            .next(cells)
            .map_err(|error| spill_failed::<R>(context, error))?;
        if cells.rows() == limits::BATCH_ROWS || (!more && cells.rows() > 0) {
            let batch = cells.batch(context.symbols, context.dense);
            series.write(batch)?;
        }
        if !more {
            series.end()?;
            return Ok(series);
        }
    }
}

fn spill_failed<R: Row>(context: &Context<'_>, error: std::io::Error) -> StoreError {
    let path = context.staging.files().path(R::TABLE.name);
    StoreError::io("write late rows of", path, error)
}
