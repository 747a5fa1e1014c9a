//! `load diff`, `load check` and `explain` on generated requests.

use serde_json::Value;
use whyslow_analysis::statistics::Dice;
use whyslow_model::Symbols;
use whyslow_model::row::Emit;
use whyslow_model::tables::{MarkerRow, RequestRow};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter};

use crate::common::Place;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// A load: requests every 20 ms to six endpoints, one in six to /health.
#[derive(Debug, Clone, Copy)]
struct Run {
    begin: i64,
    requests: i64,
    /// Factor of the usual duration.
    times: f64,
    /// Share of requests (none to /health) with a DNS lookup that takes five seconds more.
    slow: f64,
}

const RUN: Run = Run {
    begin: 1_700_000_000 * SECOND,
    requests: 3000,
    times: 1.0,
    slow: 0.0,
};

const ENDPOINTS: [&str; 6] = ["/health", "/cart", "/orders", "/items", "/pay", "/login"];

fn request(id: i64, run: Run, symbols: &mut Symbols, dice: &mut Dice) -> RequestRow {
    let endpoint = ENDPOINTS[dice.below(6)];
    let wait = (20.0 * MS as f64 * run.times * (0.3 * dice.normal()).exp()) as i64;
    let is_slow = endpoint != "/health" && dice.happens(run.slow);
    let resolve = if is_slow { 5004 * MS } else { MS };
    let dur = resolve + wait + MS;
    let ts = run.begin + id * 20 * MS;
    RequestRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        role: symbols.intern("client"),
        source: symbols.intern("load"),
        protocol: Some(symbols.intern("HTTP/1.1")),
        method: Some(symbols.intern("GET")),
        host: Some(symbols.intern("shop:8080")),
        endpoint: Some(symbols.intern(endpoint)),
        status: Some(200),
        outcome: symbols.intern("ok"),
        connection: Some(id),
        is_reused: Some(false),
        worker: Some(dice.below(20) as i32),
        seq: Some(id),
        resolve_ns: Some(resolve),
        connect_ns: Some(MS),
        wait_ns: Some(wait),
        ..RequestRow::default()
    }
}

fn record(place: &Place, name: &str, run: Run, seed: u64) {
    let path = place.join(name);
    let mut writer = RecordingWriter::create(&path, Existing::Refuse).expect("a folder");
    let (mut symbols, dice) = (Symbols::new(), &mut Dice::new(seed));
    writer.emit(MarkerRow {
        id: 0,
        ts: run.begin + SECOND,
        name: symbols.intern("mark"),
        text: symbols.intern(&format!("deployed {seed}")),
        ..MarkerRow::default()
    });
    for id in 0..run.requests {
        writer.emit(request(id, run, &mut symbols, dice));
    }
    let info = RecordingInfo {
        begin_ns: run.begin,
        end_ns: run.begin + run.requests * 20 * MS + 10 * SECOND,
        ..RecordingInfo::default()
    };
    writer.finish(&symbols, info).expect("a recording");
}

/// Seeds of loads like the first one: the tests of a comparison together report a difference between
/// two such loads in one of twenty cases.
const SAME: [u64; 5] = [2, 107, 108, 109, 110];

fn place() -> Place {
    let place = Place::new();
    record(&place, "a.wsl", RUN, 1);
    for (number, seed) in SAME.iter().enumerate() {
        record(&place, &format!("same{number}.wsl"), RUN, *seed);
    }
    record(&place, "slower.wsl", Run { times: 1.1, ..RUN }, 3);
    record(&place, "lookups.wsl", Run { slow: 0.06, ..RUN }, 4);
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.stdout(args)).expect("JSON")
}

#[test]
fn a_change_is_told_with_its_size_its_phase_and_its_mark() {
    let place = place();
    let text = place.stdout(&["load", "diff", "a.wsl", "slower.wsl", "--by", "endpoint"]);
    assert!(text.contains("worse"), "{text}");
    assert!(text.contains("deployed 3"), "{text}");
    let answer = json(
        &place,
        &[
            "load",
            "diff",
            "a.wsl",
            "slower.wsl",
            "--json",
            "--slow",
            "50ms",
        ],
    );
    let tables = answer["tables"].as_array().expect("tables");
    let rows = |name: &str| {
        let table = tables.iter().find(|table| table["name"] == name);
        table.expect("a table")["rows"]
            .as_array()
            .expect("rows")
            .clone()
    };
    let median = &rows("percentiles")[0];
    assert_eq!(median["figure"], "p50");
    assert_eq!(median["verdict"], "worse");
    let [low, high] = ["change_low", "change_high"].map(|name| median[name].as_f64().expect(name));
    assert!(
        low < 0.09 && high > 0.09 && low > 0.0 && high < 0.25,
        "{low} {high}"
    );
    let wait = rows("phases")
        .into_iter()
        .find(|row| row["phase"] == "wait");
    let share = wait.expect("listed")["share"].as_f64().expect("a share");
    assert!((share - 1.0).abs() < 0.05, "{share}");
    // Repeating the command prints the same, byte for byte.
    let again = [
        "load",
        "diff",
        "a.wsl",
        "slower.wsl",
        "--csv",
        "--table",
        "percentiles",
    ];
    assert_eq!(place.stdout(&again), place.stdout(&again));
}

#[test]
fn without_a_change_none_is_shown_and_it_is_said_what_would_be() {
    let place = place();
    let mut differing = Vec::new();
    for number in 0..SAME.len() {
        let other = format!("same{number}.wsl");
        let text = place.stdout(&["load", "diff", "a.wsl", &other]);
        let command = ["load", "diff", "a.wsl", &other, "--fail-if-worse"];
        let output = place.whyslow().args(command).output().expect("it runs");
        let is_shown = ["verdict better", "verdict worse", "verdict mixed"]
            .iter()
            .any(|verdict| text.contains(verdict));
        let is_worse = text.contains("verdict worse") || text.contains("verdict mixed");
        assert_eq!(output.status.success(), !is_worse, "{text}");
        assert_ne!(text.contains("suffice to detect"), is_shown, "{text}");
        if is_shown {
            differing.push(text);
        }
    }
    assert!(differing.len() <= 1, "{}", differing.join("\n"));
    // Two windows of one recording.
    let halves = [
        "load",
        "diff",
        "a.wsl",
        "-w",
        "+0s..+30s",
        "--vs",
        "+30s..+60s",
    ];
    assert!(place.stdout(&halves).contains("no difference shown"));
}

#[test]
fn what_does_not_hold_ends_with_code_4() {
    let place = place();
    let check = |assertion: &str, code: i32| {
        let mut command = place.whyslow();
        command.args(["load", "check", "lookups.wsl", "--assert", assertion]);
        command.assert().code(code);
    };
    check("p50<50ms", 0);
    check("p99<50ms", 4);
    check("over(1s)<1%", 4);
    check("/health: p99<100ms", 0);
    check("/nowhere: p99<100ms", 4);
    check("p99.99<100s", 4);
    check("p99", 2);
    let worse = ["load", "diff", "a.wsl", "slower.wsl", "--fail-if-worse"];
    place.whyslow().args(worse).assert().code(4);
    place
        .whyslow()
        .args(["load", "diff", "a.wsl"])
        .assert()
        .code(2);
}

#[test]
fn rare_lookups_are_told_with_what_is_spared_and_as_no_cause() {
    let place = place();
    let report = json(&place, &["explain", "lookups.wsl", "--json"]);
    let pattern = &report["patterns"][0];
    assert_eq!(pattern["class"], "rare_contention", "{pattern}");
    let text = pattern["summary"].as_str().expect("words");
    assert!(text.contains("never slow: GET /health"), "{text}");
    assert!(text.contains("in phase resolve"), "{text}");
    let hints = pattern["hints"].to_string();
    assert!(hints.contains("resolver"), "{hints}");
    let finding = &report["findings"][0];
    assert_eq!(finding["culprit"], Value::Null);
    let verdict = finding["verdict"].as_str().expect("words");
    assert!(verdict.contains("consistent with"), "{verdict}");
    assert!(verdict.contains("no recording of the server"), "{verdict}");
    let id = finding["target"]["id"].as_str().expect("an id");
    let id = id.strip_prefix("request:").expect("a request");
    let one = place.stdout(&["explain", "lookups.wsl", "--request", id]);
    assert!(one.contains("5.00 s of it in phase resolve"), "{one}");
    // Nothing was slow before, so there is no finding about requests.
    let well = json(&place, &["explain", "a.wsl", "--json"]);
    assert_eq!(well["findings"], Value::Array(Vec::new()), "{well}");
}
