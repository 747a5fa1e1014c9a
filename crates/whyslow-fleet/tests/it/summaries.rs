//! A summary contains what queries of the recording return.

use std::collections::BTreeMap;

use proptest::prelude::*;
use whyslow_analysis::rollup::middle_of;
use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_fleet::Summary;
use whyslow_fleet::tables::{HistogramRow, RollupRow};
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_store::Tables;

use crate::it::made::{self, Made, facts, usual};

fn answer(tables: &dyn Tables, kind: Kind, by: &str) -> AnswerTable {
    let mut query = Query::new(kind, Verb::Stats);
    query.by = vec![by.to_owned()];
    query.limit = Some(0);
    evaluate(tables, &query)
        .expect("should succeed")
        .tables
        .remove(0)
}

fn cell(table: &AnswerTable, row: usize, name: &str) -> Option<i64> {
    let place = table
        .columns
        .iter()
        .position(|column| column.name == name)?;
    match table.rows[row][place] {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

/// Nearest rank in merged buckets, as described in docs/fleet.md.
fn percentile(rows: &[&HistogramRow], (least, most): (i64, i64), permille: i64) -> Option<i64> {
    let count: i64 = rows.iter().map(|row| row.count).sum();
    let rank = (count * permille + 999) / 1000;
    let mut values: BTreeMap<i64, i64> = BTreeMap::new();
    for row in rows {
        let middle = middle_of(row.bucket);
        let value = if count <= 64 {
            row.value_ns.unwrap_or(middle)
        } else {
            middle
        };
        *values.entry(value).or_default() += row.count;
    }
    let mut seen = 0;
    values.into_iter().find_map(|(value, count)| {
        seen += count;
        (seen >= rank.max(1)).then(|| {
            if rows.iter().map(|row| row.count).sum::<i64>() <= 64 {
                value
            } else {
                value.clamp(least, most)
            }
        })
    })
}

fn check(tables: &dyn Tables, kind: Kind, (dimension, by): (&str, &str)) {
    let summary = Summary::of(tables, &facts(tables)).expect("should succeed");
    let name = if kind == Kind::Io { "io" } else { "block" };
    let table = answer(tables, kind, by);
    let ours = |row: &&RollupRow| row.kind == name && row.dimension == dimension;
    let rollups: Vec<&RollupRow> = summary.rollups.iter().filter(ours).collect();
    let ours = |row: &&HistogramRow| row.kind == name && row.dimension == dimension;
    let histogram: Vec<&HistogramRow> = summary.histograms.iter().filter(ours).collect();
    let total: i64 = rollups.iter().map(|row| row.count).sum();
    let rows = 0..table.rows.len();
    let expected: i64 = rows
        .clone()
        .filter_map(|row| cell(&table, row, "count"))
        .sum();
    assert_eq!(total, expected);
    for row in rows {
        let Value::Text(key) = &table.rows[row][0] else {
            continue;
        };
        let is_it = |of: &str, op: &str| {
            if dimension == "all" {
                op == key
            } else {
                of == key
            }
        };
        let rollups = rollups
            .iter()
            .copied()
            .filter(|row| is_it(&row.key, &row.op));
        let histogram = histogram
            .iter()
            .copied()
            .filter(|row| is_it(&row.key, &row.op));
        check_row(
            (&table, row),
            &rollups.collect::<Vec<_>>(),
            &histogram.collect::<Vec<_>>(),
        );
    }
}

fn check_row(
    (table, row): (&AnswerTable, usize),
    rollups: &[&RollupRow],
    histogram: &[&HistogramRow],
) {
    let sum =
        |value: fn(&RollupRow) -> i64| Some(rollups.iter().map(|row| value(row)).sum::<i64>());
    let known = |name| cell(table, row, name);
    assert_eq!(sum(|row| row.count), known("count"));
    assert_eq!(sum(|row| row.dur_total_ns), known("total_ns"));
    assert_eq!(
        sum(|row| row.bytes.expect("should be known")),
        known("bytes")
    );
    assert_eq!(
        sum(|row| row.errors.expect("should be known")),
        known("errors")
    );
    assert_eq!(sum(|row| row.count - row.finished), known("unfinished"));
    let least = rollups.iter().filter_map(|row| row.dur_min_ns).min();
    let most = rollups.iter().filter_map(|row| row.dur_max_ns).max();
    assert_eq!((least, most), (known("min_ns"), known("max_ns")));
    let bounds = (least.unwrap_or(0), most.unwrap_or(0));
    for (permille, column) in [
        (500, "p50_ns"),
        (900, "p90_ns"),
        (990, "p99_ns"),
        (999, "p999_ns"),
    ] {
        assert_eq!(
            percentile(histogram, bounds, permille),
            known(column),
            "{column}"
        );
    }
}

#[test]
fn rollups_are_what_stats_answer() {
    let tables = usual("web-1", 0);
    check(&tables, Kind::Io, ("all", "op"));
    check(&tables, Kind::Block, ("all", "op"));
    check(&tables, Kind::Block, ("device", "dev"));
    check(&tables, Kind::Io, ("file", "pattern"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn of_any_recording(reads in prop::collection::vec((0_i64..9_000_000_000, prop::option::of(0_i64..5_000_000_000), any::<bool>(), any::<bool>()), 1..200)) {
        let made = |(at, dur, is_log, failed): (i64, Option<i64>, bool, bool)| Made {
            at,
            dur,
            path: if is_log { "/var/log/a1234.log" } else { "/srv/data" },
            failed,
        };
        let tables = made::recording("web-1", 0, &reads.into_iter().map(made).collect::<Vec<_>>());
        check(&tables, Kind::Io, ("all", "op"));
        check(&tables, Kind::Io, ("file", "pattern"));
        check(&tables, Kind::Block, ("device", "dev"));
    }
}

#[test]
fn many_keys_become_others_and_no_time_is_lost() {
    // Leaked on purpose: test rows have `'static` texts.
    let paths: Vec<&'static str> = (0..40)
        .map(|number: u8| {
            let name = format!(
                "/srv/{}/data",
                char::from(b'a' + number % 26)
                    .to_string()
                    .repeat(usize::from(number / 26) + 1)
            );
            &*Box::leak(name.into_boxed_str())
        })
        .collect();
    let reads: Vec<Made> = (0..400)
        .map(|number: usize| Made {
            at: number as i64 * 1_000_000,
            dur: Some(1_000 * (1 + number as i64 % 40)),
            path: paths[number % 40],
            failed: false,
        })
        .collect();
    let tables = made::recording("web-1", 0, &reads);
    let summary = Summary::of(&tables, &facts(&tables)).expect("should succeed");
    let of = |dimension: &str| -> Vec<&RollupRow> {
        summary
            .rollups
            .iter()
            .filter(|row| row.kind == "io" && row.dimension == dimension)
            .collect()
    };
    let total = |rows: &[&RollupRow]| {
        rows.iter()
            .map(|row| (row.count, row.dur_total_ns))
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    };
    assert_eq!(total(&of("file")), total(&of("all")));
    let mut keys: Vec<&str> = of("file").iter().map(|row| row.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 17);
    assert!(keys.contains(&"(others)") && keys.contains(&paths[39]) && !keys.contains(&paths[0]));
}

#[test]
fn facts_and_labels_say_what_is_known_and_what_is_missing() {
    let tables = usual("web-1", 0);
    let summary = Summary::of(&tables, &facts(&tables)).expect("should succeed");
    let recording = &summary.recording;
    assert_eq!((recording.host.as_str(), recording.rows), ("web-1", 2_000));
    assert_eq!(recording.missing, "sched,cpu,locks,mem,dns,requests");
    let labels: Vec<(&str, &str)> = summary
        .labels
        .iter()
        .map(|row| (row.name.as_str(), row.value.as_str()))
        .collect();
    assert_eq!(
        labels,
        [
            ("rack", "r7"),
            ("source", "spool"),
            ("zone", "Europe/Berlin")
        ]
    );
    let slowest = &summary.slowest;
    assert!(
        slowest
            .iter()
            .any(|row| row.kind == "io" && row.op == "read" && row.id.starts_with("op:"))
    );
    assert!(
        slowest
            .iter()
            .any(|row| row.kind == "block" && row.object.as_deref() == Some("sda"))
    );
    let is_known = |row: &&whyslow_fleet::tables::SlowestRow| row.kind == "io";
    assert_eq!(slowest.iter().filter(is_known).count(), 5);
}
