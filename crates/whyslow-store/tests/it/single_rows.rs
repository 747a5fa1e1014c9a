//! Reading single rows of a part returns the same rows as reading all of it.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;
use whyslow_model::tables::{self, Collected};
use whyslow_model::{Row, Symbols, Table, Window};
use whyslow_store::{Limits, MemoryTables, Part, Recording, RecordingInfo, Scan, Tables};

use crate::it::support::{self, Random, SMALL};

/// Rows of a batch as text; words as they are, independent of dictionary numbers.
fn show(batch: &RecordBatch, shown: &mut Vec<String>) {
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter().map(|column| {
            if column.is_null(row) {
                return "-".to_owned();
            }
            if let Some(texts) = column.as_dictionary_opt::<Int32Type>() {
                let key = texts.key(row).expect("not null");
                return texts.values().as_string::<i32>().value(key).to_owned();
            }
            format!("{:?}", column.slice(row, 1))
        });
        shown.push(cells.collect::<Vec<_>>().join("|"));
    }
}

fn all(part: &dyn Part) -> Vec<String> {
    let mut shown = Vec::new();
    part.read(&mut |batch| {
        show(batch, &mut shown);
        Ok(ControlFlow::Continue(()))
    })
    .expect("readable");
    shown
}

fn picked(part: &dyn Part, numbers: &[u64]) -> Vec<String> {
    let mut shown = Vec::new();
    part.read_rows(numbers, &mut |batch| {
        show(batch, &mut shown);
        Ok(ControlFlow::Continue(()))
    })
    .expect("readable");
    shown
}

/// Picks rows of each part of a scan of these columns, and of a scan of all columns.
fn check(source: &dyn Tables, table: &'static Table, window: Option<Window>, random: &mut Random) {
    let every: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let few = Scan {
        table,
        columns: vec![every[0]],
        window,
    };
    let whole = Scan {
        columns: every,
        ..few.clone()
    };
    let few = source.parts(&few).expect("parts");
    let whole = source.parts(&whole).expect("parts");
    assert_eq!(few.len(), whole.len(), "pieces do not depend on columns");
    for (few, part) in few.iter().zip(&whole) {
        assert_eq!(few.rows(), part.rows());
        let rows = all(part.as_ref());
        assert_eq!(rows.len() as u64, part.rows());
        for one_in in [1, 2, 7, 100] {
            let numbers: Vec<u64> = (0..part.rows())
                .filter(|_| random.below(one_in) == 0)
                .collect();
            let expected: Vec<&String> = numbers.iter().map(|at| &rows[*at as usize]).collect();
            let found = picked(part.as_ref(), &numbers);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
        assert!(picked(part.as_ref(), &[]).is_empty());
        assert!(picked(part.as_ref(), &[part.rows(), part.rows() + 5]).is_empty());
    }
}

fn check_files_and_memory(rows: &Collected, symbols: &Symbols, limits: Limits, seed: u64) {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    support::write(rows, symbols, &target, limits).expect("written");
    let recording = Recording::open(&target).expect("opened");
    let memory = MemoryTables::new(rows, symbols, RecordingInfo::default());
    let mut random = Random(seed);
    for source in [&recording as &dyn Tables, &memory] {
        for window in [
            None,
            Some(Window::new(0, 500)),
            Some(Window::new(9_000, 9_100)),
        ] {
            check(source, tables::SyscallRow::TABLE, window, &mut random);
            check(source, tables::ThreadRow::TABLE, window, &mut random);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn rows_of_all_kinds_are_picked(seed: u64, count in 0..600_usize) {
        let symbols = support::symbols();
        let rows = support::any_rows(&mut Random(seed), &symbols, count);
        check_files_and_memory(&rows, &symbols, SMALL, seed);
    }
}

#[test]
fn text_that_most_rows_lack_is_picked() {
    let mut symbols = support::symbols();
    let template = support::any_rows(&mut Random(5), &symbols, 1).syscall;
    let texts: Vec<_> = (0..40)
        .map(|at| symbols.intern(&format!("/var/lib/{at}")))
        .collect();
    let mut rows = Collected::default();
    for id in 0..6_000_i64 {
        let mut row = template[0];
        (row.id, row.ts) = (id, id * 10);
        (row.ts_end, row.dur) = (Some(id * 10 + 5), Some(5));
        // Some row groups have none, some one, some a few.
        let has = (1_000..5_000).contains(&id) && id % 487 == 0 || (2_000..2_050).contains(&id);
        row.path = has.then(|| texts[(id % 40) as usize]);
        row.path2 = None;
        rows.syscall.push(row);
    }
    for limits in [SMALL, Limits::default()] {
        check_files_and_memory(&rows, &symbols, limits, 11);
    }
}
