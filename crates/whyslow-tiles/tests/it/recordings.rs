//! The bundled incident: the sums of tiles, series and heat maps equal the results of queries.

#![allow(clippy::print_stdout, reason = "reports sizes")]

use std::sync::OnceLock;

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_store::Tables;
use whyslow_test_recordings::Recorded;
use whyslow_tiles::{CELLS, LEVEL_MAX, Tiles, Track};

use crate::it::support::built;

struct Incident {
    made: Recorded,
    tiles: Tiles,
}

fn incident() -> &'static Incident {
    static INCIDENT: OnceLock<Incident> = OnceLock::new();
    INCIDENT.get_or_init(|| {
        let made = Recorded::of_fixture("web-incident/trace.tar.zst");
        let out = made.folder().join("tiles");
        std::fs::create_dir(&out).expect("a folder");
        let tiles = built(&made.recording, &out);
        let bytes = std::fs::metadata(out.join("tiles")).expect("a file").len();
        let lanes = tiles.tracks().iter().flat_map(|track| &track.lanes);
        let intervals: u64 = lanes.map(|lane| lane.intervals).sum();
        println!(
            "{bytes} bytes, {:.2} per interval",
            bytes as f64 / intervals as f64
        );
        Incident { made, tiles }
    })
}

fn answer(query: &Query) -> Vec<AnswerTable> {
    evaluate(&incident().made.recording, query)
        .expect("an answer")
        .tables
}

fn all(kind: Kind, verb: Verb, by: &[&str]) -> Query {
    Query {
        by: by.iter().map(ToString::to_string).collect(),
        limit: Some(0),
        ..Query::new(kind, verb)
    }
}

fn column(table: &AnswerTable, name: &str) -> Vec<Value> {
    let place = table.columns.iter().position(|column| column.name == name);
    let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", table.columns));
    table.rows.iter().map(|row| row[place].clone()).collect()
}

fn numbers(table: &AnswerTable, name: &str) -> Vec<i64> {
    let number = |value| match value {
        Value::Int(number) => number,
        other => panic!("{name} is {other:?}"),
    };
    column(table, name).into_iter().map(number).collect()
}

fn track(name: &str) -> &'static Track {
    let tracks = incident().tiles.tracks();
    tracks
        .iter()
        .find(|track| track.name == name)
        .expect("a track")
}

/// Time of each group in all lanes according to the cells of a level, and its rounding error.
fn drawn(track: &Track, level: u8) -> ([f64; 4], f64) {
    let tiles = &incident().tiles;
    let cell = 1u64 << level;
    let lanes: Vec<i32> = track.lanes.iter().map(|lane| lane.id).collect();
    let (mut times, mut cells) = ([0.0; 4], 0u64);
    for index in 0..=tiles.span().length() as u64 / (cell * CELLS) {
        for run in tiles.tile(track.name, level, index, &lanes).expect("whole") {
            for (time, share) in times.iter_mut().zip(run.shares) {
                *time += f64::from(share) / 255.0 * f64::from(run.n) * cell as f64;
            }
            cells += u64::from(run.n);
        }
    }
    (times, cells as f64 * cell as f64 / 255.0)
}

fn check_drawn(track: &Track, expected: [i64; 4], levels: &[u8]) {
    for level in levels {
        let (times, off) = drawn(track, *level);
        for (time, expected) in times.iter().zip(expected) {
            let distance = (time - expected as f64).abs();
            assert!(
                distance <= off,
                "{}: {time} for {expected} at {level}",
                track.name
            );
        }
    }
}

#[test]
fn states_take_the_time_that_usage_tells() {
    let tables = answer(&all(Kind::States, Verb::Usage, &["tid"]));
    let sum = |name| numbers(&tables[0], name).iter().sum::<i64>();
    let expected = [
        sum("running_ns"),
        sum("runnable_ns"),
        sum("uninterruptible_ns"),
        sum("sleeping_ns") + sum("other_ns"),
    ];
    let states = track("states");
    let mut times = [0; 4];
    for lane in &states.lanes {
        for (time, more) in times.iter_mut().zip(lane.times_ns) {
            *time += more as i64;
        }
    }
    assert_eq!(times, expected);
    check_drawn(states, expected, &[19, 22, 25, 28, 31, 34, LEVEL_MAX]);
}

#[test]
fn devices_are_busy_as_long_as_usage_tells() {
    let tables = answer(&all(Kind::Block, Verb::Usage, &[]));
    let names = column(&tables[0], "dev");
    let busy = numbers(&tables[0], "busy_ns");
    let block = track("block");
    assert_eq!(block.lanes.len(), names.len());
    for (name, busy) in names.iter().zip(busy) {
        let Value::Text(name) = name else {
            panic!("{name:?}");
        };
        let is_it = |device: &(i64, String)| &device.1 == name;
        let lane = block
            .lanes
            .iter()
            .find(|lane| lane.device.as_ref().is_some_and(is_it));
        let times = lane.expect("a lane").times_ns;
        assert_eq!(times.iter().sum::<u64>() as i64, busy, "{name}");
    }
    assert!(
        block
            .lanes
            .iter()
            .map(|lane| lane.id)
            .eq(0..names.len() as i32)
    );
}

#[test]
fn cpus_are_busy_as_long_as_usage_tells() {
    let table = &answer(&all(Kind::Cpu, Verb::Usage, &["process"]))[0];
    let user = numbers(table, "user_ns").iter().sum::<i64>();
    let system = numbers(table, "system_ns").iter().sum::<i64>();
    let cpus = track("cpus");
    let times = cpus.lanes[0].times_ns.map(|time| time as i64);
    let busy: i64 = times.iter().sum();
    // Parts of slices are rounded to 1/255.
    let near = |a: i64, b: i64| (a - b).abs() <= busy / 255;
    assert!(
        near(times[0], user) && near(times[1], system),
        "{times:?} {user} {system}"
    );
    check_drawn(cpus, times, &[17, 20, 30]);
}

#[test]
fn every_call_and_request_is_in_a_heat_map() {
    let Incident { made, tiles } = incident();
    let recording = &made.recording;
    let window = tiles.span();
    for (name, kind, by) in [
        ("io", Kind::Io, vec!["op"]),
        ("block", Kind::Block, vec!["dev", "op"]),
    ] {
        for columns in [1, 60, 500] {
            let heat = tiles
                .heat(name, window, columns)
                .expect("whole")
                .expect("stored");
            assert!(heat.columns <= columns + 1, "{columns}: {}", heat.columns);
            let end = heat.begin_ns + heat.columns as i64 * heat.width_ns;
            let query = Query {
                window: Some(Window::new(heat.begin_ns, end)),
                interval: Some(heat.width_ns),
                // The tiles have all calls.
                waits: true,
                ..all(kind, Verb::Heat, &by)
            };
            let table = &evaluate(recording, &query).expect("an answer").tables[0];
            let mut expected: Vec<String> = Vec::new();
            for row in &table.rows {
                expected.push(format!("{row:?}"));
            }
            let block = track("block");
            let mut cells: Vec<String> = Vec::new();
            for cell in &heat.cells {
                let mut row: Vec<Value> = Vec::new();
                if let Some(device) = cell.device {
                    let lane = &block.lanes[device as usize];
                    row.push(Value::Text(lane.device.clone().expect("a device").1));
                }
                row.push(Value::Text(cell.op.into()));
                let numbers = [
                    cell.time_ns,
                    cell.from_ns,
                    cell.to_ns,
                    cell.count as i64,
                    cell.intensity_ns,
                ];
                row.extend(numbers.map(Value::Int));
                cells.push(format!("{row:?}"));
            }
            expected.sort();
            cells.sort();
            assert_eq!(cells, expected, "{name} in {columns} columns");
        }
    }
    let narrow = Window::new(window.begin, window.begin + 1000);
    assert_eq!(tiles.heat("io", narrow, 500).expect("whole"), None);
}

#[test]
fn lines_add_up_to_what_was_recorded() {
    let Incident { made, tiles } = incident();
    let recording = &made.recording;
    let span = tiles.span();
    let rows = |table: &str| recording.info().tables[table].rows as f64;
    let length = span.length() as f64;
    for points in [1, 700, 5000] {
        let all = tiles.series(span, points).expect("whole");
        let names: Vec<&str> = all.iter().map(|line| line.name).collect();
        assert_eq!(
            names,
            ["cpu", "blocked", "block_bytes", "block_depth", "calls"]
        );
        let sum = |name: &str| {
            let line = all.iter().find(|line| line.name == name).expect("a line");
            assert!(line.values.len() <= points + 1);
            assert!(line.begin_ns <= span.begin);
            // The last step is cut off at the end of the recording.
            let times = (0..).zip(&line.values).map(|(place, value)| {
                let begin = line.begin_ns + place * line.step_ns;
                value
                    * (line.begin_ns + (place + 1) * line.step_ns)
                        .min(span.end)
                        .saturating_sub(begin)
                        .max(1) as f64
            });
            times.sum::<f64>()
        };
        let check = |name: &str, expected: f64| {
            let found = sum(name);
            let distance = (found - expected).abs();
            assert!(
                distance <= expected * 1e-6 + 1.0,
                "{name}: {found} for {expected}"
            );
        };
        let time = |track: &Track, groups: &[usize]| {
            let lanes = track.lanes.iter();
            let times = lanes.flat_map(|lane| groups.iter().map(|group| lane.times_ns[*group]));
            times.sum::<u64>() as f64
        };
        check("cpu", time(track("cpus"), &[0, 1, 2]));
        check("blocked", time(track("states"), &[2]));
        check("calls", rows("syscall") * 1e9);
        let devices = &answer(&Query::new(Kind::Block, Verb::Usage))[0];
        let bytes = numbers(devices, "read_bytes").iter().sum::<i64>()
            + numbers(devices, "write_bytes").iter().sum::<i64>();
        check("block_bytes", bytes as f64 * 1e9);
        let Some(queue) = devices
            .columns
            .iter()
            .position(|column| column.name == "aqu_sz")
        else {
            panic!("no queue");
        };
        let queue = devices.rows.iter().map(|row| match row[queue] {
            Value::Float(queue) => queue,
            _ => 0.0,
        });
        check("block_depth", queue.sum::<f64>() * length);
    }
}
