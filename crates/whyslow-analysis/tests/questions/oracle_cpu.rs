//! Questions about CPUs, waits for them, interrupts, memory and network against SQL, as in
//! `oracle.rs`.

use whyslow_analysis::{Kind, Question, Verb};

use crate::duckdb::{Rows, amount, by, check, question, windows, written};

const ORDER_COMM: &str = "comm NULLS FIRST";

/// Kind, its view, prefix of its ids, and keys with the SQL that names them.
const KINDS: [(Kind, &str, &str, &[&str], &str); 6] = [
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
        for question in windows(amount(), &by(keys, question(kind, Verb::Stats))) {
            check(
                &written,
                &question,
                Rows::Table("stats"),
                "stats.sql",
                &words,
            );
        }
    }
    for question in windows(amount(), &question(Kind::Irq, Verb::Stats)) {
        check(
            &written,
            &question,
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
    // Those without a reason come first.
    let order = "series <> 'no reason', series";
    for (kind, key, view, label) in [
        (
            Kind::Sched,
            "reason",
            "waits",
            "coalesce(reason, 'no reason')",
        ),
        (Kind::Irq, "kind", "irqs", "kind"),
        (Kind::Cpu, "cpu", "slices", "'cpu ' || cpu"),
    ] {
        let words = [("view", view), ("label", label), ("order", order)];
        for question in windows(amount(), &by(&[key], question(kind, Verb::Hist))) {
            check(
                &written,
                &question,
                Rows::Series("hist"),
                "hist.sql",
                &words,
            );
        }
        let words = [
            ("view", view),
            ("label", label),
            ("order", order),
            ("width", "10000000"),
        ];
        for question in windows(amount(), &by(&[key], question(kind, Verb::Heat))) {
            let question = Question {
                interval: Some(10_000_000),
                ..question
            };
            check(
                &written,
                &question,
                Rows::Series("heat"),
                "heat.sql",
                &words,
            );
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
    let waits =
        format!("{times}, reason, prio, {waker} AS waker, wake_context, 'state:' || id AS id");
    let irqs = format!("{times}, self_ns, kind, nr, name, raise_ns, ret, 'irq:' || id AS id");
    let slices = format!(
        "{times}, prio, system_ns, hardirq_ns, softirq_ns, end_state, 'slice:' || id AS id"
    );
    let calls = "ts AS ts_ns, dur AS dur_ns, comm, tid, name, fd, bytes_requested, \
                 file_offset AS offset, flags, ret, 'op:' || id AS id";
    let no_end = "cut_of(ts, ts_end, CASE WHEN ts_end IS NULL THEN 'end' END)";
    for (kind, view, columns, cut) in [
        (Kind::Sched, "waits", &*waits, no_end),
        (Kind::Irq, "irqs", &*irqs, no_end),
        (Kind::Cpu, "slices", &*slices, no_end),
        (Kind::Syscalls, "syscalls", calls, "cut_of(ts, ts_end, cut)"),
        (
            Kind::Net,
            "packets",
            "ts AS ts_ns, kind, netif, bytes, source, destination, comm, tid",
            "NULL",
        ),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("cut", cut),
            ("where", "true"),
        ];
        for question in windows(amount(), &question(kind, Verb::Log)) {
            check(&written, &question, Rows::Table("log"), "log.sql", &words);
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
        for question in windows(amount(), &question(kind, Verb::Top)) {
            let question = Question {
                limit: Some(9),
                ..question
            };
            check(&written, &question, Rows::Series("top_"), "top.sql", &words);
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
        let at_intervals = |question: Question| Question {
            interval,
            ..question
        };
        let words = [
            ("keys", "comm"),
            ("groups", "comm"),
            ("width", &*width),
            ("time", time),
            ("order", ORDER_COMM),
        ];
        for question in windows(amount(), &by(&["comm"], question(Kind::Cpu, Verb::Usage))) {
            let question = at_intervals(question);
            check(
                &written,
                &question,
                Rows::Table("usage"),
                "usage_cpu.sql",
                &words,
            );
        }
        let words = [("width", &*width), ("time", time)];
        for question in windows(amount(), &by(&["cpu"], question(Kind::Cpu, Verb::Usage))) {
            let question = at_intervals(question);
            check(
                &written,
                &question,
                Rows::Table("cpus"),
                "usage_cpus.sql",
                &words,
            );
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
    for question in windows(amount(), &by(&["comm"], question(Kind::Irq, Verb::Usage))) {
        check(
            &written,
            &question,
            Rows::Table("usage"),
            "usage_irq.sql",
            &words,
        );
    }
    let words = [("keys", "comm"), ("order", ORDER_COMM)];
    for question in windows(amount(), &by(&["comm"], question(Kind::Mem, Verb::Usage))) {
        check(
            &written,
            &question,
            Rows::Table("usage"),
            "usage_mem.sql",
            &words,
        );
    }
    for question in windows(amount(), &by(&["comm"], question(Kind::Net, Verb::Usage))) {
        check(
            &written,
            &question,
            Rows::Table("usage"),
            "usage_net_owner.sql",
            &words,
        );
    }
    for (key, order) in [("netif", "netif"), ("protocol", "protocol NULLS FIRST")] {
        let words = [("keys", key), ("order", order)];
        for question in windows(amount(), &by(&[key], question(Kind::Net, Verb::Usage))) {
            check(
                &written,
                &question,
                Rows::Table("usage"),
                "usage_net.sql",
                &words,
            );
        }
    }
    for question in windows(amount(), &by(&["peer"], question(Kind::Net, Verb::Usage))) {
        check(
            &written,
            &question,
            Rows::Table("usage"),
            "usage_peer.sql",
            &[],
        );
    }
}
