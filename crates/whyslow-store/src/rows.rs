//! Complete rows of a table, for small tables and for tests.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use whyslow_model::{Feed, Row, Sym, Symbols, Window};

use crate::{Scan, StoreError, Tables};

/// All rows of a table in order. Holds them in memory at once: for tables of entities, not of
/// events.
pub fn rows<R: Row>(tables: &dyn Tables, symbols: &mut Symbols) -> Result<Vec<R>, StoreError> {
    let mut rows = Vec::new();
    each_row(tables, None, symbols, |row, _| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Passes on the rows of a table in order; with a window, the rows that may overlap it.
pub fn each_row<R: Row>(
    tables: &dyn Tables,
    window: Option<Window>,
    symbols: &mut Symbols,
    mut each: impl FnMut(R, &Symbols) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let scan = Scan {
        table: R::TABLE,
        columns: R::TABLE.columns.iter().map(|column| column.name).collect(),
        window,
    };
    tables.scan(&scan, &mut |batch| {
        let mut known: Vec<Vec<Option<Sym>>> = vec![Vec::new(); batch.num_columns()];
        for row in 0..batch.num_rows() {
            let found = R::get(&mut BatchRow {
                batch,
                row,
                symbols,
                known: &mut known,
            });
            each(found, symbols)?;
        }
        Ok(ControlFlow::Continue(()))
    })
}

struct BatchRow<'b> {
    batch: &'b RecordBatch,
    row: usize,
    symbols: &'b mut Symbols,
    /// By column and word: each word of a batch is looked up once.
    known: &'b mut [Vec<Option<Sym>>],
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
        let known = &mut self.known[column];
        if known.is_empty() {
            known.resize(texts.values().len(), None);
        }
        let symbols = &mut *self.symbols;
        let intern = || symbols.intern(texts.values().as_string::<i32>().value(key));
        Some(*known[key].get_or_insert_with(intern))
    }
}
