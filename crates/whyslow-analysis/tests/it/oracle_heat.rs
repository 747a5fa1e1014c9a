//! Heat maps compared with SQL, for every kind with latencies, in total and by group.

use std::collections::BTreeMap;

use whyslow_analysis::{Kind, Query, Verb, Weight, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::{AnswerTable, Value};

use crate::it::duckdb::{Rows, amount, by, check, query, windows, written};
use crate::it::shown;

/// Kind, its view, keys, and their SQL expressions.
const MAPS: [(Kind, &str, &[&str], &str); 20] = [
    (Kind::Io, "io", &[], ""),
    (Kind::Io, "io", &["op"], "op"),
    (Kind::Io, "io", &["comm"], "comm"),
    (Kind::Io, "io", &["file"], "object AS file"),
    (Kind::Io, "io", &["pid", "cpu"], "pid, cpu"),
    (Kind::Io, "io", &["tid"], "tid"),
    (Kind::Io, "io", &["name"], "name"),
    (Kind::Block, "block", &["dev"], "dev_name AS dev"),
    (Kind::Block, "block", &["comm", "op"], "comm, op"),
    (Kind::Files, "files", &["file"], "path AS file"),
    (Kind::Sched, "waits", &["comm"], "comm"),
    (Kind::Sched, "waits", &["reason"], "reason"),
    (Kind::States, "states", &["state"], "state"),
    (Kind::Cpu, "slices", &["cpu"], "cpu"),
    (Kind::Irq, "irqs", &["name"], "name"),
    (Kind::Mem, "reclaims", &["kind"], "kind"),
    (Kind::Irq, "irqs", &["kind", "cpu"], "kind, cpu"),
    (Kind::Syscalls, "syscalls", &[], ""),
    (Kind::Syscalls, "syscalls", &["name"], "name"),
    (Kind::Syscalls, "syscalls", &["tid"], "tid"),
];

fn names(expression: &str) -> Vec<&str> {
    let columns = expression.split(", ").filter(|column| !column.is_empty());
    columns
        .map(|column| column.rsplit(" AS ").next().unwrap_or(column))
        .collect()
}

#[test]
fn heat_maps_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, view, keys, expression) in MAPS {
        let names = names(expression);
        let keys_sql = if expression.is_empty() {
            String::new()
        } else {
            format!("{expression},")
        };
        let order: Vec<String> = names
            .iter()
            .map(|name| format!(", {name} NULLS FIRST"))
            .collect();
        let order = order.concat();
        let among = if names.is_empty() {
            String::new()
        } else {
            format!("PARTITION BY {}", names.join(", "))
        };
        for query in windows(amount(), &by(keys, query(kind, Verb::Heat))) {
            let span = query.window.unwrap_or_else(|| {
                let info = whyslow_store::Tables::info(&written.recording);
                Window::new(info.begin_ns, info.end_ns)
            });
            for (interval, limit, weight) in [
                (None, None, Weight::Count),
                (Some(10_000_000), Some(0), Weight::Intensity),
                (Some(10_000_000), Some(2), Weight::Intensity),
            ] {
                let width = interval.unwrap_or((span.length() + 59) / 60);
                let words = [
                    ("view", view),
                    ("keys", &*keys_sql),
                    ("order", &*order),
                    ("among", &*among),
                    ("width", &*width.to_string()),
                    (
                        "limit",
                        match limit {
                            None => "6",
                            Some(0) => "1000000",
                            Some(_) => "2",
                        },
                    ),
                    (
                        "weight",
                        match weight {
                            Weight::Count => "count",
                            Weight::Intensity => "intensity_ns",
                        },
                    ),
                ];
                let query = Query {
                    limit,
                    interval,
                    weight,
                    ..query.clone()
                };
                check(&written, &query, Rows::Table("heat"), "heat.sql", &words);
            }
        }
    }
}

/// Count and sum of durations by time and latency.
fn cells(table: &AnswerTable) -> BTreeMap<(String, String), (i64, i64)> {
    let places = ["time_ns", "from_ns", "count", "intensity_ns"];
    let [time, from, count, intensity] = places.map(|name| shown::place(table, name));
    let int = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => panic!("a number: {value:?}"),
    };
    let mut cells = BTreeMap::new();
    for row in &table.rows {
        let place = (shown::cell(&row[time]), shown::cell(&row[from]));
        let cell: &mut (i64, i64) = cells.entry(place).or_default();
        cell.0 += int(&row[count]);
        cell.1 += int(&row[intensity]);
    }
    cells
}

fn fact(table: &AnswerTable, name: &str) -> i64 {
    let found = table
        .facts
        .iter()
        .find(|(_, column, _)| column.name == name);
    match found {
        Some((_, _, Value::Int(value))) => *value,
        _ => panic!("no number {name}: {:?}", table.facts),
    }
}

#[test]
fn maps_of_groups_add_up_to_that_of_all() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, _, keys, _) in MAPS {
        if keys.is_empty() {
            continue;
        }
        let all = evaluate(&written.recording, &query(kind, Verb::Heat)).unwrap();
        let whole = cells(shown::table(&all, "heat"));
        assert!(!whole.is_empty());
        let total: i64 = whole.values().map(|(count, _)| count).sum();
        let grouped = by(keys, query(kind, Verb::Heat));
        let answer = evaluate(&written.recording, &grouped).unwrap();
        let table = shown::table(&answer, "heat");
        assert_eq!(cells(table), whole, "{kind:?} {keys:?}");
        assert_eq!(fact(table, "groups_left_out"), 0);
        assert_eq!(fact(table, "rows_left_out"), 0);
        // With few groups, the shown and the omitted counts add up to everything.
        let few = Query {
            limit: Some(1),
            ..grouped
        };
        let answer = evaluate(&written.recording, &few).unwrap();
        let table = shown::table(&answer, "heat");
        let shown: i64 = cells(table).values().map(|(count, _)| count).sum();
        assert_eq!(
            shown + fact(table, "rows_left_out"),
            total,
            "{kind:?} {keys:?}"
        );
        assert_eq!(fact(table, "groups_left_out"), fact(table, "groups") - 1);
    }
}
