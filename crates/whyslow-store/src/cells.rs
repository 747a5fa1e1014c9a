//! Rows into columns: the cells of many rows of one table, until they become a record batch.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::SchemaRef;
use whyslow_model::{ColumnType, Sink, Sym, Symbols, Table};

use crate::schema;

/// Gives the strings of one batch and column dense numbers, without hashing.
///
/// `slots[sym]` is valid while its epoch is the current one, so starting anew costs nothing.
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
        nulls: Option<arrow_buffer::NullBuffer>,
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

enum Values {
    I64(Vec<i64>),
    I32(Vec<i32>),
    F64(Vec<f64>),
    Bool(BooleanBufferBuilder),
    Text(Vec<Sym>),
}

struct Cell {
    values: Values,
    nulls: NullBufferBuilder,
}

/// What a window must know of the rows of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) rows: u64,
    pub(crate) unfinished: u64,
    /// Greatest `ts_end - ts`, also of rows whose begin was not recorded.
    pub(crate) span_ns_max: Option<i64>,
}

/// Takes rows through [`Sink`] and gives batches of all columns of the table.
pub(crate) struct Cells {
    schema: SchemaRef,
    columns: Vec<Cell>,
    ts: Option<usize>,
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
            nulls: NullBufferBuilder::new(0),
        });
        let index = |name| table.column(name).map(|(index, _)| index);
        Self {
            schema: schema::arrow_schema(table),
            columns: columns.collect(),
            ts: index("ts"),
            ts_end: index("ts_end"),
            extent: Extent::default(),
        }
    }

    /// Of all rows taken so far.
    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// Rows taken since the last batch.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |cell| cell.nulls.len())
    }

    /// The rows taken since the last batch.
    pub(crate) fn batch(&mut self, symbols: &Symbols, dense: &mut DenseText) -> RecordBatch {
        self.measure();
        let arrays = self
            .columns
            .iter_mut()
            .map(|cell| {
                let nulls = cell.nulls.finish();
                match &mut cell.values {
                    Values::I64(values) => {
                        let array: ArrayRef =
                            Arc::new(Int64Array::new(std::mem::take(values).into(), nulls));
                        array
                    }
                    Values::I32(values) => {
                        Arc::new(Int32Array::new(std::mem::take(values).into(), nulls))
                    }
                    Values::F64(values) => {
                        Arc::new(Float64Array::new(std::mem::take(values).into(), nulls))
                    }
                    Values::Bool(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
                    Values::Text(texts) => {
                        let array = dense.dictionary(texts, nulls, symbols);
                        texts.clear();
                        array
                    }
                }
            })
            .collect();
        RecordBatch::try_new(self.schema.clone(), arrays)
            .expect("every row puts every column of its table")
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
        let nulls = self.columns[ts_end].nulls.as_slice();
        let mut unfinished = 0;
        for (row, (begin, end)) in begins.iter().zip(ends).enumerate() {
            if nulls.is_some_and(|bits| bits[row / 8] & (1 << (row % 8)) == 0) {
                unfinished += 1;
                continue;
            }
            let span = end.saturating_sub(*begin);
            self.extent.span_ns_max = self.extent.span_ns_max.max(Some(span));
        }
        self.extent.unfinished += unfinished;
    }
}

macro_rules! put {
    ($self:ident, $column:ident, $value:ident, $variant:ident, $absent:expr, $push:ident) => {{
        let cell = &mut $self.columns[$column];
        let Values::$variant(values) = &mut cell.values else {
            unreachable!("a row puts cells in the order of its table's columns")
        };
        match $value {
            Some(value) => {
                values.$push(value);
                cell.nulls.append_non_null();
            }
            None => {
                values.$push($absent);
                cell.nulls.append_null();
            }
        }
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
