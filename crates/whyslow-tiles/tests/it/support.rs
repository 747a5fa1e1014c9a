//! Tables made of intervals, and the expected tiles.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use whyslow_model::tables::{Collected, SchedSliceRow, THREAD_STATES, ThreadStateRow};
use whyslow_model::{Symbols, row::Emit as _};
use whyslow_store::{MemoryTables, RecordingInfo, Tables};
use whyslow_tiles::{CELLS, Run, Tiles, build};

/// An interval of a lane, in ns since the start of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) value: i32,
    /// Parts of 255 in each group.
    pub(crate) parts: [u64; 4],
}

/// Expected content of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// In ns / 255.
    pub(crate) times: [u128; 4],
    pub(crate) longest: u64,
    pub(crate) value: i32,
    pub(crate) count: u64,
}

/// Naive computation of the cells of a tile, interval by interval.
pub(crate) fn naive(pieces: &[Piece], level: u8, index: u64) -> BTreeMap<u16, Cell> {
    let mut cells = BTreeMap::new();
    let width = 1u128 << level;
    let tile = u128::from(index) * u128::from(CELLS) * width;
    for piece in pieces {
        let (begin, end) = (u128::from(piece.begin), u128::from(piece.end));
        let last = end.max(begin + 1) - 1;
        let first_cell = (begin.max(tile) - tile) / width;
        if last < tile || begin >= tile + u128::from(CELLS) * width {
            continue;
        }
        let last_cell = ((last - tile) / width).min(u128::from(CELLS) - 1);
        for cell in first_cell..=last_cell {
            let from = tile + cell * width;
            let length = end.min(from + width).saturating_sub(begin.max(from));
            let known = cells.entry(cell as u16).or_insert(Cell {
                times: [0; 4],
                longest: 0,
                value: i32::MAX,
                count: 0,
            });
            for (time, part) in known.times.iter_mut().zip(piece.parts) {
                *time += length * u128::from(part);
            }
            let whole = piece.end - piece.begin;
            let is_first = begin >= from && begin < from + width;
            known.count += u64::from(is_first);
            if whole > known.longest || (whole == known.longest && piece.value < known.value) {
                (known.longest, known.value) = (whole, piece.value);
            }
        }
    }
    cells
}

/// Compares the runs of a lane with its intervals.
pub(crate) fn check(runs: &[Run], lane: i32, pieces: &[Piece], level: u8, index: u64) {
    let expected = naive(pieces, level, index);
    let width = 1u128 << level;
    let mut cells = expected.iter();
    let mut reached = 0;
    for run in runs.iter().filter(|run| run.lane == lane) {
        assert!(
            run.x >= reached && run.n > 0,
            "{run:?} starts before {reached}"
        );
        reached = run.x + run.n;
        for x in run.x..reached {
            let (at, cell) = cells.next().expect("an empty cell has a run");
            assert_eq!(*at, x, "{run:?}");
            let first = if x == run.x { run.count } else { 0 };
            assert_eq!(
                (run.value, run.longest_ns as u64, u64::from(first)),
                (cell.value, cell.longest, cell.count),
                "{run:?} in cell {x} of level {level}, tile {index}"
            );
            for (share, time) in run.shares.iter().zip(cell.times) {
                let distance = (u128::from(*share) * width).abs_diff(time);
                assert!(distance <= width, "{run:?} in cell {x}: {cell:?}");
            }
        }
    }
    assert_eq!(
        cells.next(),
        None,
        "lane {lane}, level {level}, tile {index}"
    );
}

/// Parts of a thread state: the value is the state, which determines the group.
pub(crate) fn state_parts(value: i32) -> [u64; 4] {
    let mut parts = [0; 4];
    let group = match THREAD_STATES[value as usize] {
        "running" => 0,
        "runnable" => 1,
        "uninterruptible" => 2,
        _ => 3,
    };
    parts[group] = 255;
    parts
}

pub(crate) fn info(begin_ns: i64, end_ns: i64) -> RecordingInfo {
    RecordingInfo {
        begin_ns,
        end_ns,
        ..RecordingInfo::default()
    }
}

pub(crate) fn state(
    (id, utid): (i64, i32),
    ts: i64,
    ts_end: Option<i64>,
    state: whyslow_model::Sym,
) -> ThreadStateRow {
    ThreadStateRow {
        id,
        ts,
        dur: ts_end.map(|end| end.saturating_sub(ts)),
        ts_end,
        utid: Some(utid),
        state,
        ..ThreadStateRow::default()
    }
}

/// A recording of states, in any order.
pub(crate) fn states(lanes: &[(i32, Vec<Piece>)], begin: i64, end: i64) -> MemoryTables {
    let mut symbols = Symbols::new();
    let names = THREAD_STATES.map(|name| symbols.intern(name));
    let mut rows = Collected::default();
    let mut id = 0;
    for (utid, pieces) in lanes {
        for piece in pieces {
            let timestamp = |offset: u64| begin.wrapping_add(offset as i64);
            let name = names[piece.value as usize];
            let end = Some(timestamp(piece.end));
            rows.emit(state((id, *utid), timestamp(piece.begin), end, name));
            id += 1;
        }
    }
    MemoryTables::new(&rows, &symbols, info(begin, end))
}

/// A recording of CPU slices; system and interrupt time are parts of 255 of their duration.
pub(crate) fn slices(lanes: &[(i32, Vec<Piece>)], end: i64) -> MemoryTables {
    let symbols = Symbols::new();
    let mut rows = Collected::default();
    let mut id = 0;
    for (cpu, pieces) in lanes {
        for piece in pieces {
            let length = piece.end - piece.begin;
            let part = |part: u64| (length * part / 255) as i64;
            rows.emit(SchedSliceRow {
                id,
                ts: piece.begin as i64,
                dur: Some(length as i64),
                ts_end: Some(piece.end as i64),
                cpu: *cpu,
                utid: Some(piece.value),
                system_ns: part(piece.parts[1]),
                hardirq_ns: part(piece.parts[2]),
                softirq_ns: 0,
                migrations: 0,
                ..SchedSliceRow::default()
            });
            id += 1;
        }
    }
    MemoryTables::new(&rows, &symbols, info(0, end))
}

pub(crate) fn built(tables: &dyn Tables, folder: &Path) -> Tiles {
    build(tables, folder, &|_| (), &AtomicBool::new(false)).expect("a build");
    Tiles::open(folder).expect("just built")
}

pub(crate) fn tiles_of(tables: &dyn Tables) -> Tiles {
    let folder = tempfile::tempdir().expect("a folder");
    // Open files outlive their folder.
    built(tables, folder.path())
}
