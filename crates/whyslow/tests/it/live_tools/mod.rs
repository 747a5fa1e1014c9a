//! `as TOOL` for tools that monitor a live machine: their columns against the tools themselves,
//! their figures against SQL over the tables.

mod by_hand;
mod disks;
mod files;
mod headers;
mod tasks;
mod wrong;

use std::sync::OnceLock;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use crate::common::Place;

/// A place with the recording `web.wsl`: 15 s of a machine with three disks.
pub(crate) fn incident() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| Place::shared("live-tools", fill))
}

fn fill(place: &Place) {
    let trace = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    let trace = trace.to_str().expect("UTF-8");
    place
        .whyslow()
        .args(["import", trace, "-o", "web.wsl"])
        .assert()
        .success();
}

/// Start and end of the recording.
pub(crate) fn span() -> (i64, i64) {
    let manifest = incident().join("web.wsl/manifest.json");
    let manifest = std::fs::read(manifest).expect("a recording has one");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let time = |key: &str| manifest[key].as_i64().expect("a time");
    (time("begin_ns"), time("end_ns"))
}

/// Rows of a statement over the tables; `None`, with a skip message, without DuckDB.
pub(crate) fn sql(statement: &str) -> Option<Vec<Value>> {
    let place = incident();
    let output = place
        .whyslow()
        .args(["sql", "web.wsl", "--json", statement])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not installed") {
        skip(Need::DuckDb, "the duckdb command line is not installed");
        return None;
    }
    assert!(output.status.success(), "{said}\n{statement}");
    if output.stdout.is_empty() {
        return Some(Vec::new());
    }
    let rows = serde_json::from_slice(&output.stdout).expect("JSON");
    Some(rows)
}

/// Parts of the window as a table `part` with number, start, end (exclusive except for the last
/// timestamp of the recording) and seconds.
pub(crate) fn parts((begin, end): (i64, i64), width: i64) -> String {
    let (_, last) = span();
    let count = (end - begin + width - 1) / width;
    format!(
        "WITH part AS (SELECT p, p0, p1, (p1 - p0) / 1e9 AS s, p1 + (p1 = {last})::INT AS p1x
         FROM (SELECT p, {begin} + p * {width} AS p0, LEAST({begin} + (p + 1) * {width}, {end}) AS p1
               FROM generate_series(0, {count} - 1) t(p)))"
    )
}

pub(crate) fn float(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::String(text) => text.parse().expect("a number"),
        value => value.as_f64().expect("a number"),
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        value => value.to_string(),
    }
}

/// Whether a printed number equals the other one, with the rounding of the output.
pub(crate) fn assert_close(printed: &str, want: f64, what: &str) {
    let decimals = printed.split_once('.').map_or(0, |(_, rest)| rest.len());
    let got: f64 = printed
        .parse()
        .unwrap_or_else(|_| panic!("{what}: {printed}"));
    let half = 0.5000001 * 10f64.powi(-(decimals as i32));
    assert!((got - want).abs() <= half, "{what}: {printed}, not {want}");
}
