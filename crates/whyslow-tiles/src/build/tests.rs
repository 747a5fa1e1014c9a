//! The buffer limit is kept, and tiles do not depend on it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use whyslow_model::row::Emit as _;
use whyslow_model::tables::{Collected, ThreadStateRow};
use whyslow_model::{Row as _, Symbols};
use whyslow_store::{MemoryTables, RecordingInfo};

use super::{BuildOptions, build_within};
use crate::{Run, Tiles, TilesError};

const LANES: i32 = 300;
const ROWS: i64 = 60_000;

/// Rows of many threads round robin, with durations of all magnitudes.
fn tables() -> MemoryTables {
    let mut symbols = Symbols::new();
    let states = ["running", "runnable", "sleeping"].map(|state| symbols.intern(state));
    let mut rows = Collected::default();
    for id in 0..ROWS {
        let ts = id * 1000;
        let dur = 1 << (id * 7 % 18);
        let mut row = empty(id, states[(id % 3) as usize]);
        (row.ts, row.dur, row.ts_end) = (ts, Some(dur), Some(ts + dur));
        row.utid = Some((id % i64::from(LANES)) as i32);
        rows.emit(row);
    }
    let info = RecordingInfo {
        end_ns: ROWS * 1000,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

/// A row that is null except for its required columns.
fn empty(id: i64, state: whyslow_model::Sym) -> ThreadStateRow {
    struct Nothing(i64, whyslow_model::Sym);
    impl whyslow_model::Feed for Nothing {
        fn i64(&mut self, column: usize) -> Option<i64> {
            let name = ThreadStateRow::TABLE.columns[column].name;
            matches!(name, "id" | "ts").then_some(self.0)
        }
        fn i32(&mut self, _: usize) -> Option<i32> {
            None
        }
        fn f64(&mut self, _: usize) -> Option<f64> {
            None
        }
        fn bool(&mut self, _: usize) -> Option<bool> {
            None
        }
        fn sym(&mut self, column: usize) -> Option<whyslow_model::Sym> {
            (ThreadStateRow::TABLE.columns[column].name == "state").then_some(self.1)
        }
    }
    ThreadStateRow::get(&mut Nothing(id, state))
}

fn built(tables: &MemoryTables, out: &Path, buffered_max: usize) -> usize {
    let options = BuildOptions {
        recording: "",
        out,
        buffered_max,
    };
    let never = AtomicBool::new(false);
    build_within(tables, &options, &|_| (), &never).expect("a build")
}

#[test]
fn what_waits_is_bounded_and_changes_no_tile() {
    let tables = tables();
    let folder = || tempfile::tempdir().expect("a folder");
    let (wide, narrow) = (folder(), folder());
    // What one lane may add before the limit is checked: a growing block.
    const SLACK: usize = 64 << 10;
    const NARROW: usize = 200 << 10;
    let most_wide = built(&tables, wide.path(), usize::MAX);
    let most_narrow = built(&tables, narrow.path(), NARROW);
    assert!(
        most_wide > 2 * NARROW,
        "{most_wide} bytes are too few to test the limit"
    );
    assert!(
        most_narrow <= NARROW + SLACK,
        "{most_narrow} bytes were buffered"
    );
    let open = |folder: &tempfile::TempDir| Tiles::open(folder.path()).expect("just built");
    let (wide, narrow) = (open(&wide), open(&narrow));
    let lanes: Vec<i32> = (0..LANES).collect();
    for level in 0..40 {
        for index in [0, 1, 3, 700] {
            let cells = |tiles: &Tiles| cells(&tiles.tile("states", level, index, &lanes));
            let (wide, narrow) = (cells(&wide), cells(&narrow));
            assert_eq!(wide.len(), narrow.len(), "level {level}, tile {index}");
            for (a, b) in wide.iter().zip(&narrow) {
                // A sum that was split in two is rounded twice.
                let near = a.shares.iter().zip(b.shares);
                assert!(near.clone().all(|(a, b)| a.abs_diff(b) <= 1), "{a:?} {b:?}");
                let plain = |run: &Run| Run {
                    shares: [0; 4],
                    ..*run
                };
                assert_eq!(plain(a), plain(b), "level {level}, tile {index}");
            }
        }
    }
}

/// Splits runs into runs of one cell each.
fn cells(runs: &Result<Vec<Run>, TilesError>) -> Vec<Run> {
    let runs = runs.as_ref().expect("undamaged tiles");
    let of_run = |run: &Run| {
        let run = *run;
        (0..run.n).map(move |number| Run {
            x: run.x + number,
            n: 1,
            count: if number == 0 { run.count } else { 0 },
            ..run
        })
    };
    runs.iter().flat_map(of_run).collect()
}

#[test]
fn who_gives_up_is_heard_at_the_next_batch() {
    let tables = tables();
    let folder = tempfile::tempdir().expect("a folder");
    let (batches, cancel) = (AtomicUsize::new(0), AtomicBool::new(false));
    let progress = |_| {
        if batches.fetch_add(1, Ordering::Relaxed) == 1 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let done = super::build(&tables, folder.path(), &progress, &cancel);
    assert!(matches!(done, Err(TilesError::Cancelled)), "{done:?}");
    let batches = batches.load(Ordering::Relaxed);
    assert!(batches <= 3, "{batches} batches were read");
    assert!(Tiles::open(folder.path()).is_err());
}
