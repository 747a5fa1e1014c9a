//! Columns of a window, read once.
//!
//! A question about a second of an hour asks a table several times: who did most, and then who else
//! had to do with it. The pages are few, but the dictionary of a row group has to be decoded for a
//! page of it as well, which is most of the work. So the columns of the window that was asked for
//! last stay in memory. They are read column by column, so that threads share the work though all
//! rows are of one row group.

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

/// The row groups of a table that a window has something of; none where that is too much.
pub(crate) type KeptGroups = Option<Arc<Vec<Arc<KeptGroup>>>>;
/// Of which window, by table.
pub(crate) type Kept = Option<(Window, BTreeMap<&'static str, KeptGroups>)>;

/// A column, in batches.
type Arrays = Arc<Vec<ArrayRef>>;

/// What a window has of a row group.
#[derive(Debug)]
pub(crate) struct KeptGroup {
    file: Arc<TableFile>,
    number: usize,
    selection: Option<RowSelection>,
    rows: usize,
    columns: Mutex<BTreeMap<&'static str, Arc<Mutex<Option<Arrays>>>>>,
}

impl From<Group> for KeptGroup {
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

/// Pieces of these row groups, the same for all columns.
pub(crate) fn parts(groups: &[Arc<KeptGroup>], projection: &Arc<Projection>) -> Vec<Box<dyn Part>> {
    let each = limits::KEPT_PARTS.div_ceil(groups.len().max(1));
    let mut parts: Vec<Box<dyn Part>> = Vec::new();
    for group in groups {
        let pieces = each.min(group.rows / limits::KEPT_PART_ROWS_MIN).max(1);
        let edge = |piece: usize| piece * group.rows / pieces;
        for piece in 0..pieces {
            parts.push(Box::new(KeptPart {
                group: Arc::clone(group),
                rows: edge(piece)..edge(piece + 1),
                projection: Arc::clone(projection),
                is_odd: parts.len() % 2 == 1,
            }));
        }
    }
    parts
}

impl KeptGroup {
    fn slot(&self, name: &'static str) -> Arc<Mutex<Option<Arrays>>> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(columns.entry(name).or_default())
    }

    /// Reads columns that nobody is reading.
    fn read_some(&self, names: impl Iterator<Item = &'static str>) -> Result<(), StoreError> {
        for name in names {
            if let Ok(mut held) = self.slot(name).try_lock()
                && held.is_none()
            {
                *held = Some(self.read(name)?);
            }
        }
        Ok(())
    }

    /// A column, after whoever is reading it.
    fn column(&self, name: &'static str) -> Result<Arrays, StoreError> {
        let slot = self.slot(name);
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arrays) = &*held {
            return Ok(Arc::clone(arrays));
        }
        let arrays = self.read(name)?;
        *held = Some(Arc::clone(&arrays));
        Ok(arrays)
    }

    fn read(&self, name: &'static str) -> Result<Arrays, StoreError> {
        if name == "ts_end" && self.file.has_ends_as_sums(self.number) {
            // Nothing waits for ends while it reads these.
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
struct KeptPart {
    group: Arc<KeptGroup>,
    /// Numbers of the rows in their group.
    rows: Range<usize>,
    projection: Arc<Projection>,
    /// Every other one reads columns from the last, so that two threads meet in the middle.
    is_odd: bool,
}

impl KeptPart {
    /// What is ours of the batch with this number.
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
        let arrays = arrays.ok_or_else(|| damaged("a column lacks rows".to_owned()))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.projection.schema);
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .map_err(|error| damaged(error.to_string()))
    }
}

impl Part for KeptPart {
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

    /// A few rows have columns that nobody else asks for: these are not kept.
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
        let KeptGroup { file, number, .. } = &*self.group;
        let batches = file.read(*number, Some(selection), &self.projection)?;
        show(Box::new(batches), visit).map(drop)
    }
}
