//! A cache of the columns of the last window.
//!
//! A query of one second out of an hour scans a table several times: for the top rows, and then for
//! everything related to them. The pages are few, but a single page requires decoding the
//! dictionary of its row group, which is most of the work. So the columns of the last queried
//! window stay in memory. They are read column by column, so that threads share the work even if
//! all rows are in one row group.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions};
use parquet::arrow::arrow_reader::RowSelection;
use whyslow_model::Window;

use crate::limits::{self, READ_BATCH_ROWS};
use crate::recording::{Group, picked, show};
use crate::table_file::{Projection, TableFile, damaged_because, ends_of};
use crate::{Part, StoreError, Visit};

/// The row groups of a table that overlap a window; `None` if they are too large.
pub(crate) type CachedGroups = Option<Arc<Vec<Arc<CachedGroup>>>>;
/// The cached window, and its row groups by table.
pub(crate) type WindowCache = Option<(Window, BTreeMap<&'static str, CachedGroups>)>;

/// A column, in batches.
type Arrays = Arc<Vec<ArrayRef>>;

/// The part of a row group within a window.
#[derive(Debug)]
pub(crate) struct CachedGroup {
    file: Arc<TableFile>,
    number: usize,
    selection: Option<RowSelection>,
    rows: usize,
    columns: Mutex<BTreeMap<&'static str, Arc<Mutex<Option<Arrays>>>>>,
}

impl From<Group> for CachedGroup {
    fn from(group: Group) -> Self {
        Self {
            file: group.file,
            number: group.number,
            selection: group.selection,
            rows: group.rows as usize,
            columns: Mutex::default(),
        }
    }
}

/// Parts of these row groups, the same for all columns.
pub(crate) fn parts(
    groups: &[Arc<CachedGroup>],
    projection: &Arc<Projection>,
) -> Vec<Box<dyn Part>> {
    let each = limits::CACHED_PARTS.div_ceil(groups.len().max(1));
    let mut parts: Vec<Box<dyn Part>> = Vec::new();
    for group in groups {
        let pieces = each.min(group.rows / limits::CACHED_PART_ROWS_MIN).max(1);
        let edge = |piece: usize| piece * group.rows / pieces;
        for piece in 0..pieces {
            parts.push(Box::new(CachedPart {
                group: Arc::clone(group),
                rows: edge(piece)..edge(piece + 1),
                projection: Arc::clone(projection),
                is_odd: parts.len() % 2 == 1,
            }));
        }
    }
    parts
}

impl CachedGroup {
    fn slot(&self, name: &'static str) -> Arc<Mutex<Option<Arrays>>> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(columns.entry(name).or_default())
    }

    /// Reads columns that no other thread is reading.
    fn read_some(&self, names: impl Iterator<Item = &'static str>) -> Result<(), StoreError> {
        for name in names {
            if let Ok(mut cached) = self.slot(name).try_lock()
                && cached.is_none()
            {
                *cached = Some(self.read(name)?);
            }
        }
        Ok(())
    }

    /// A column, waiting for the thread that is reading it, if any.
    fn column(&self, name: &'static str) -> Result<Arrays, StoreError> {
        let slot = self.slot(name);
        let mut cached = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arrays) = &*cached {
            return Ok(Arc::clone(arrays));
        }
        let arrays = self.read(name)?;
        *cached = Some(Arc::clone(&arrays));
        Ok(arrays)
    }

    fn read(&self, name: &'static str) -> Result<Arrays, StoreError> {
        if name == "ts_end" && self.file.has_ends_as_sums(self.number) {
            // No deadlock: no thread waits for ends while it reads these.
            let (begins, lengths) = (self.column("ts")?, self.column("dur")?);
            let pairs = begins.iter().zip(&*lengths);
            let ends: Option<Vec<ArrayRef>> = pairs.map(|(ts, dur)| ends_of(ts, dur)).collect();
            if let Some(ends) = ends {
                return Ok(Arc::new(ends));
            }
        }
        let projection = Arc::new(Projection::new(self.file.table(), &[name])?);
        let batches = self
            .file
            .read(self.number, self.selection.clone(), &projection)?;
        let arrays = batches.map(|batch| Ok(Arc::clone(batch?.column(0))));
        Ok(Arc::new(arrays.collect::<Result<_, StoreError>>()?))
    }
}

/// Some rows of a row group.
struct CachedPart {
    group: Arc<CachedGroup>,
    /// Row numbers within the group.
    rows: Range<usize>,
    projection: Arc<Projection>,
    /// Every other part reads columns in reverse order, so that two threads meet in the middle.
    is_odd: bool,
}

impl CachedPart {
    /// This part's rows of the batch with this number.
    fn batch(&self, number: usize, columns: &[Arrays]) -> Result<RecordBatch, StoreError> {
        let begin = number * READ_BATCH_ROWS;
        let from = self.rows.start.max(begin);
        let rows = self.rows.end.min(begin + READ_BATCH_ROWS) - from;
        let file = &self.group.file;
        let damaged = |reason| damaged_because(file.path(), file.table(), reason);
        let ours = |arrays: &Arrays| {
            let array = arrays.get(number);
            let array = array.filter(|array| from - begin + rows <= array.len());
            array.map(|array| array.slice(from - begin, rows))
        };
        let arrays: Option<Vec<ArrayRef>> = columns.iter().map(ours).collect();
        let arrays = arrays.ok_or_else(|| damaged("a column has too few rows".to_owned()))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.projection.schema);
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .map_err(|error| damaged(error.to_string()))
    }
}

impl Part for CachedPart {
    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let names = || self.projection.columns.iter().map(|column| column.name);
        if self.is_odd {
            self.group.read_some(names().rev())?;
        } else {
            self.group.read_some(names())?;
        }
        let columns = names().map(|name| self.group.column(name));
        let columns = columns.collect::<Result<Vec<Arrays>, _>>()?;
        let after = self.rows.end.div_ceil(READ_BATCH_ROWS);
        for batch in self.rows.start / READ_BATCH_ROWS..after {
            if visit(&self.batch(batch, &columns)?)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    /// Columns of a few rows are not used by other scans: they are not cached.
    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let (begin, end) = (self.rows.start as u64, self.rows.end as u64);
        let numbers = numbers.iter().map(|number| number + begin);
        let numbers: Vec<u64> = numbers.take_while(|number| *number < end).collect();
        let picked = picked(&numbers, self.group.rows);
        if !picked.selects_any() {
            return Ok(());
        }
        let selection = match &self.group.selection {
            Some(selection) => selection.and_then(&picked),
            None => picked,
        };
        let CachedGroup { file, number, .. } = &*self.group;
        let batches = file.read(*number, Some(selection), &self.projection)?;
        show(Box::new(batches), visit).map(drop)
    }
}
