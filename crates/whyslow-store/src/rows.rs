//! Whole rows of a table, for small tables and for tests.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use whyslow_model::{Feed, Row, Sym, Symbols};

use crate::{Scan, StoreError, Tables};

/// All rows of a table in order. Holds them in memory at once: for tables of things, not of events.
pub fn rows<R: Row>(tables: &dyn Tables, symbols: &mut Symbols) -> Result<Vec<R>, StoreError> {
    let scan = Scan {
        table: R::TABLE,
        columns: R::TABLE.columns.iter().map(|column| column.name).collect(),
        window: None,
    };
    let mut rows = Vec::new();
    tables.scan(&scan, &mut |batch| {
        rows.extend((0..batch.num_rows()).map(|row| {
            R::get(&mut BatchRow {
                batch,
                row,
                symbols,
            })
        }));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

struct BatchRow<'b> {
    batch: &'b RecordBatch,
    row: usize,
    symbols: &'b mut Symbols,
}

impl<'b> BatchRow<'b> {
    fn present(&self, column: usize) -> Option<&'b dyn Array> {
        let array = self.batch.column(column);
        array.is_valid(self.row).then_some(array.as_ref())
    }
}

impl Feed for BatchRow<'_> {
    fn i64(&mut self, column: usize) -> Option<i64> {
        Some(
            self.present(column)?
                .as_primitive::<Int64Type>()
                .value(self.row),
        )
    }
    fn i32(&mut self, column: usize) -> Option<i32> {
        Some(
            self.present(column)?
                .as_primitive::<Int32Type>()
                .value(self.row),
        )
    }
    fn f64(&mut self, column: usize) -> Option<f64> {
        Some(
            self.present(column)?
                .as_primitive::<Float64Type>()
                .value(self.row),
        )
    }
    fn bool(&mut self, column: usize) -> Option<bool> {
        Some(self.present(column)?.as_boolean().value(self.row))
    }
    fn sym(&mut self, column: usize) -> Option<Sym> {
        let texts = self.present(column)?.as_dictionary::<Int32Type>();
        let key = texts.key(self.row)?;
        let text = texts.values().as_string::<i32>().value(key);
        Some(self.symbols.intern(text))
    }
}
