//! Edge cases: empty, tiny, huge and contradictory recordings.

use whyslow_model::Symbols;
use whyslow_model::row::Emit as _;
use whyslow_model::tables::{BlockIoRow, Collected, THREAD_STATES};
use whyslow_model::{Feed, Row as _, Sym, Window};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_tiles::{LEVEL_MAX, Run, TilesError};

use crate::it::support::{Piece, check, info, state, state_parts, states, tiles_of};

fn piece(begin: u64, end: u64, value: i32) -> Piece {
    Piece {
        begin,
        end,
        value,
        parts: state_parts(value),
    }
}

#[test]
fn nothing_has_no_cells() {
    let tiles = tiles_of(&states(&[], 5, 5));
    assert_eq!(tiles.span(), Window::new(5, 5));
    assert_eq!(tiles.tracks().len(), 6);
    for track in tiles.tracks() {
        assert_eq!(track.lanes, []);
        assert_eq!(tiles.tile(track.name, 0, 0, &[0, -1]).unwrap(), []);
    }
    assert_eq!(tiles.series(Window::ALL, 10).unwrap(), []);
    for kind in ["block", "io"] {
        let heat = tiles.heat(kind, Window::ALL, 10).unwrap();
        assert!(heat.is_none_or(|heat| heat.cells.is_empty()));
    }
}

#[test]
fn what_does_not_exist_is_named() {
    let tiles = tiles_of(&states(&[], 0, 0));
    let message = |error: TilesError| error.to_string();
    let track = tiles.tile("state", 0, 0, &[]).map_err(message).unwrap_err();
    assert_eq!(
        track,
        "unknown track `state` (tracks: states, calls, cpus, locks, block, samples)"
    );
    let level = tiles.tile("states", LEVEL_MAX + 1, 0, &[]);
    assert!(matches!(level, Err(TilesError::NoLevel { level: 51, .. })));
    let heat = tiles.heat("cpu", Window::ALL, 10);
    assert!(matches!(heat, Err(TilesError::NoHeat { .. })));
}

#[test]
fn one_interval_is_one_run() {
    let tiles = tiles_of(&states(&[(7, vec![piece(3000, 5000, 3)])], 100, 9100));
    let run = |x, n| Run {
        lane: 7,
        x,
        n,
        value: 3,
        shares: [0, 0, 255, 0],
        count: 1,
        longest_ns: 2000,
    };
    assert_eq!(tiles.tile("states", 3, 0, &[7]).unwrap(), [run(375, 250)]);
    let part = Run {
        shares: [0, 0, 125, 0],
        ..run(0, 1)
    };
    assert_eq!(tiles.tile("states", 12, 0, &[7]).unwrap()[0].count, 1);
    assert_eq!(tiles.tile("states", 12, 0, &[7, 7]).unwrap().len(), 4);
    let whole = tiles.tile("states", 50, 0, &[7]).unwrap();
    assert_eq!(
        whole,
        [Run {
            shares: [0; 4],
            ..part
        }]
    );
    assert_eq!(tiles.tile("states", 50, u64::MAX, &[7]).unwrap(), []);
    let lane = &tiles.tracks()[0].lanes[0];
    assert_eq!((lane.first_ns, lane.last_ns), (3100, 5100));
    assert_eq!(lane.times_ns, [0, 0, 2000, 0]);
}

#[test]
fn all_of_time_has_cells() {
    let lanes = [(1, vec![piece(0, 1 << 63, 0), piece(1 << 63, u64::MAX, 1)])];
    let tiles = tiles_of(&states(&lanes, i64::MIN, i64::MAX));
    for level in [0, 8, 30, 49, 50] {
        for index in [0, 1, (1 << 63 >> level) / 1024, (u64::MAX >> level) / 1024] {
            let runs = tiles.tile("states", level, index, &[1]).unwrap();
            // Durations saturate at the largest time.
            let at_edge = |run: &&Run| run.longest_ns == i64::MAX;
            assert!(runs.iter().all(|run| at_edge(&run)), "{runs:?}");
        }
    }
    assert_eq!(tiles.span(), Window::ALL);
    let series = tiles.series(Window::ALL, 1).unwrap();
    assert!(series.iter().all(|line| line.values.len() == 1));
}

#[test]
fn rows_that_contradict_each_other_are_told() {
    let mut symbols = Symbols::new();
    let names = THREAD_STATES.map(|name| symbols.intern(name));
    let mut rows = Collected::default();
    let mut add = |utid: Option<i32>, ts, ts_end, value: usize| {
        let id = rows.thread_state.len() as i64;
        let mut row = state((id, 0), ts, ts_end, names[value]);
        row.utid = utid;
        rows.emit(row);
    };
    add(Some(1), 0, Some(100), 0);
    add(Some(1), 50, Some(120), 1); // overlaps the previous one
    add(Some(1), 60, Some(90), 2); // lies within it
    add(Some(1), 130, None, 3); // ends when the next one starts
    add(Some(1), 150, Some(140), 4); // ends before it starts
    add(Some(1), 180, None, 5); // ends with the recording
    add(None, 10, Some(20), 0);
    add(Some(1), -50, Some(-10), 0);
    add(Some(1), 1000, Some(2000), 0);
    let tiles = tiles_of(&MemoryTables::new(&rows, &symbols, info(0, 200)));
    let expected = [
        piece(0, 100, 0),
        piece(100, 120, 1),
        piece(130, 150, 3),
        piece(150, 150, 4),
        piece(180, 200, 5),
    ];
    for level in 0..=LEVEL_MAX {
        let runs = tiles.tile("states", level, 0, &[1]).unwrap();
        check(&runs, 1, &expected, level, 0);
    }
    let left_out = tiles.tracks()[0].left_out;
    let counts = [
        left_out.cut,
        left_out.hidden,
        left_out.outside,
        left_out.without_lane,
    ];
    assert_eq!(counts, [1, 1, 2, 1]);
}

#[test]
fn any_number_of_moments_lies_in_a_cell() {
    let moments = |at| (0..700).map(move |number| piece(at, at, number % 3));
    let mut pieces: Vec<Piece> = moments(1000).collect();
    pieces.push(piece(1000, 1100, 1));
    pieces.extend(moments(1100));
    pieces.extend(moments(1101));
    let lanes = [(1, pieces)];
    let tiles = tiles_of(&states(&lanes, 0, 5000));
    for level in 0..=LEVEL_MAX {
        for index in 0..3 {
            let runs = tiles.tile("states", level, index, &[1]).unwrap();
            check(&runs, 1, &lanes[0].1, level, index);
        }
    }
}

#[test]
fn there_may_be_many_lanes() {
    const LANES: i32 = 100_000;
    let lane = |lane: i32| {
        let at = lane as u64 * 10;
        (
            lane,
            vec![piece(at, at + 7, lane % 5), piece(at + 7, at + 9, 1)],
        )
    };
    let lanes: Vec<_> = (0..LANES).map(lane).collect();
    let tiles = tiles_of(&states(&lanes, 0, i64::from(LANES) * 10));
    assert_eq!(tiles.tracks()[0].lanes.len(), LANES as usize);
    for wanted in [0, 1, 49_999, LANES - 1] {
        let (_, pieces) = &lanes[wanted as usize];
        for level in [0, 5, 10, 20] {
            let index = (pieces[0].begin >> level) / 1024;
            let runs = tiles.tile("states", level, index, &[wanted]).unwrap();
            check(&runs, wanted, pieces, level, index);
        }
    }
}

/// Hostile device names are kept as they are.
#[test]
fn devices_may_have_any_name() {
    let mut symbols = Symbols::new();
    let long = "\u{202e}<script>\0\n".repeat(256);
    let (name, op) = (symbols.intern(&long), symbols.intern("read"));
    let mut rows = Collected::default();
    for (id, dev) in [(0, i64::MAX), (1, i64::MIN), (2, 8 << 20)] {
        rows.emit(BlockIoRow::get(&mut Request { id, dev, name, op }));
    }
    let tables = MemoryTables::new(
        &rows,
        &symbols,
        RecordingInfo {
            end_ns: 100,
            ..info(0, 100)
        },
    );
    let tiles = tiles_of(&tables);
    let block = tiles
        .tracks()
        .iter()
        .find(|track| track.name == "block")
        .unwrap();
    let devices: Vec<_> = block
        .lanes
        .iter()
        .map(|lane| (lane.id, lane.device.clone()))
        .collect();
    let device = |number: i64| Some((number, long.clone()));
    assert_eq!(
        devices,
        [
            (0, device(i64::MIN)),
            (1, device(8 << 20)),
            (2, device(i64::MAX))
        ]
    );
    let heat = tiles
        .heat("block", Window::new(0, 100), 1)
        .unwrap()
        .unwrap();
    assert_eq!(heat.cells.iter().map(|cell| cell.count).sum::<u64>(), 3);
    assert!(heat.cells.iter().all(|cell| cell.op == "read"));
}

struct Request {
    id: i64,
    dev: i64,
    name: Sym,
    op: Sym,
}

impl Feed for Request {
    fn i64(&mut self, column: usize) -> Option<i64> {
        Some(match BlockIoRow::TABLE.columns[column].name {
            "dev" => self.dev,
            "ts_end" => self.id + 10,
            "dur" => 10,
            _ => self.id,
        })
    }
    fn i32(&mut self, _: usize) -> Option<i32> {
        Some(0)
    }
    fn f64(&mut self, _: usize) -> Option<f64> {
        None
    }
    fn bool(&mut self, _: usize) -> Option<bool> {
        None
    }
    fn sym(&mut self, column: usize) -> Option<Sym> {
        let is_op = BlockIoRow::TABLE.columns[column].name == "op";
        Some(if is_op { self.op } else { self.name })
    }
}
