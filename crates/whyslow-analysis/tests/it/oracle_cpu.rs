//! Queries about CPUs, run-queue latency, interrupts, memory and network compared with SQL, as in
//! `oracle.rs`.

use whyslow_analysis::{Kind, Query, Verb};

use crate::it::duckdb::{Rows, amount, by, check, query, windows, written};

const ORDER_COMM: &str = "comm NULLS FIRST";

/// Kind, its view, prefix of its ids, and keys with their SQL expressions.
const KINDS: [(Kind, &str, &str, &[&str], &str); 8] = [
    (Kind::Mem, "reclaims", "reclaim", &["kind"], "kind"),
    (
        Kind::Mem,
        "reclaims",
        "reclaim",
        &["comm", "cpu"],
        "comm, cpu",
    ),
    (Kind::Sched, "waits", "state", &["reason"], "reason"),
    (
        Kind::Sched,
        "waits",
        "state",
        &["comm", "prio"],
        "comm, prio",
    ),
    (
        Kind::Irq,
        "irqs",
        "irq",
        &["kind", "nr", "name"],
        "kind, nr, name",
    ),
    (Kind::Irq, "irqs", "irq", &["cpu", "tid"], "cpu, tid"),
    (Kind::Cpu, "slices", "slice", &["tid"], "tid"),
    (Kind::Cpu, "slices", "slice", &["cpu", "prio"], "cpu, prio"),
];

#[test]
fn stats_of_scheduling_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, view, id, keys, expression) in KINDS {
        let order: Vec<String> = keys
            .iter()
            .map(|key| format!("{key} NULLS FIRST"))
            .collect();
        let words = [
            ("view", view),
            ("id", id),
            ("keys", expression),
            ("order", &*order.join(", ")),
            ("size", ""),
            ("errors", ""),
        ];
        for query in windows(amount(), &by(keys, query(kind, Verb::Stats))) {
            check(&written, &query, Rows::Table("stats"), "stats.sql", &words);
        }
    }
    for query in windows(amount(), &query(Kind::Irq, Verb::Stats)) {
        check(
            &written,
            &query,
            Rows::Table("stats"),
            "stats_raise.sql",
            &[],
        );
    }
}

#[test]
fn distributions_of_scheduling_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    // Rows without a reason come first.
    let order = "series <> 'no reason', series";
    for (kind, key, view, label) in [
        (
            Kind::Sched,
            "reason",
            "waits",
            "coalesce(reason, 'no reason')",
        ),
        (Kind::Irq, "kind", "irqs", "kind"),
        (Kind::Mem, "kind", "reclaims", "kind"),
        (Kind::Cpu, "cpu", "slices", "'cpu ' || cpu"),
    ] {
        let words = [("view", view), ("label", label), ("order", order)];
        for query in windows(amount(), &by(&[key], query(kind, Verb::Hist))) {
            check(&written, &query, Rows::Series("hist"), "hist.sql", &words);
        }
    }
}

#[test]
fn rows_of_scheduling_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let times = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, comm, pid, tid, cpu";
    let waker = "(SELECT t.comm || ' (' || t.tid || ')' FROM thread t WHERE t.utid = waker_utid)";
    let waits = format!(
        "{times}, reason, prio, {waker} AS waker, wake_context, CASE WHEN wake_cause IN ('block_io', 'worker') THEN 'block:' || wake_cause_id END AS request, \
         CASE WHEN wake_cause IN ('packet', 'received') THEN 'packet:' || wake_cause_id END AS packet, 'state:' || id AS id"
    );
    let irqs = format!("{times}, self_ns, kind, nr, name, raise_ns, ret, 'irq:' || id AS id");
    let slices = format!(
        "{times}, prio, system_ns, hardirq_ns, softirq_ns, migrations, end_state, 'slice:' || id AS id"
    );
    let reclaims = format!("{times}, kind, pages, alloc_order, node, 'reclaim:' || id AS id");
    let calls = "ts AS ts_ns, dur AS dur_ns, comm, tid, name, fd, bytes_requested, \
                 file_offset AS offset, flags, ret, 'op:' || id AS id, \
                 concat_ws(', ', \
                   CASE WHEN op = 'open' AND fd = ret OR fd IS NULL THEN '\"' || path || '\"' \
                        WHEN path IS NULL THEN fd::VARCHAR ELSE fd || '<' || path || '>' END, \
                   CASE WHEN fd2 IS NULL THEN '\"' || path2 || '\"' \
                        WHEN path2 IS NULL THEN fd2::VARCHAR ELSE fd2 || '<' || path2 || '>' END, \
                   bytes_requested::VARCHAR, \
                   CASE flags WHEN 0 THEN 'O_RDONLY' WHEN 577 THEN 'O_WRONLY|O_CREAT|O_TRUNC' \
                              WHEN 65536 THEN 'O_RDONLY|0x10000' END, \
                   'offset ' || file_offset) AS arguments";
    let no_end = "cut_of(ts, ts_end, CASE WHEN ts_end IS NULL THEN 'end' END)";
    for (kind, view, columns, cut) in [
        (Kind::Sched, "waits", &*waits, no_end),
        (Kind::Irq, "irqs", &*irqs, no_end),
        (Kind::Cpu, "slices", &*slices, no_end),
        (Kind::Syscalls, "syscalls", calls, "cut_of(ts, ts_end, cut)"),
        (Kind::Mem, "reclaims", &*reclaims, no_end),
        (
            Kind::Net,
            "packets",
            "ts AS ts_ns, kind, netif, bytes, source, destination, drop_reason, comm, tid",
            "NULL",
        ),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("cut", cut),
            ("where", "true"),
        ];
        for query in windows(amount(), &query(kind, Verb::Log)) {
            check(&written, &query, Rows::Table("log"), "log.sql", &words);
        }
    }
    for (kind, view, columns) in [
        (Kind::Sched, "waits", &*waits),
        (Kind::Cpu, "slices", &*slices),
        (Kind::Syscalls, "syscalls", calls),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("label", "''"),
            ("keys", "true"),
            ("limit", "9"),
            ("order", "series"),
        ];
        for query in windows(amount(), &query(kind, Verb::Top)) {
            let query = Query {
                limit: Some(9),
                ..query
            };
            check(&written, &query, Rows::Series("top_"), "top.sql", &words);
        }
    }
}

#[test]
fn cpu_time_equals_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let whole = "(getvariable('span_end') - getvariable('span_begin'))";
    let width = 70_000_000;
    for (interval, width, time) in [
        (None, whole.to_owned(), ""),
        (Some(width), width.to_string(), "part AS ts_ns,"),
    ] {
        let at_intervals = |query: Query| Query { interval, ..query };
        let words = [
            ("keys", "comm"),
            ("groups", "comm"),
            ("width", &*width),
            ("time", time),
            ("order", ORDER_COMM),
        ];
        for query in windows(amount(), &by(&["comm"], query(Kind::Cpu, Verb::Usage))) {
            let query = at_intervals(query);
            check(
                &written,
                &query,
                Rows::Table("usage"),
                "usage_cpu.sql",
                &words,
            );
        }
        let words = [("width", &*width), ("time", time)];
        for query in windows(amount(), &by(&["cpu"], query(Kind::Cpu, Verb::Usage))) {
            let query = at_intervals(query);
            check(
                &written,
                &query,
                Rows::Table("cpus"),
                "usage_cpus.sql",
                &words,
            );
        }
    }
}

#[test]
fn timelines_and_resources_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for query in windows(amount(), &query(Kind::Threads, Verb::Timeline)) {
        for interval in [None, Some(70_000_000), Some(1_000_000)] {
            let whole = "(getvariable('span_end') - getvariable('span_begin'))";
            let sixty = format!("(({whole} + 59) // 60)");
            let width = interval.map_or(sixty, |width: i64| width.to_string());
            let query = Query {
                interval,
                ..query.clone()
            };
            check(
                &written,
                &query,
                Rows::Table("timeline"),
                "timeline.sql",
                &[("width", &width)],
            );
        }
    }
    for query in windows(amount(), &query(Kind::Use, Verb::Usage)) {
        check(&written, &query, Rows::Table("resources"), "use.sql", &[]);
    }
}

#[test]
fn filters_of_system_calls_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (condition, pids, ops) in [
        ("pid = 1003", vec![1003], vec![]),
        (
            "name = 'futex' OR op IN ('write', 'read_write')",
            vec![],
            vec!["write", "futex"],
        ),
        (
            "pid = 1001 AND name = 'epoll_wait'",
            vec![1001],
            vec!["epoll_wait"],
        ),
    ] {
        for mut query in windows(amount(), &query(Kind::Syscalls, Verb::Log)) {
            query.filter.pids.clone_from(&pids);
            query.filter.ops = ops.iter().map(ToString::to_string).collect();
            let words = [
                ("view", "syscalls"),
                ("columns", "'op:' || id AS id, name, pid"),
                ("cut", "cut_of(ts, ts_end, cut)"),
                ("where", condition),
            ];
            check(&written, &query, Rows::Table("log"), "log.sql", &words);
        }
    }
}

#[test]
fn interrupts_memory_and_network_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let whole = "(getvariable('span_end') - getvariable('span_begin'))";
    let words = [
        ("keys", "comm"),
        ("time", ""),
        ("time_order", ""),
        ("length", whole),
        ("order", ORDER_COMM),
    ];
    for query in windows(amount(), &by(&["comm"], query(Kind::Irq, Verb::Usage))) {
        check(
            &written,
            &query,
            Rows::Table("usage"),
            "usage_irq.sql",
            &words,
        );
    }
    let words = [
        ("keys", "comm"),
        ("names", "comm"),
        ("order", ORDER_COMM),
        ("first", ""),
        ("time", ""),
        ("part", ""),
        ("width", &*format!("({whole} + 1000000000)")),
        ("either", "coalesce(pages.comm, stalled.comm) AS comm"),
        ("on", "pages.comm IS NOT DISTINCT FROM stalled.comm"),
    ];
    for query in windows(amount(), &by(&["comm"], query(Kind::Mem, Verb::Usage))) {
        check(
            &written,
            &query,
            Rows::Table("usage"),
            "usage_mem.sql",
            &words,
        );
    }
    for query in windows(amount(), &by(&["comm"], query(Kind::Net, Verb::Usage))) {
        check(
            &written,
            &query,
            Rows::Table("usage"),
            "usage_net_owner.sql",
            &words,
        );
    }
    for (key, order) in [
        ("netif", "netif NULLS FIRST"),
        ("protocol", "protocol NULLS FIRST"),
    ] {
        let words = [
            ("keys", key),
            ("order", order),
            ("first", ""),
            ("seconds", "span_s()"),
        ];
        for query in windows(amount(), &by(&[key], query(Kind::Net, Verb::Usage))) {
            check(
                &written,
                &query,
                Rows::Table("usage"),
                "usage_net.sql",
                &words,
            );
        }
    }
    for query in windows(amount(), &by(&["peer"], query(Kind::Net, Verb::Usage))) {
        check(
            &written,
            &query,
            Rows::Table("usage"),
            "usage_peer.sql",
            &[],
        );
    }
}
