//! Flame graphs of samples.

use std::fs;

use serde_json::Value;

use super::{fixture, int, query, rows};
use crate::common::{Place, recorded};

#[test]
fn a_flame_graph_gives_each_thread_its_life() {
    let place = recorded();
    for name in [
        "kafka/incident.jfr.gz",
        "jfr/each.jfr",
        "jfr/batches.jfr",
        "jfr/chunks.jfr",
    ] {
        let answer = query(&["threads", "flame", &fixture(name), "-n", "0"]);
        let caveats = answer["caveats"].to_string();
        assert!(caveats.contains("residual 0 ns"), "{name}: {caveats}");
        // Sums of lines equal the total, whatever is shown.
        let lines = rows(&answer, "flame");
        let sum = |rows: &[&Value]| -> i64 { rows.iter().map(|row| int(row, "self_ns")).sum() };
        let top: i64 = lines
            .iter()
            .filter(|row| int(row, "depth") == 0)
            .map(|row| int(row, "total_ns"))
            .sum();
        assert_eq!(sum(&lines), top, "{name}");
        let ten = query(&["threads", "flame", &fixture(name), "-n", "10"]);
        let ten = rows(&ten, "flame");
        assert!(ten.len() <= 10);
        // The same as collapsed stacks for other tools.
        let text = place.stdout(&["export", "collapsed", &fixture(name), "--weight", "time"]);
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let shown: i64 = lines
            .map(|(_, time)| time.parse::<i64>().expect("a number"))
            .sum();
        assert_eq!(shown, top, "{name}");
    }
}

#[test]
fn calls_that_kept_signals_away_stand_out_against_samples() {
    let answer = query(&["threads", "flame", &fixture("kafka/incident.jfr.gz")]);
    let caveats = answer["caveats"].as_array().expect("caveats");
    let shown = caveats.iter().filter_map(Value::as_str);
    let shown: Vec<&str> = shown.filter(|text| text.contains("% of samples")).collect();
    let sent = shown.iter().find(|text| text.starts_with("sendfile64: "));
    let sent = sent.unwrap_or_else(|| panic!("{caveats:?}"));
    let shares: Vec<f64> = sent
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(shares[1] > 2.0 * shares[0], "{sent}");
}

#[test]
fn the_name_of_a_file_says_its_form() {
    let place = Place::new();
    let recording = fixture("kafka/incident.jfr.gz");
    let written = |name: &str, more: &[&str]| {
        let args = [
            &["threads", "flame", &recording, "-o", name, "--quiet"],
            more,
        ]
        .concat();
        place.stdout(&args);
        fs::read_to_string(place.join(name)).expect("a file")
    };
    let svg = written("flame.svg", &[]);
    assert!(
        svg.contains("<svg")
            && svg.contains("% of samples")
            && svg.contains("adds up to their lifetimes")
    );
    assert!(svg.contains(" off\">"), "waiting threads are pale");
    assert_eq!(
        written("stacks.txt", &[]),
        place.stdout(&["export", "collapsed", &recording])
    );
    let scope: Value = serde_json::from_str(&written("scope.json", &[])).expect("JSON");
    let other: Value =
        serde_json::from_str(&place.stdout(&["export", "speedscope", &recording])).expect("JSON");
    assert_eq!(scope["profiles"], other["profiles"]);
    assert_eq!(written("any", &["--format", "svg"]), svg);
    let answer: Value = serde_json::from_str(&written("table.json", &["--json"])).expect("JSON");
    assert!(answer["tables"].is_array());
    let chart = written("chart.svg", &["--chart", "--threads", "network-thread"]);
    assert!(chart.contains("data-chart") && chart.contains("sendfile64"));
    assert!(!chart.contains("request-handler"));
    let pools = query(&["threads", "flame", &recording, "--by", "pool"]);
    let names: Vec<&Value> = rows(&pools, "flame")
        .into_iter()
        .map(|row| &row["function"])
        .collect();
    assert!(
        names.contains(&&Value::from("data-plane-kafka-request-handler-N")),
        "{names:?}"
    );
}

#[test]
fn what_is_compared_is_a_picture() {
    let place = Place::new();
    let recording = fixture("jfr/each.jfr");
    let mut command = place.whyslow();
    command.args([
        "threads", "flame", &recording, "-w", "+1s..+2s", "--vs", "+2s..+3s", "-o", "diff.txt",
    ]);
    let output = command.output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains("-o diff.svg"),
        "{message}"
    );
    assert!(!place.join("diff.txt").exists());
}
