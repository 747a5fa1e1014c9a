//! Queries about DNS lookups, lock waits and stacks compared with SQL, as in `oracle.rs`.

use whyslow_analysis::{Kind, Query, Verb};

use crate::it::duckdb::{Rows, Written, amount, by, check, query, windows, written};

/// Kind, its view, prefix of its ids, and keys with their SQL expressions.
const KINDS: [(Kind, &str, &str, &[&str], &str); 9] = [
    (
        Kind::Dns,
        "lookups",
        "dns",
        &["host", "result"],
        "host, result",
    ),
    (
        Kind::Dns,
        "lookups",
        "dns",
        &["comm", "function"],
        "comm, function",
    ),
    (
        Kind::Dns,
        "lookups",
        "dns",
        &["mount_ns"],
        "mount_ns_of(upid) AS mount_ns",
    ),
    (
        Kind::Locks,
        "locks",
        "lock",
        &["kind", "mode"],
        "kind, mode",
    ),
    (
        Kind::Locks,
        "locks",
        "lock",
        &["function", "tid"],
        "function, tid",
    ),
    (
        Kind::Locks,
        "locks",
        "lock",
        &["cgroup"],
        "cgroup_of(upid) AS cgroup",
    ),
    (
        Kind::Stacks,
        "stacks",
        "stack",
        &["kind", "state", "function"],
        "kind, state, function",
    ),
    (
        Kind::Stacks,
        "stacks",
        "stack",
        &["user_function", "cpu"],
        "user_function, cpu",
    ),
    (
        Kind::Stacks,
        "stacks",
        "stack",
        &["user"],
        "uid_of(upid) AS uid",
    ),
];

#[test]
fn stats_and_usage_of_waits_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, view, id, keys, expression) in KINDS {
        let names = keys
            .iter()
            .map(|key| if *key == "user" { "uid" } else { key });
        let order: Vec<String> = names.map(|name| format!("{name} NULLS FIRST")).collect();
        let words = [
            ("view", view),
            ("id", id),
            ("keys", expression),
            ("order", &*order.join(", ")),
            ("size", ""),
            ("errors", ""),
        ];
        for verb in [Verb::Stats, Verb::Usage] {
            for query in windows(amount(), &by(keys, query(kind, verb))) {
                check(
                    &written,
                    &query,
                    Rows::Table(verb.name()),
                    "stats.sql",
                    &words,
                );
            }
        }
    }
}

#[test]
fn usage_of_waits_is_by_process() {
    let Some(written) = written(amount()) else {
        return;
    };
    let name = "(SELECT p.comm FROM process p WHERE p.upid = v.upid) AS comm, pid";
    for (kind, view, id, more) in [
        (Kind::Dns, "lookups v", "dns", ""),
        (Kind::Locks, "locks v", "lock", ""),
        (Kind::Stacks, "stacks v", "stack", ", kind"),
    ] {
        let keys = format!("{name}{more}");
        let words = [
            ("view", view),
            ("id", id),
            ("keys", &*keys),
            ("order", "pid NULLS FIRST"),
            ("size", ""),
            ("errors", ""),
        ];
        for query in windows(amount(), &query(kind, Verb::Usage)) {
            check(&written, &query, Rows::Table("usage"), "stats.sql", &words);
        }
    }
}

#[test]
fn distributions_of_waits_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let order = "series <> 'no mode', series";
    for (kind, key, view, label) in [
        (Kind::Dns, "function", "lookups", "function"),
        (Kind::Locks, "mode", "locks", "coalesce(mode, 'no mode')"),
        (Kind::Stacks, "kind", "stacks", "kind"),
    ] {
        let words = [("view", view), ("label", label), ("order", order)];
        for query in windows(amount(), &by(&[key], query(kind, Verb::Hist))) {
            check(&written, &query, Rows::Series("hist"), "hist.sql", &words);
        }
    }
}

const TIMES: &str = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, comm, pid, tid, cpu";

#[test]
fn rows_of_waits_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, view, columns) in [
        (
            Kind::Dns,
            "lookups",
            "host, result, function, 'dns:' || id AS id",
        ),
        (
            Kind::Locks,
            "locks",
            "kind, mode, slept, lock, function, 'lock:' || id AS id",
        ),
        (
            Kind::Stacks,
            "stacks",
            "kind, state, function, user_function, 'stack:' || id AS id",
        ),
    ] {
        let columns = format!("{TIMES}, {columns}");
        rows(&written, (kind, view), &columns);
    }
}

fn rows(written: &Written, (kind, view): (Kind, &str), columns: &str) {
    let words = [
        ("view", view),
        ("columns", columns),
        (
            "cut",
            "cut_of(ts, ts_end, CASE WHEN ts_end IS NULL THEN 'end' END)",
        ),
        ("where", "true"),
    ];
    for query in windows(amount(), &query(kind, Verb::Log)) {
        check(written, &query, Rows::Table("log"), "log.sql", &words);
    }
    // The longest stacks are shown as caller trees.
    if kind == Kind::Stacks {
        return;
    }
    let words = [
        ("view", view),
        ("columns", columns),
        ("label", "'cpu ' || cpu"),
        ("keys", "cpu"),
        ("limit", "7"),
        ("order", "cpu"),
    ];
    for query in windows(amount(), &by(&["cpu"], query(kind, Verb::Top))) {
        let query = Query {
            limit: Some(7),
            ..query
        };
        check(written, &query, Rows::Series("top_"), "top.sql", &words);
    }
}
