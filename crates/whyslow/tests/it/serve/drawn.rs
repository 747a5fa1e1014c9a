//! Charts show the same as the rows of answers, at every zoom level.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::client::Server;
use crate::common::Place;

const CELLS: i64 = 1024;

/// An interval of a thread, ns since the start of the recording.
struct Piece {
    begin: i64,
    end: i64,
    value: String,
}

/// A track from answers: lanes with their thread, and intervals by thread.
struct Track {
    name: &'static str,
    values: Vec<String>,
    lanes: Vec<(i64, i64)>,
    pieces: BTreeMap<i64, Vec<Piece>>,
}

struct Shown {
    server: Server,
    length: i64,
    tracks: Vec<Track>,
    /// Number of compared cells.
    compared: std::cell::Cell<u64>,
    _place: Place,
}

impl Shown {
    fn new() -> Self {
        let place = Place::new();
        let trace = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/web-incident/trace.tar.zst"
        );
        let server = Server::start(&place, &[trace]);
        server.await_charts();
        let recording = server.json("recordings")["recordings"][0].clone();
        let begin = recording["begin_ns"].as_i64().expect("a begin");
        let end = recording["end_ns"].as_i64().expect("an end");
        let tracks = [("states", "states", "state"), ("calls", "syscalls", "op")];
        let tracks = tracks.map(|of| track(&server, of, (begin, end)));
        Self {
            server,
            length: end - begin,
            tracks: tracks.into(),
            compared: std::cell::Cell::default(),
            _place: place,
        }
    }

    /// A tile of a lane with its thread.
    fn check(&self, track: &Track, lane: (i64, i64), level: u32, index: i64) {
        let none = Vec::new();
        let pieces = track.pieces.get(&lane.1).unwrap_or(&none);
        let mut cells = wanted(pieces, level, index);
        let path = format!(
            "tile?track={}&level={level}&index={index}&lanes={}",
            track.name, lane.0
        );
        let answer = self.server.json(&path);
        for run in answer["rows"].as_array().expect("rows") {
            let number = |at: usize| run[at].as_i64().expect("a number");
            assert_eq!(number(0), lane.0, "{path}");
            let value = &track.values[number(3) as usize];
            for x in number(1)..number(1) + number(2) {
                let cell = cells.remove(&x);
                let cell = cell.unwrap_or_else(|| panic!("{path}: nothing is in cell {x}: {run}"));
                let count = if x == number(1) { number(8) } else { 0 };
                assert_eq!((count, number(9)), (cell.count, cell.longest), "{path} {x}");
                assert!(cell.values.contains(value), "{path} {x}: {value} {cell:?}");
                self.compared.set(self.compared.get() + 1);
            }
        }
        assert!(cells.is_empty(), "{path}: missing {cells:?}");
    }
}

fn track(
    server: &Server,
    (name, what, value): (&'static str, &str, &str),
    (begin, end): (i64, i64),
) -> Track {
    let answer = server.json(&format!("tracks?track={name}&limit=100000"));
    let answer = &answer["tracks"][0];
    let texts = |of: &Value| of.as_array().expect("a list").clone();
    let values = texts(&answer["values"]);
    let values = values.iter().map(|text| text.as_str().expect("a name"));
    let mut lanes: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for lane in texts(&answer["lanes"]) {
        if let (Some(tid), Some(lane)) = (lane["tid"].as_i64(), lane["lane"].as_i64()) {
            lanes.entry(tid).or_default().push(lane);
        }
    }
    // Rows do not distinguish threads that reused the same id.
    let lanes = lanes.into_iter().filter(|(_, lanes)| lanes.len() == 1);
    let mut pieces: BTreeMap<i64, Vec<Piece>> = BTreeMap::new();
    let log = server.json(&format!("table?what={what}&view=log&limit=0"));
    for row in texts(&log["tables"][0]["rows"]) {
        let ts = row["ts_ns"].as_i64().expect("a begin");
        let piece = Piece {
            begin: ts - begin,
            // An interval without an end lasts until the end of the recording.
            end: row["ts_end_ns"].as_i64().unwrap_or(end) - begin,
            value: row[value].as_str().unwrap_or_default().to_owned(),
        };
        let tid = row["tid"].as_i64().expect("a thread");
        pieces.entry(tid).or_default().push(piece);
    }
    Track {
        name,
        values: values.map(str::to_owned).collect(),
        lanes: lanes.map(|(tid, lanes)| (lanes[0], tid)).collect(),
        pieces,
    }
}

/// Contents of a cell: what starts in it, and the longest interval that overlaps it.
#[derive(Debug, Default, PartialEq)]
struct Cell {
    count: i64,
    longest: i64,
    values: Vec<String>,
}

/// Cells of a tile, computed from rows.
fn wanted(pieces: &[Piece], level: u32, index: i64) -> BTreeMap<i64, Cell> {
    let mut cells: BTreeMap<i64, Cell> = BTreeMap::new();
    let tile = (index * CELLS) << level;
    let end = tile + (CELLS << level);
    for piece in pieces {
        let last = piece.end.max(piece.begin + 1) - 1;
        if last < tile || piece.begin >= end {
            continue;
        }
        let first = (piece.begin.max(tile) - tile) >> level;
        for x in first..=(last.min(end - 1) - tile) >> level {
            let cell = cells.entry(x).or_default();
            let from = tile + (x << level);
            cell.count += i64::from((from..from + (1 << level)).contains(&piece.begin));
            let length = piece.end - piece.begin;
            if length > cell.longest || cell.values.is_empty() {
                (cell.longest, cell.values) = (length, vec![piece.value.clone()]);
            } else if length == cell.longest {
                cell.values.push(piece.value.clone());
            }
        }
    }
    cells
}

#[test]
fn tiles_say_what_rows_say() {
    let shown = Shown::new();
    let lane = any::<prop::sample::Index>();
    let places = (0..2_usize, lane, 8..34_u32, 0.0..1.0_f64);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let done = runner.run(&places, |(track, lane, level, at)| {
        let track = &shown.tracks[track];
        let index = (shown.length as f64 * at) as i64 / (CELLS << level);
        shown.check(track, *lane.get(&track.lanes), level, index);
        Ok(())
    });
    if let Err(error) = done {
        panic!("{error}");
    }
    assert!(shown.compared.get() > 1_000, "{:?}", shown.compared);
}
