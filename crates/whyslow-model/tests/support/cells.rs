//! Rows for tests of several crates, by the cells that matter.

use whyslow_model::{Feed, Row, Sym, Table};

/// A row that has these cells, and nothing or zero in all others.
struct Cells<'c> {
    table: &'static Table,
    numbers: &'c [(&'static str, i64)],
    words: &'c [(&'static str, Sym)],
}

impl Cells<'_> {
    fn number(&self, column: usize) -> Option<i64> {
        let column = &self.table.columns[column];
        let found = self.numbers.iter().find(|(name, _)| *name == column.name);
        found
            .map(|(_, number)| *number)
            .or((!column.nullable).then_some(0))
    }
}

impl Feed for Cells<'_> {
    fn i64(&mut self, column: usize) -> Option<i64> {
        self.number(column)
    }
    fn i32(&mut self, column: usize) -> Option<i32> {
        self.number(column).map(|number| number as i32)
    }
    fn f64(&mut self, _: usize) -> Option<f64> {
        None
    }
    fn bool(&mut self, column: usize) -> Option<bool> {
        self.number(column).map(|number| number != 0)
    }
    fn sym(&mut self, column: usize) -> Option<Sym> {
        let column = &self.table.columns[column];
        let found = self.words.iter().find(|(name, _)| *name == column.name);
        let any = self.words.first().filter(|_| !column.nullable);
        found.or(any).map(|(_, word)| *word)
    }
}

pub(crate) fn row<R: Row>(numbers: &[(&'static str, i64)], words: &[(&'static str, Sym)]) -> R {
    R::get(&mut Cells {
        table: R::TABLE,
        numbers,
        words,
    })
}
