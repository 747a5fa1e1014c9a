//! Converts rows to columns: collects the cells of many rows of a table until they become a record
//! batch.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::SchemaRef;
use whyslow_model::{ColumnType, Sink, Sym, Symbols, Table};

use crate::schema;

/// Maps the strings of one batch and column to dense numbers, without hashing.
///
/// `slots[sym]` is valid while its epoch is the current one, so a restart costs nothing.
#[derive(Debug, Default)]
pub(crate) struct DenseText {
    epoch: u32,
    slots: Vec<(u32, i32)>,
}

impl DenseText {
    fn start(&mut self, symbols: &Symbols) {
        self.slots.resize(symbols.len(), (0, 0));
        if self.epoch == u32::MAX {
            self.slots.fill((0, 0));
            self.epoch = 0;
        }
        self.epoch += 1;
    }

    fn dictionary(
        &mut self,
        texts: &[Sym],
        nulls: Option<NullBuffer>,
        symbols: &Symbols,
    ) -> ArrayRef {
        self.start(symbols);
        let mut values = StringBuilder::new();
        let mut distinct = 0;
        let mut keys = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                keys.push(0);
                continue;
            }
            let slot = &mut self.slots[text.0 as usize];
            if slot.0 != self.epoch {
                *slot = (self.epoch, distinct);
                distinct += 1;
                values.append_value(symbols.get(*text));
            }
            keys.push(slot.1);
        }
        let keys = Int32Array::new(keys.into(), nulls);
        Arc::new(DictionaryArray::<Int32Type>::new(
            keys,
            Arc::new(values.finish()),
        ))
    }
}

/// Values of one column, with a placeholder for nulls.
pub(crate) enum Values {
    I64(Vec<i64>),
    I32(Vec<i32>),
    F64(Vec<f64>),
    Bool(BooleanBufferBuilder),
    Text(Vec<Sym>),
}

struct Cell {
    values: Values,
    /// One byte per row, 1 if there is a value: set without a branch, converted to bits per block.
    valid: Vec<u8>,
    nulls: usize,
}

/// One column of a block.
pub(crate) struct BlockColumn {
    pub(crate) values: Values,
    pub(crate) nulls: Option<NullBuffer>,
}

/// Some rows of a table, column by column, in order; text as symbols.
pub(crate) struct Block {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<BlockColumn>,
}

/// Properties of a table's rows for window scans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) rows: u64,
    pub(crate) unfinished: u64,
    /// Greatest `ts_end - ts`, including rows without a recorded start.
    pub(crate) span_ns_max: Option<i64>,
    /// Rows for which `ts + dur = ts_end` does not hold although all three are known.
    pub(crate) elsewhere: u64,
}

/// Takes rows through [`Sink`] and builds batches with all columns of the table.
pub(crate) struct Cells {
    schema: SchemaRef,
    columns: Vec<Cell>,
    ts: Option<usize>,
    dur: Option<usize>,
    ts_end: Option<usize>,
    extent: Extent,
}

impl Cells {
    pub(crate) fn new(table: &'static Table) -> Self {
        let columns = table.columns.iter().map(|column| Cell {
            values: match column.kind {
                ColumnType::I64 => Values::I64(Vec::new()),
                ColumnType::I32 => Values::I32(Vec::new()),
                ColumnType::F64 => Values::F64(Vec::new()),
                ColumnType::Bool => Values::Bool(BooleanBufferBuilder::new(0)),
                ColumnType::Utf8 => Values::Text(Vec::new()),
            },
            valid: Vec::new(),
            nulls: 0,
        });
        let index = |name| table.column(name).map(|(index, _)| index);
        Self {
            schema: schema::arrow_schema(table),
            columns: columns.collect(),
            ts: index("ts"),
            dur: index("dur"),
            ts_end: index("ts_end"),
            extent: Extent::default(),
        }
    }

    /// Of all rows so far.
    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// Rows since the last batch.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |cell| cell.valid.len())
    }

    /// The rows since the last block. Reuses the memory of `spare`, a processed block, for the next
    /// rows.
    pub(crate) fn block(&mut self, spare: Option<Block>) -> Block {
        self.measure();
        let rows = self.rows();
        let empty = |cell: &Cell| BlockColumn {
            values: cell.values.like(),
            nulls: None,
        };
        let mut block = spare.unwrap_or_else(|| Block {
            rows: 0,
            columns: self.columns.iter().map(empty).collect(),
        });
        block.rows = rows;
        for (column, cell) in block.columns.iter_mut().zip(&mut self.columns) {
            column.values.clear();
            std::mem::swap(&mut column.values, &mut cell.values);
            column.nulls = cell.take_nulls();
        }
        block
    }

    /// The rows since the last block, in the form in which tables are read.
    pub(crate) fn batch(&mut self, symbols: &Symbols, dense: &mut DenseText) -> RecordBatch {
        let columns = self.block(None).columns.into_iter();
        let arrays = columns.map(|column| column.into_array(symbols, dense));
        RecordBatch::try_new(self.schema.clone(), arrays.collect())
            .expect("every row fills every column")
    }

    fn measure(&mut self) {
        self.extent.rows += self.rows() as u64;
        let (Some(ts), Some(ts_end)) = (self.ts, self.ts_end) else {
            return;
        };
        let (Values::I64(begins), Values::I64(ends)) =
            (&self.columns[ts].values, &self.columns[ts_end].values)
        else {
            return;
        };
        let finished = begins.iter().zip(ends).zip(&self.columns[ts_end].valid);
        let finished = finished.filter(|(_, valid)| **valid != 0);
        let spans = finished.map(|((begin, end), _)| end.saturating_sub(*begin));
        self.extent.span_ns_max = self.extent.span_ns_max.max(spans.max());
        self.extent.unfinished += self.columns[ts_end].nulls as u64;
        let Some(dur) = self.dur.map(|dur| &self.columns[dur]) else {
            return;
        };
        if let Values::I64(lengths) = &dur.values {
            let known = dur.valid.iter().zip(&self.columns[ts_end].valid);
            let known = known.map(|(dur, end)| *dur != 0 && *end != 0);
            let spans = begins.iter().zip(ends).zip(lengths);
            let is_there =
                |((begin, end), length): ((&i64, &i64), &i64)| begin.wrapping_add(*length) == *end;
            let elsewhere = spans.map(is_there).zip(known);
            let elsewhere = elsewhere.filter(|(is_there, known)| *known && !is_there);
            self.extent.elsewhere += elsewhere.count() as u64;
        }
    }
}

impl Values {
    /// An empty column with the same capacity: the columns of a table fill alike.
    fn like(&self) -> Self {
        match self {
            Values::I64(values) => Values::I64(Vec::with_capacity(values.len())),
            Values::I32(values) => Values::I32(Vec::with_capacity(values.len())),
            Values::F64(values) => Values::F64(Vec::with_capacity(values.len())),
            Values::Text(values) => Values::Text(Vec::with_capacity(values.len())),
            Values::Bool(values) => Values::Bool(BooleanBufferBuilder::new(values.len())),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::I64(values) => values.clear(),
            Values::I32(values) => values.clear(),
            Values::F64(values) => values.clear(),
            Values::Text(values) => values.clear(),
            Values::Bool(values) => values.truncate(0),
        }
    }
}

impl Cell {
    fn take_nulls(&mut self) -> Option<NullBuffer> {
        let valid = (std::mem::take(&mut self.nulls) > 0).then(|| {
            let valid = BooleanBuffer::collect_bool(self.valid.len(), |row| self.valid[row] != 0);
            NullBuffer::new(valid)
        });
        self.valid.clear();
        valid
    }
}

impl BlockColumn {
    fn into_array(self, symbols: &Symbols, dense: &mut DenseText) -> ArrayRef {
        let nulls = self.nulls;
        match self.values {
            Values::I64(values) => Arc::new(Int64Array::new(values.into(), nulls)),
            Values::I32(values) => Arc::new(Int32Array::new(values.into(), nulls)),
            Values::F64(values) => Arc::new(Float64Array::new(values.into(), nulls)),
            Values::Bool(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Text(texts) => dense.dictionary(&texts, nulls, symbols),
        }
    }
}

macro_rules! put {
    ($self:ident, $column:ident, $value:ident, $variant:ident, $absent:expr, $push:ident) => {{
        let cell = &mut $self.columns[$column];
        let Values::$variant(values) = &mut cell.values else {
            unreachable!("a row puts cells in the order of its table's columns")
        };
        values.$push($value.unwrap_or($absent));
        cell.valid.push(u8::from($value.is_some()));
        cell.nulls += usize::from($value.is_none());
    }};
}

impl Sink for Cells {
    #[inline(always)]
    fn i64(&mut self, column: usize, value: Option<i64>) {
        put!(self, column, value, I64, 0, push);
    }
    #[inline(always)]
    fn i32(&mut self, column: usize, value: Option<i32>) {
        put!(self, column, value, I32, 0, push);
    }
    #[inline(always)]
    fn f64(&mut self, column: usize, value: Option<f64>) {
        put!(self, column, value, F64, 0.0, push);
    }
    #[inline(always)]
    fn bool(&mut self, column: usize, value: Option<bool>) {
        put!(self, column, value, Bool, false, append);
    }
    #[inline(always)]
    fn sym(&mut self, column: usize, value: Option<Sym>) {
        put!(self, column, value, Text, Sym::EMPTY, push);
    }
}
