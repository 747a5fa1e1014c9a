//! Random rows of any table, and small recordings of them.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;

use whyslow_model::row::Emit;
use whyslow_model::tables::{self, Collected};
use whyslow_model::{Feed, Row, Sym, Symbols, for_each_table};
use whyslow_store::{Existing, Limits, RecordingInfo, RecordingWriter, StoreError, Tables};

/// Limits that make a few thousand rows exercise all code paths.
pub(crate) const SMALL: Limits = Limits {
    reorder_bytes: 40_000,
    late_bytes: 20_000,
    row_group_rows: 700,
    row_group_rows_small: 300,
    small_file_rows: 900,
    page_rows: 64,
    page_bytes: 500,
    dictionary_bytes: 900,
    file_rows: 2500,
};

/// SplitMix64: the same rows for the same seed on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Names of all lengths, including the empty one and some non-ASCII ones.
pub(crate) fn symbols() -> Symbols {
    let mut symbols = Symbols::new();
    for number in 0..200 {
        let text = match number % 4 {
            0 => format!("name{number}"),
            1 => "/a/b".repeat(number),
            2 => format!("é{number}\u{1f600}"),
            _ => format!("line\nbreak \"{number}\""),
        };
        symbols.intern(&text);
    }
    symbols
}

/// Cells from the full range of their type, with edge values more often.
pub(crate) struct AnyCells<'r> {
    pub(crate) random: &'r mut Random,
    pub(crate) table: &'static whyslow_model::Table,
    pub(crate) symbols: u64,
}

impl AnyCells<'_> {
    fn null(&mut self, column: usize) -> bool {
        self.table.columns[column].nullable && self.random.below(4) == 0
    }
}

impl Feed for AnyCells<'_> {
    fn i64(&mut self, column: usize) -> Option<i64> {
        if self.null(column) {
            return None;
        }
        Some(match self.random.below(10) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => self.random.next() as i64,
            _ => self.random.below(1000) as i64,
        })
    }
    fn i32(&mut self, column: usize) -> Option<i32> {
        if self.null(column) {
            return None;
        }
        Some(match self.random.below(10) {
            0 => i32::MIN,
            1 => i32::MAX,
            _ => self.random.next() as i32,
        })
    }
    fn f64(&mut self, column: usize) -> Option<f64> {
        (!self.null(column)).then(|| self.random.next() as f64 / 7.0)
    }
    fn bool(&mut self, column: usize) -> Option<bool> {
        (!self.null(column)).then(|| self.random.below(2) == 0)
    }
    fn sym(&mut self, column: usize) -> Option<Sym> {
        (!self.null(column)).then(|| Sym(self.random.below(self.symbols) as u32))
    }
}

pub(crate) fn any_row<R: Row>(random: &mut Random, symbols: &Symbols) -> R {
    R::get(&mut AnyCells {
        random,
        table: R::TABLE,
        symbols: symbols.len() as u64,
    })
}

macro_rules! all_tables {
    ($($row:ident $field:ident),+) => {
        /// `count` random rows of every table.
        pub(crate) fn any_rows(random: &mut Random, symbols: &Symbols, count: usize) -> Collected {
            let mut rows = Collected::default();
            $(for _ in 0..count {
                rows.emit(any_row::<tables::$row>(random, symbols));
            })+
            rows
        }

        /// Writes the rows, table by table, each in the given order.
        pub(crate) fn write(
            rows: &Collected,
            symbols: &Symbols,
            target: &Path,
            limits: Limits,
        ) -> Result<RecordingInfo, StoreError> {
            let mut writer = RecordingWriter::create_within(target, Existing::Refuse, limits)?;
            $(for row in &rows.$field {
                writer.emit(*row);
                writer.flush_ready(symbols)?;
            })+
            writer.finish(symbols, RecordingInfo::default())
        }

        /// Every row of every table as text, in reading order.
        pub(crate) fn read(from: &dyn Tables, symbols: &Symbols) -> BTreeMap<&'static str, Vec<String>> {
            let mut symbols = symbols.clone();
            let mut read = BTreeMap::new();
            $(
                let rows = whyslow_store::rows::<tables::$row>(from, &mut symbols).expect("readable");
                assert!(rows.is_sorted_by_key(Row::key), "{}", stringify!($field));
                let texts = rows.iter().map(|row| format!("{row:?}")).collect();
                read.insert(stringify!($field), texts);
            )+
            read
        }

        /// Every row of every table as text, as created.
        pub(crate) fn made(rows: &Collected) -> BTreeMap<&'static str, Vec<String>> {
            BTreeMap::from([$((
                stringify!($field),
                rows.$field.iter().map(|row| format!("{row:?}")).collect(),
            )),+])
        }
    };
}
for_each_table!(all_tables);

/// The same rows in sorted order.
pub(crate) fn sorted(
    mut tables: BTreeMap<&'static str, Vec<String>>,
) -> BTreeMap<&'static str, Vec<String>> {
    for rows in tables.values_mut() {
        rows.sort();
    }
    tables
}
