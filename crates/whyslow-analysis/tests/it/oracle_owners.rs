//! Queries by control group, container and user compared with SQL, as in `oracle.rs`.

use whyslow_analysis::{Kind, Verb};

use crate::it::duckdb::{Rows, Written, amount, by, check, query, windows, written};

/// Key, its SQL expression for a row, and the column that shows it.
const OWNERS: [(&str, &str, &str); 3] = [
    ("cgroup", "cgroup_of(upid) AS cgroup", "cgroup"),
    ("container", "container_of(upid) AS container", "container"),
    ("user", "uid_of(upid) AS uid", "uid"),
];

/// Kind, its view, and the prefix of its ids.
const KINDS: [(Kind, &str, &str); 9] = [
    (Kind::Io, "io", "op"),
    (Kind::Files, "files", "op"),
    (Kind::Syscalls, "syscalls", "op"),
    (Kind::Block, "block", "block"),
    (Kind::States, "states", "state"),
    (Kind::Sched, "waits", "state"),
    (Kind::Cpu, "slices", "slice"),
    (Kind::Irq, "irqs", "irq"),
    (Kind::Mem, "reclaims", "reclaim"),
];

#[test]
fn stats_by_owner_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (key, expression, name) in OWNERS {
        for (kind, view, id) in KINDS {
            let words = [
                ("view", view),
                ("id", id),
                ("keys", expression),
                ("order", &*format!("{name} NULLS FIRST")),
                ("size", ""),
                ("errors", ""),
            ];
            let shown = match kind {
                Kind::Syscalls => "syscalls",
                _ => "stats",
            };
            for query in windows(amount(), &by(&[key], query(kind, Verb::Stats))) {
                check(&written, &query, Rows::Table(shown), "stats.sql", &words);
            }
        }
    }
}

#[test]
fn usage_by_owner_equals_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (key, expression, name) in OWNERS {
        let order = format!("{name} NULLS FIRST");
        let either = format!("coalesce(calls.{name}, disk.{name}) AS {name}");
        let same = format!("calls.{name} IS NOT DISTINCT FROM disk.{name}");
        let words = [
            ("keys", expression),
            ("names", name),
            ("either", &*either),
            ("on", &*same),
            ("order", &*order),
            ("shown", "*"),
            ("with", ""),
            ("first", ""),
        ];
        usage(&written, (Kind::Io, key), "usage_owner.sql", &words);
        let whole = "(getvariable('span_end') - getvariable('span_begin'))";
        let words = [
            ("keys", expression),
            ("groups", name),
            ("names", name),
            ("width", whole),
            ("length", whole),
            ("time", ""),
            ("time_order", ""),
            ("order", &*order),
        ];
        usage(&written, (Kind::Cpu, key), "usage_cpu.sql", &words);
        usage(&written, (Kind::Net, key), "usage_net_owner.sql", &words);
        let either = either
            .replace("calls.", "pages.")
            .replace("disk.", "stalled.");
        let same = same
            .replace("calls.", "pages.")
            .replace("disk.", "stalled.");
        let words = [
            ("keys", expression),
            ("order", &*order),
            ("first", ""),
            ("time", ""),
            ("part", ""),
            ("width", &*format!("({whole} + 1000000000)")),
            ("either", &*either),
            ("on", &*same),
        ];
        usage(&written, (Kind::Mem, key), "usage_mem.sql", &words);
    }
}

fn usage(written: &Written, (kind, key): (Kind, &str), file: &str, words: &[(&str, &str)]) {
    for query in windows(amount(), &by(&[key], query(kind, Verb::Usage))) {
        check(written, &query, Rows::Table("usage"), file, words);
    }
}

#[test]
fn users_are_shown_with_name_and_number() {
    let Some(written) = written(amount()) else {
        return;
    };
    let answer = whyslow_analysis::evaluate(
        &written.recording,
        &by(&["user"], query(Kind::Syscalls, Verb::Stats)),
    );
    let answer = answer.expect("an answer");
    let shown = crate::it::shown::columns(&answer.tables[0], &["user", "uid"]);
    let mut lines: Vec<&str> = shown.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["NULL | 70000", "NULL | NULL", "root | 0", "www-data | 33"],
        "{shown}"
    );
}
