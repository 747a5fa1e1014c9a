//! Rows and pieces of lanes, for tests that make their tables.

use whyslow_model::{Feed, Row, Sym, Table};
use whyslow_tiles::Track;

use crate::support::Piece;

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

pub(crate) fn times(begin: i64, end: i64, utid: i64) -> [(&'static str, i64); 5] {
    [
        ("id", begin),
        ("ts", begin),
        ("dur", end - begin),
        ("ts_end", end),
        ("utid", utid),
    ]
}

pub(crate) fn piece(begin: u64, end: u64, value: i32, group: usize) -> Piece {
    let mut parts = [0; 4];
    parts[group] = 255;
    Piece {
        begin,
        end,
        value,
        parts,
    }
}

pub(crate) fn place(track: &Track, value: &str) -> i32 {
    let place = track.values.iter().position(|known| *known == value);
    place.expect("a value") as i32
}
