//! Rows in memory as a source of tables, only for tests.
//!
//! Not behind a feature: every dependent crate would be built twice, with it for tests and without
//! it for the program, which does not link unused code anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_select::take::take_record_batch;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::Collected;
use whyslow_model::{Row, Shape, Symbols, Table, Window, for_each_table};

use crate::cells::{Cells, DenseText};
use crate::table_file::Projection;
use crate::{Part, RecordingInfo, Scan, StoreError, TableInfo, Tables, Visit, limits, manifest};

/// Tables of rows in memory.
#[derive(Debug)]
pub struct MemoryTables {
    info: RecordingInfo,
    batches: BTreeMap<&'static str, Vec<RecordBatch>>,
}

impl MemoryTables {
    /// Sorts the rows of every table as in a recording. Sources, host, zone and time range come
    /// from `recording`; the rest is derived from the rows.
    pub fn new(rows: &Collected, symbols: &Symbols, recording: RecordingInfo) -> Self {
        let mut memory = Self {
            info: recording,
            batches: BTreeMap::new(),
        };
        memory.info.format_version = manifest::FORMAT_VERSION;
        memory.info.tables.clear();
        let mut dense = DenseText::default();
        macro_rules! add {
            ($($row:ident $field:ident),+) => {
                $(memory.add(&rows.$field, symbols, &mut dense);)+
            };
        }
        for_each_table!(add);
        memory
    }

    fn add<R: Row>(&mut self, rows: &[R], symbols: &Symbols, dense: &mut DenseText) {
        let mut sorted: Vec<&R> = rows.iter().collect();
        sorted.index_sort_by_ints(|row| {
            let (ts, id) = row.key();
            [ts, id, 0]
        });
        let mut cells = Cells::new(R::TABLE);
        let batches = sorted
            .chunks(limits::READ_BATCH_ROWS)
            .map(|chunk| {
                for row in chunk {
                    row.put(&mut cells);
                }
                cells.batch(symbols, dense)
            })
            .collect();
        let extent = cells.extent();
        let info = TableInfo {
            rows: extent.rows,
            dur_max_ns: extent.span_ns_max,
            unfinished: extent.unfinished,
            ..TableInfo::default()
        };
        self.info.tables.insert(R::TABLE.name.to_owned(), info);
        self.batches.insert(R::TABLE.name, batches);
    }

    fn pieces(&self, scan: &Scan) -> Result<Vec<Piece>, StoreError> {
        let projection = Projection::new(scan.table, &scan.columns)?;
        let batches = self.batches.get(scan.table.name).into_iter().flatten();
        Ok(batches
            .filter(|batch| {
                scan.window
                    .is_none_or(|window| may_overlap(scan.table, batch, window))
            })
            .map(|batch| Piece(project(batch, &projection)))
            .collect())
    }
}

fn project(batch: &RecordBatch, projection: &Projection) -> RecordBatch {
    let arrays: Vec<ArrayRef> = projection
        .columns
        .iter()
        .filter_map(|column| batch.column_by_name(column.name).cloned())
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(&projection.schema), arrays, &options)
        .expect("a projection has only columns of its table")
}

fn may_overlap(table: &Table, batch: &RecordBatch, window: Window) -> bool {
    let column = |name| {
        batch
            .column_by_name(name)
            .map(AsArray::as_primitive::<Int64Type>)
    };
    if table.shape == Shape::Entity {
        return true;
    }
    let Some(begins) = column("ts").filter(|begins| !begins.is_empty()) else {
        return true;
    };
    let reaches = match column("ts_end") {
        Some(ends) => ends.null_count() > 0 || ends.values().iter().any(|end| *end >= window.begin),
        None => begins.value(begins.len() - 1) >= window.begin,
    };
    reaches && begins.value(0) < window.end
}

struct Piece(RecordBatch);

impl Part for Piece {
    fn rows(&self) -> u64 {
        self.0.num_rows() as u64
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        visit(&self.0).map(drop)
    }

    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let rows = self.rows();
        let numbers = numbers.iter().copied().filter(|number| *number < rows);
        let picked = take_record_batch(&self.0, &UInt64Array::from_iter_values(numbers))
            .expect("valid row numbers");
        visit(&picked).map(drop)
    }
}

impl Tables for MemoryTables {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError> {
        let pieces = self.pieces(scan)?.into_iter();
        Ok(pieces
            .map(|piece| Box::new(piece) as Box<dyn Part>)
            .collect())
    }

    /// Unknown: there are few rows to read.
    fn words(&self, _: &'static Table, _: &str) -> Result<Option<BTreeSet<String>>, StoreError> {
        Ok(None)
    }

    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        for piece in self.pieces(scan)? {
            if visit(&piece.0)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}
