//! Reading returns what was written, in order, whatever the order of writing.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;
use whyslow_model::tables::{self, Collected};
use whyslow_model::{Row, Symbols, Window};
use whyslow_store::{Limits, MemoryTables, Recording, RecordingInfo, Scan, Tables};

use crate::it::support::{self, Random, SMALL};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_table_comes_back(seed: u64, count in 0..600_usize) {
        let symbols = support::symbols();
        let rows = support::any_rows(&mut Random(seed), &symbols, count);
        let parent = tempfile::tempdir().expect("tempdir");
        let target = parent.path().join("a.wsl");
        let info = support::write(&rows, &symbols, &target, SMALL).expect("written");
        let recording = Recording::open(&target).expect("opened");
        prop_assert_eq!(recording.info(), &info);

        let made = support::sorted(support::made(&rows));
        prop_assert_eq!(&support::sorted(support::read(&recording, &symbols)), &made);
        let memory = MemoryTables::new(&rows, &symbols, RecordingInfo::default());
        prop_assert_eq!(&support::sorted(support::read(&memory, &symbols)), &made);
        for (name, table) in &info.tables {
            let in_memory = &memory.info().tables[name];
            prop_assert_eq!(table.unfinished, in_memory.unfinished);
            prop_assert_eq!(table.rows, in_memory.rows);
        }
    }

    #[test]
    fn a_window_loses_no_row_that_overlaps_it(
        seed: u64,
        begin in -200..25_000_i64,
        length in 0..3_000_i64,
    ) {
        let symbols = Symbols::new();
        let rows = intervals(seed, 4000);
        let parent = tempfile::tempdir().expect("tempdir");
        let target = parent.path().join("a.wsl");
        support::write(&rows, &symbols, &target, SMALL).expect("written");
        let recording = Recording::open(&target).expect("opened");
        let memory = MemoryTables::new(&rows, &symbols, RecordingInfo::default());
        let window = Window::new(begin, begin + length);

        let mut syscalls: Vec<i64> = rows.syscall.iter()
            .filter(|row| window.overlaps(row.ts, row.ts_end))
            .map(|row| row.id)
            .collect();
        syscalls.sort_unstable();
        let mut markers: Vec<i64> = rows.marker.iter()
            .filter(|row| window.contains(row.ts))
            .map(|row| row.id)
            .collect();
        markers.sort_unstable();
        for source in [&recording as &dyn Tables, &memory] {
            prop_assert_eq!(&overlapping(source, tables::SyscallRow::TABLE, window), &syscalls);
            prop_assert_eq!(&overlapping(source, tables::MarkerRow::TABLE, window), &markers);
        }
    }
}

/// System calls in order of their ends, some unfinished, a few very long; and markers.
fn intervals(seed: u64, count: i64) -> Collected {
    let mut random = Random(seed);
    let mut rows = Collected::default();
    let symbols = Symbols::new();
    for id in 0..count {
        let mut row: tables::SyscallRow = support::any_row(&mut random, &symbols);
        row.id = id;
        row.ts = id * 5 + random.below(20) as i64;
        row.dur = match random.below(100) {
            0 => None,
            1 => Some(random.below(20_000) as i64),
            _ => Some(random.below(30) as i64),
        };
        row.ts_end = row.dur.map(|dur| row.ts + dur);
        rows.syscall.push(row);
        let mut marker: tables::MarkerRow = support::any_row(&mut random, &symbols);
        marker.id = id;
        marker.ts = id * 5;
        rows.marker.push(marker);
    }
    rows.syscall
        .sort_by_key(|row| (row.ts_end.unwrap_or(i64::MAX), row.id));
    rows
}

/// Ids of rows that overlap, by parts, filtered row by row like in every reader.
fn overlapping(
    source: &dyn Tables,
    table: &'static whyslow_model::Table,
    window: Window,
) -> Vec<i64> {
    let interval = table.column("ts_end").is_some();
    let columns = if interval {
        vec!["id", "ts", "ts_end"]
    } else {
        vec!["id", "ts"]
    };
    let scan = Scan {
        table,
        columns,
        window: Some(window),
    };
    let mut ids = Vec::new();
    let mut visit = |batch: &RecordBatch| {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let ts = column(1).value(row);
            let inside = if interval {
                let end = column(2).is_valid(row).then(|| column(2).value(row));
                window.overlaps(ts, end)
            } else {
                window.contains(ts)
            };
            if inside {
                ids.push(column(0).value(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut rows = 0;
    for part in source.parts(&scan).expect("parts") {
        rows += part.rows();
        part.read(&mut visit).expect("readable");
    }
    assert!(rows >= ids.len() as u64);
    ids.sort_unstable();
    ids
}

#[test]
fn a_window_reads_little() {
    let rows = intervals(3, 20_000);
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    let limits = Limits {
        page_rows: 1024,
        ..Limits::default()
    };
    support::write(&rows, &Symbols::new(), &target, limits).expect("written");
    let recording = Recording::open(&target).expect("opened");
    let scan = Scan {
        table: tables::MarkerRow::TABLE,
        columns: vec!["ts"],
        window: Some(Window::new(50_000, 50_001)),
    };
    let read: u64 = recording
        .parts(&scan)
        .expect("parts")
        .iter()
        .map(|part| part.rows())
        .sum();
    assert!(
        (1..=1024).contains(&read),
        "one page suffices, read {read} rows"
    );
}

#[test]
fn rows_beyond_the_buffer_go_to_the_long_file_and_come_back_in_order() {
    let rows = intervals(7, 20_000);
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    let limits = Limits {
        file_rows: 7_000,
        ..SMALL
    };
    let info = support::write(&rows, &Symbols::new(), &target, limits).expect("written");
    let table = &info.tables["syscall"];
    assert_eq!(
        table.files[..2],
        ["syscall.parquet", "syscall-00001.parquet"]
    );
    assert_eq!(table.long_files, ["syscall_long.parquet"]);
    assert_eq!(table.rows, 20_000);
    assert!(info.tables["marker"].long_files.is_empty());
    // Requests the order of rows without requesting the key columns.
    let recording = Recording::open(&target).expect("opened");
    let scan = Scan {
        table: tables::SyscallRow::TABLE,
        columns: vec!["name", "dur"],
        window: None,
    };
    let mut durations = Vec::new();
    let mut batches = 0;
    recording
        .scan(&scan, &mut |batch| {
            assert_eq!(batch.num_columns(), 2);
            let column = batch.column(1).as_primitive::<Int64Type>();
            durations.extend(column.iter());
            batches += 1;
            Ok(ControlFlow::Continue(()))
        })
        .expect("readable");
    let mut sorted = rows.syscall.clone();
    sorted.sort_by_key(Row::key);
    assert!(durations.iter().eq(sorted.iter().map(|row| &row.dur)));
    assert!(
        batches < 1000,
        "late rows do not cut batches small: {batches}"
    );
}

#[test]
fn text_of_main_and_late_rows_shares_one_dictionary() {
    let mut rows = intervals(9, 6_000);
    let mut symbols = Symbols::new();
    for row in &mut rows.syscall {
        row.name = symbols.intern(&format!("name{}", row.id % 50));
    }
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    support::write(&rows, &symbols, &target, SMALL).expect("written");
    let recording = Recording::open(&target).expect("opened");
    let scan = Scan {
        table: tables::SyscallRow::TABLE,
        columns: vec!["id", "name"],
        window: None,
    };
    let mut seen = 0;
    recording
        .scan(&scan, &mut |batch| {
            let ids = batch.column(0).as_primitive::<Int64Type>();
            let names = batch.column(1).as_dictionary::<Int32Type>();
            let values = names.values().as_string::<i32>();
            let distinct: std::collections::BTreeSet<_> = values.iter().collect();
            assert_eq!(distinct.len(), values.len());
            for row in 0..batch.num_rows() {
                let key = names.key(row).expect("never null");
                assert_eq!(values.value(key), format!("name{}", ids.value(row) % 50));
                seen += 1;
            }
            Ok(ControlFlow::Continue(()))
        })
        .expect("readable");
    assert_eq!(seen, 6_000);
}

#[test]
fn a_scan_ends_when_told() {
    let rows = intervals(1, 5_000);
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    support::write(&rows, &Symbols::new(), &target, SMALL).expect("written");
    let recording = Recording::open(&target).expect("opened");
    for table in [tables::SyscallRow::TABLE, tables::MarkerRow::TABLE] {
        let scan = Scan {
            table,
            columns: vec!["id"],
            window: None,
        };
        let mut batches = 0;
        recording
            .scan(&scan, &mut |_| {
                batches += 1;
                Ok(ControlFlow::Break(()))
            })
            .expect("readable");
        assert_eq!(batches, 1);
    }
}

#[test]
fn a_column_nobody_declared_is_an_error() {
    let memory = MemoryTables::new(
        &Collected::default(),
        &Symbols::new(),
        RecordingInfo::default(),
    );
    let scan = Scan {
        table: tables::CpuRow::TABLE,
        columns: vec!["speed"],
        window: None,
    };
    let error = memory.parts(&scan).err().expect("refused");
    assert_eq!(error.to_string(), "table `cpu` has no column `speed`");
}

#[test]
fn equal_rows_give_equal_bytes() {
    let symbols = support::symbols();
    let rows = support::any_rows(&mut Random(5), &symbols, 500);
    let parent = tempfile::tempdir().expect("tempdir");
    let contents = ["a.wsl", "b.wsl"].map(|name| {
        let target = parent.path().join(name);
        support::write(&rows, &symbols, &target, SMALL).expect("written");
        let mut files: Vec<_> = std::fs::read_dir(&target)
            .expect("readable")
            .map(|entry| entry.expect("entry"))
            .map(|entry| {
                (
                    entry.file_name(),
                    std::fs::read(entry.path()).expect("readable"),
                )
            })
            .collect();
        files.sort();
        files
    });
    let [first, second] = contents;
    assert!(first.len() > tables::ALL.len());
    for (a, b) in first.iter().zip(&second) {
        assert!(a == b, "{:?} and {:?} differ", a.0, b.0);
    }
    assert_eq!(first.len(), second.len());
}
