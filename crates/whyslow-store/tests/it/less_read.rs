//! Partial reads return the same rows as reading everything.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, SyscallRow};
use whyslow_model::{Row, Window};
use whyslow_store::{Limits, Recording, Scan, Tables};

use crate::it::support::{self, Random, SMALL};

/// Calls with a known end, and one in five without if `open`.
fn calls(count: i64, open: bool, symbols: &Symbols) -> Collected {
    let template = support::any_rows(&mut Random(5), symbols, 1).syscall[0];
    let mut random = Random(7);
    let mut rows = Collected::default();
    for id in 0..count {
        let mut row = template;
        (row.id, row.ts) = (id, id * 10);
        let dur = random.below(500) as i64;
        let is_open = open && random.below(5) == 0;
        row.dur = (!is_open).then_some(dur);
        row.ts_end = row.dur.map(|dur| row.ts + dur);
        row.name = whyslow_model::Sym(random.below(9) as u32);
        rows.syscall.push(row);
    }
    rows
}

fn recorded(rows: &Collected, symbols: &Symbols, limits: Limits) -> (tempfile::TempDir, Recording) {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    support::write(rows, symbols, &target, limits).expect("written");
    let recording = Recording::open(&target).expect("opened");
    (parent, recording)
}

fn scan(columns: &[&'static str], window: Option<Window>) -> Scan {
    Scan {
        table: SyscallRow::TABLE,
        columns: columns.to_vec(),
        window,
    }
}

fn each(recording: &Recording, scan: &Scan, mut each: impl FnMut(&RecordBatch)) -> usize {
    let parts = recording.parts(scan).expect("parts");
    for part in &parts {
        part.read(&mut |batch| {
            each(batch);
            Ok(ControlFlow::Continue(()))
        })
        .expect("readable");
    }
    parts.len()
}

/// The last of these columns.
fn numbers(recording: &Recording, columns: &[&'static str]) -> Vec<Option<i64>> {
    let mut found = Vec::new();
    each(recording, &scan(columns, None), |batch| {
        let last = batch.column(columns.len() - 1).as_primitive::<Int64Type>();
        found.extend(last.iter());
    });
    found
}

#[test]
fn ends_are_the_same_however_they_are_read() {
    let symbols = support::symbols();
    for open in [false, true] {
        for limits in [SMALL, Limits::default()] {
            let mut rows = calls(3_000, open, &symbols);
            let (_parent, recording) = recorded(&rows, &symbols, limits);
            assert!(recording.info().tables["syscall"].ends_follow);
            let made: Vec<_> = rows.syscall.iter().map(|row| row.ts_end).collect();
            for columns in [
                ["ts_end"].as_slice(),
                &["ts", "ts_end"],
                &["ts", "dur", "ts_end"],
            ] {
                assert_eq!(numbers(&recording, columns), made, "{columns:?}");
            }
            // An end that does not equal start plus duration is not computed.
            rows.syscall[1_234].ts_end = Some(99);
            rows.syscall[1_234].dur = Some(1);
            let (_parent, recording) = recorded(&rows, &symbols, limits);
            assert!(!recording.info().tables["syscall"].ends_follow);
            let found = numbers(&recording, &["ts", "dur", "ts_end"]);
            assert_eq!(found[1_234], Some(99));
        }
    }
}

#[test]
fn the_words_of_a_column_are_those_of_its_rows() {
    let symbols = support::symbols();
    let rows = calls(3_000, false, &symbols);
    for limits in [SMALL, Limits::default()] {
        let (_parent, recording) = recorded(&rows, &symbols, limits);
        let mut expected = BTreeSet::new();
        each(&recording, &scan(&["name"], None), |batch| {
            let texts = batch.column(0).as_dictionary::<Int32Type>();
            let words = texts.values().as_string::<i32>();
            let keys = (0..batch.num_rows()).filter_map(|row| texts.key(row));
            expected.extend(keys.map(|key| words.value(key).to_owned()));
        });
        let found = recording
            .words(SyscallRow::TABLE, "name")
            .expect("readable");
        assert_eq!(expected.len(), 9);
        // Dictionaries that grow too large leave some words to the pages.
        assert!(found.is_none_or(|found| found == expected));
    }
    let (_parent, recording) = recorded(&rows, &symbols, Limits::default());
    let found = recording
        .words(SyscallRow::TABLE, "name")
        .expect("readable");
    assert_eq!(found.map(|found| found.len()), Some(9));
}

#[test]
fn one_row_group_is_read_in_pieces() {
    let symbols = support::symbols();
    let rows = calls(70_000, false, &symbols);
    let (_parent, recording) = recorded(&rows, &symbols, Limits::default());
    for window in [None, Some(Window::new(50_000, 650_000))] {
        let scan = scan(&["id"], window);
        let mut ids = Vec::new();
        let parts = each(&recording, &scan, |batch| {
            ids.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        });
        // Cached columns are split into smaller parts.
        let pieces = window.map_or(2, |_| (ids.len() / 10_000).min(8));
        assert_eq!(parts, pieces);
        let mut in_order = Vec::new();
        recording
            .scan(&scan, &mut |batch| {
                in_order.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
                Ok(ControlFlow::Continue(()))
            })
            .expect("readable");
        assert_eq!(ids, in_order);
        // Single rows are found in the same parts.
        let mut picked = Vec::new();
        for part in recording.parts(&scan).expect("parts") {
            let last = part.rows() - 1;
            part.read_rows(&[0, last], &mut |batch| {
                picked.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
                Ok(ControlFlow::Continue(()))
            })
            .expect("readable");
        }
        let edge = |piece: usize| piece * ids.len() / pieces;
        let ends: Vec<i64> = (0..pieces)
            .flat_map(|piece| [ids[edge(piece)], ids[edge(piece + 1) - 1]])
            .collect();
        assert_eq!(picked, ends);
    }
}

/// Columns of a window are cached one by one: they are the same whatever was requested before, and
/// another window has its own.
#[test]
fn columns_of_a_window_are_the_same_in_any_company() {
    let symbols = support::symbols();
    for (open, limits) in [
        (false, Limits::default()),
        (true, Limits::default()),
        (true, SMALL),
    ] {
        let rows = calls(40_000, open, &symbols);
        let (_parent, recording) = recorded(&rows, &symbols, limits);
        for window in [Window::new(90_000, 300_000), Window::new(200_000, 200_100)] {
            let window = Some(window);
            for columns in [
                ["id", "ts_end"].as_slice(),
                &["ts", "dur"],
                &["name", "ts", "ts_end", "id"],
                &["dur", "ts_end", "ts", "path2"],
                &[],
            ] {
                let scan = scan(columns, window);
                let (parent, fresh) = recorded(&rows, &symbols, limits);
                let expected = rows_of(&fresh, &scan);
                drop(parent);
                assert_eq!(rows_of(&recording, &scan), expected, "{columns:?}");
                assert_eq!(rows_of(&recording, &scan), expected, "{columns:?} again");
            }
            // Complete rows, all of which are in the window.
            let scan = scan(&["id", "ts", "ts_end"], window);
            let found: BTreeSet<String> = rows_of(&recording, &scan).into_iter().collect();
            for row in &rows.syscall {
                if window.is_some_and(|window| window.overlaps(row.ts, row.ts_end)) {
                    let end = row.ts_end.map_or_else(String::new, |end| end.to_string());
                    let cells = format!("{}|{}|{end}|", row.id, row.ts);
                    assert!(found.contains(&cells), "{cells}");
                }
            }
        }
    }
}

/// The cells of each row in the parts, in order.
fn rows_of(recording: &Recording, scan: &Scan) -> Vec<String> {
    let mut found = Vec::new();
    each(recording, scan, |batch| {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell(column, row) + "|");
            found.push(cells.collect());
        }
    });
    found
}

fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        return numbers.value(row).to_string();
    }
    let texts = column.as_dictionary::<Int32Type>();
    let word = texts.keys().value(row) as usize;
    texts.values().as_string::<i32>().value(word).to_owned()
}
