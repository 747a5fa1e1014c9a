//! Queries about requests on the command line.

use std::path::Path;

use serde_json::Value;
use whyslow_model::Symbols;
use whyslow_model::row::Emit as _;
use whyslow_model::tables::{RequestPhaseRow, RequestRow};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter};

use crate::common::Place;

const BEGIN: i64 = 1_700_000_000_000_000_000;
const MS: i64 = 1_000_000;

/// Ten requests, 0.1 s apart; the fourth takes 80 ms and fails.
fn write(path: &Path) {
    let mut symbols = Symbols::new();
    let mut writer = RecordingWriter::create(path, Existing::Refuse).expect("it can be written");
    for id in 0..10 {
        let (ts, dur) = (
            BEGIN + id * 100 * MS,
            if id == SLOW { 80 * MS } else { 5 * MS },
        );
        writer.emit(RequestPhaseRow {
            id,
            ts,
            dur: Some(dur),
            ts_end: Some(ts + dur),
            request: id,
            phase: symbols.intern("wait"),
            endpoint: Some(symbols.intern("/api/users")),
            client: Some(symbols.intern("10.0.0.7")),
        });
        writer.emit(request(id, (ts, dur), &mut symbols));
    }
    let info = RecordingInfo {
        begin_ns: BEGIN,
        end_ns: BEGIN + 1000 * MS,
        ..RecordingInfo::default()
    };
    writer.finish(&symbols, info).expect("it is whole");
}

/// The failed request.
const SLOW: i64 = 3;

fn request(id: i64, (ts, dur): (i64, i64), symbols: &mut Symbols) -> RequestRow {
    let is_slow = id == SLOW;
    let mut intern = |text: &str| symbols.intern(text);
    RequestRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        role: intern("client"),
        source: intern("load"),
        protocol: Some(intern("HTTP/1.1")),
        method: Some(intern("GET")),
        host: Some(intern("web:8080")),
        endpoint: Some(intern("/api/users")),
        status: Some(if is_slow { 503 } else { 200 }),
        outcome: intern(if is_slow { "error" } else { "ok" }),
        client: Some(intern("10.0.0.7")),
        connection: Some(1),
        is_reused: Some(id > 0),
        worker: Some(1),
        seq: Some(id),
        wait_ns: Some(dur),
        ..RequestRow::default()
    }
}

fn place() -> Place {
    let place = Place::new();
    write(&place.join("web.wsl"));
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    let run = place.whyslow().args(args).arg("--json").assert().success();
    serde_json::from_slice(&run.get_output().stdout).expect("one JSON document")
}

/// A column of the first table.
fn cells(answer: &Value, column: &str) -> Vec<String> {
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    rows.iter().map(|row| row[column].to_string()).collect()
}

#[test]
fn requests_are_chosen_by_their_keys() {
    let place = place();
    let check = |args: &[&str], column: &str, want: &[&str]| {
        let found = cells(&json(&place, args), column);
        assert_eq!(found, want, "{args:?}");
    };
    let list = ["requests", "list", "web.wsl"];
    let filtered = |flags: &[&str], want: &[&str]| check(&[&list[..], flags].concat(), "id", want);
    filtered(&["--status", "5xx"], &["\"request:3\""]);
    filtered(&["--outcome", "error,timeout"], &["\"request:3\""]);
    filtered(&["--errors"], &["\"request:3\""]);
    filtered(
        &["--min", "50ms", "--endpoint", "/api/*"],
        &["\"request:3\""],
    );
    filtered(&["-w", "request:3"], &["\"request:3\""]);
    filtered(&["--client", "10.0.0.8"], &[]);
    check(&["requests", "web.wsl"], "count", &["1", "9"]);
    let by_phase = [
        "requests", "stats", "web.wsl", "--by", "phase", "--status", "503",
    ];
    check(&by_phase, "total_ns", &["80000000"]);
    let of_one = ["requests", "threads", "web.wsl", "-w", "request:3"];
    check(&of_one, "phase", &["\"wait\""]);
}

#[test]
fn what_is_no_request_is_refused() {
    let place = place();
    let check = |args: &[&str], part: &str| {
        let run = place.whyslow().args(args).assert().failure();
        let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(message.contains(part), "{args:?}: {message}");
    };
    check(
        &["requests", "web.wsl", "-w", "request:99"],
        "no operation 99",
    );
    check(
        &["requests", "web.wsl", "--status", "bad"],
        "is not a valid status",
    );
    check(
        &["requests", "web.wsl", "--by", "lock"],
        "unknown key `lock`",
    );
    check(
        &["io", "stats", "web.wsl", "--status", "200"],
        "unexpected argument",
    );
}

#[test]
fn a_recording_without_requests_cannot_tell() {
    let place = Place::new();
    let path = place.join("none.wsl");
    let writer = RecordingWriter::create(&path, Existing::Refuse).expect("it can be written");
    let info = RecordingInfo {
        begin_ns: BEGIN,
        end_ns: BEGIN + MS,
        ..RecordingInfo::default()
    };
    writer.finish(&Symbols::new(), info).expect("it is whole");
    let answer = json(&place, &["requests", "none.wsl"]);
    let text = answer["caveats"].to_string();
    assert_eq!(answer["state"], "unknown");
    assert!(
        text.contains("cannot tell whether requests were recorded"),
        "{text}"
    );
}

fn fixture(name: &str) -> String {
    let path = whyslow_testkit::fixture("requests");
    path.join(name).display().to_string()
}

/// Numbers computed by Python from the lines of the log: sums in ns, medians by rank.
#[test]
fn a_broker_tells_how_long_clients_waited_and_had_its_threads() {
    let place = Place::new();
    let log = fixture("kafka-broker.log.gz");
    let answer = json(&place, &["requests", "stats", &log, "--by", "phase"]);
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let of = |phase: &str, column: &str| {
        let row = rows.iter().find(|row| row["phase"] == phase);
        row.and_then(|row| row[column].as_i64()).expect(phase)
    };
    for (phase, sum, median) in [
        ("request_queue", 2_688_858_000, 8_990_000),
        ("local", 735_627_000, 1_098_000),
        ("remote", 0, 0),
        ("response_queue", 931_805_000, 5_349_000),
        ("response_send", 430_344_000, 255_000),
    ] {
        assert_eq!(of(phase, "count"), 138);
        assert_eq!(of(phase, "total_ns"), sum, "{phase}");
        let off = (of(phase, "p50_ns") - median).abs();
        assert!(off * 50 <= median, "{phase} {off}");
    }
    let by = ["requests", "stats", &log, "--by", "client,phase"];
    let answer = json(&place, &by);
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let handlers = rows.iter().filter(|row| row["phase"] == "local");
    let mut handlers: Vec<(&str, i64)> = handlers
        .filter_map(|row| Some((row["client"].as_str()?, row["total_ns"].as_i64()?)))
        .collect();
    handlers.sort_unstable();
    let want = [
        ("adminclient-1", 41_573_000),
        ("consumer-null-1", 368_922_000),
        ("producer-2", 75_576_000),
        ("producer-3", 68_235_000),
        ("producer-4", 112_510_000),
        ("producer-5", 68_811_000),
    ];
    assert_eq!(handlers, want);
}

/// The only handler served one request of the consumer for 226 ms while four producers waited.
#[test]
fn a_wait_for_a_handler_names_what_it_was_busy_with() {
    let place = Place::new();
    let log = fixture("kafka-broker.log.gz");
    let list = ["requests", "top", &log, "--endpoint", "PRODUCE", "-n", "4"];
    let answer = json(&place, &list);
    let ids = cells(&answer, "id");
    assert_eq!(ids.len(), 4);
    for id in ids {
        let id = id.trim_matches('"').trim_start_matches("request:");
        let text = place.stdout(&["explain", &log, "--request", id]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("in request_queue"), "{text}");
        assert!(text.contains("FETCH by client consumer-null-1"), "{text}");
    }
}

#[test]
fn markers_of_a_file_are_listed_and_stand_between_loads() {
    let place = Place::new();
    let marks = "time,text\n2026-11-26T15:32:40Z,version 7 deployed\n";
    let marks = place.write("deployments.csv", marks);
    let marks = marks.display().to_string();
    place.stdout(&[
        "import",
        &fixture("kafka-broker.log.gz"),
        &marks,
        "-o",
        "day.wsl",
    ]);
    let text = place.stdout(&["info", "day.wsl"]);
    assert!(text.contains("version 7 deployed"), "{text}");
    let text = place.stdout(&[
        "load", "diff", "day.wsl", "-w", "+0s..+1s", "--vs", "+2s..+4s",
    ]);
    assert!(text.contains("version 7 deployed"), "{text}");
}
