//! Every verb × kind compared with an independent SQL query that DuckDB runs over the same Parquet
//! files: all rows, in order.

use whyslow_analysis::{Bins, Kind, Query, Verb};
use whyslow_model::Window;
use whyslow_store::Tables;

use crate::it::duckdb::{Rows, amount, by, check, query, windows, written};
use crate::it::made;

const SIZE: &str =
    "coalesce(sum(bytes), 0)::BIGINT AS bytes, coalesce(sum(bytes), 0) / span_s() AS bytes_per_s,";
/// System call classes in the order of answers.
const CLASSES: &str =
    "['open', 'connect', 'close', 'read', 'write', 'read_write', 'sync', 'metadata']";
/// States in which a thread is held up come first.
const STATES: &str = "coalesce(array_position(['uninterruptible', 'runnable', 'sleeping', 'running'], state), 9), state";
/// The window as one interval.
const WHOLE: &str = "greatest(1, getvariable('span_end') - getvariable('span_begin'))";
const ERRNO: &str = "count(*) FILTER (WHERE errno > 0) AS errors,";

#[test]
fn stats_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let dir = "regexp_replace(object, '^(/.*/|/)[^/]*$', '\\1') AS dir";
    for (kind, view, id, keys, expression, error) in [
        (Kind::Io, "io", "op", &["op"][..], "op", ERRNO),
        (Kind::Io, "io", "op", &["comm", "pid"], "comm, pid", ERRNO),
        (
            Kind::Io,
            "io",
            "op",
            &["tid", "fd_class", "cpu"],
            "tid, fd_class, cpu",
            ERRNO,
        ),
        (Kind::Io, "io", "op", &["file"], "object AS file", ERRNO),
        (Kind::Io, "io", "op", &["dir"], dir, ERRNO),
        (
            Kind::Files,
            "files",
            "op",
            &["file", "op"],
            "object AS file, op",
            ERRNO,
        ),
        (
            Kind::Block,
            "block",
            "block",
            &["dev", "op"],
            "dev_name AS dev, op",
            "count(*) FILTER (WHERE error > 0) AS errors,",
        ),
        (
            Kind::Block,
            "block",
            "block",
            &["part"],
            "part_name AS part",
            "",
        ),
        (
            Kind::States,
            "states",
            "state",
            &["state", "comm"],
            "state, comm",
            "",
        ),
    ] {
        let order: Vec<String> = keys
            .iter()
            .map(|key| format!("{key} NULLS FIRST"))
            .collect();
        let size = if kind == Kind::States { "" } else { SIZE };
        let words = [
            ("view", view),
            ("id", id),
            ("keys", expression),
            ("order", &order.join(", ")),
            ("size", size),
            ("errors", error),
        ];
        let query = by(keys, query(kind, Verb::Stats));
        for query in windows(amount(), &query) {
            check(&written, &query, Rows::Table("stats"), "stats.sql", &words);
        }
    }
    for query in windows(amount(), &query(Kind::Block, Verb::Stats)) {
        check(
            &written,
            &query,
            Rows::Table("stats"),
            "stats_stages.sql",
            &[],
        );
    }
    let order = "name NULLS FIRST";
    let words = [
        ("view", "syscalls"),
        ("id", "op"),
        ("keys", "name"),
        ("order", order),
        ("size", SIZE),
        ("errors", ERRNO),
    ];
    for query in windows(amount(), &query(Kind::Io, Verb::Syscalls)) {
        check(
            &written,
            &query,
            Rows::Table("syscalls"),
            "stats.sql",
            &words,
        );
        check(
            &written,
            &query,
            Rows::ByFirst("syscalls"),
            "errnos.sql",
            &[],
        );
    }
}

#[test]
fn usage_equals_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (keys, names, shown, with) in [
        (
            &["process"][..],
            "upid",
            "process.comm, process.pid, joined.* EXCLUDE (upid)",
            "LEFT JOIN process USING (upid)",
        ),
        (&["comm", "pid"], "comm, pid", "*", ""),
        (&["tid"], "tid", "*", ""),
    ] {
        let each = |form: &dyn Fn(&str) -> String, separator| {
            let names: Vec<String> = names.split(", ").map(form).collect();
            names.join(separator)
        };
        let either = |name: &str| format!("coalesce(calls.{name}, disk.{name}) AS {name}");
        let same = |name: &str| format!("calls.{name} IS NOT DISTINCT FROM disk.{name}");
        let order = |name: &str| format!("{name} NULLS FIRST");
        let words = [
            ("keys", names),
            ("names", names),
            ("either", &*each(&either, ", ")),
            ("on", &*each(&same, " AND ")),
            ("order", &*each(&order, ", ")),
            ("shown", shown),
            ("with", with),
            ("first", ""),
        ];
        let query = by(keys, query(Kind::Io, Verb::Usage));
        for query in windows(amount(), &query) {
            let usage = Rows::Table("usage");
            check(&written, &query, usage, "usage_owner.sql", &words);
        }
    }
    for (kind, view, wanted) in [
        (Kind::Io, "io", "true"),
        (Kind::Files, "files", "path2 LIKE '/%'"),
    ] {
        let by_file = by(&["file"], query(kind, Verb::Usage));
        for query in windows(amount(), &by_file) {
            let words = [
                ("view", view),
                ("wanted", wanted),
                ("name", "file"),
                ("time", ""),
                ("ts", ""),
                ("first", "object"),
                ("second", "path2"),
            ];
            let usage = Rows::Table("usage");
            check(&written, &query, usage, "usage_file.sql", &words);
            let users = Rows::ByFirst("usage");
            check(&written, &query, users, "sharers.sql", &words);
        }
    }
    // The patterns of the generated names.
    let pattern = |path: &str| {
        [
            (r"/[0-9a-f]{8}-[0-9a-f-]{27}/\d+\.txt$", "/<uuid>/<n>.txt"),
            (r"/access-\d+\.log$", "/access-<n>.log"),
            (r"/part-\d+/", "/part-<n>/"),
        ]
        .iter()
        .fold(path.to_owned(), |text, (from, to)| {
            format!("regexp_replace({text}, '{from}', '{to}')")
        })
    };
    let words = [
        ("view", "io"),
        ("wanted", "true"),
        ("name", "pattern"),
        ("time", ""),
        ("ts", ""),
        ("first", &*pattern("object")),
        ("second", &*pattern("path2")),
    ];
    let by_pattern = by(&["pattern"], query(Kind::Io, Verb::Usage));
    for query in windows(amount(), &by_pattern) {
        let usage = Rows::Table("usage");
        check(&written, &query, usage, "usage_file.sql", &words);
    }
    for query in windows(amount(), &query(Kind::States, Verb::Usage)) {
        check(
            &written,
            &query,
            Rows::Table("states"),
            "usage_states.sql",
            &[("time", ""), ("width", WHOLE)],
        );
    }
    for query in windows(amount(), &query(Kind::Block, Verb::Usage)) {
        let info = written.recording.info();
        let span = query
            .window
            .unwrap_or(Window::new(info.begin_ns, info.end_ns));
        let words = [
            ("width", &*format!("{}::BIGINT", span.length())),
            ("time", ""),
            ("order", "read_bytes + write_bytes DESC, dev"),
        ];
        check(
            &written,
            &query,
            Rows::Table("devices"),
            "devices.sql",
            &words,
        );
        let series = Query {
            interval: Some(7_000_000),
            ..query
        };
        let words = [
            ("width", "7000000::BIGINT"),
            ("time", "b AS ts_ns,"),
            ("order", "ts_ns, dev"),
        ];
        check(
            &written,
            &series,
            Rows::Table("devices"),
            "devices.sql",
            &words,
        );
    }
}

#[test]
fn distributions_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let classes = format!("array_position({CLASSES}, series)");
    for (kind, keys, view, label, order) in [
        (Kind::Io, &["op"][..], "io", "op", &*classes),
        (
            Kind::Io,
            &["name", "cpu"],
            "io",
            "name || ' cpu ' || cpu",
            "series",
        ),
        (
            Kind::Block,
            &["dev", "op"],
            "block",
            "dev_name || ' ' || op",
            "series",
        ),
        (
            Kind::States,
            &["state"],
            "states",
            "state",
            &STATES
                .replace("state)", "series)")
                .replace(", state", ", series"),
        ),
        (Kind::Files, &["file"], "files", "path", "series"),
    ] {
        let words = [
            ("view", view),
            ("label", label),
            ("order", order),
            ("among", "PARTITION BY series"),
            ("width", ""),
        ];
        for query in windows(amount(), &by(keys, query(kind, Verb::Hist))) {
            check(&written, &query, Rows::Series("hist"), "hist.sql", &words);
            let linear = Query {
                bins: Bins::Linear {
                    count: 20,
                    uniform: false,
                },
                ..query.clone()
            };
            check(
                &written,
                &linear,
                Rows::Series("hist"),
                "hist_linear.sql",
                &words,
            );
            let uniform = Query {
                bins: Bins::Linear {
                    count: 20,
                    uniform: true,
                },
                ..query
            };
            let words = words.map(|(word, text)| (word, if word == "among" { "" } else { text }));
            check(
                &written,
                &uniform,
                Rows::Series("hist"),
                "hist_linear.sql",
                &words,
            );
        }
    }
}

#[test]
fn rows_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let error = |column: &str| {
        format!(
            "CASE {column} WHEN 2 THEN 'ENOENT' WHEN 5 THEN 'EIO' WHEN 11 THEN 'EAGAIN' WHEN 13 THEN 'EACCES' END AS error"
        )
    };
    let io = format!(
        "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, name, op, bytes, comm, pid, tid, object AS path, fd, path2, fd2, fd_class, cpu, 'op:' || id AS id, {}",
        error("errno")
    );
    let block = format!(
        "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, queue_ns, device_ns, dev_name AS dev, part_name AS part, op, rwbs, sector, sectors, bytes, comm, pid, tid, layer, 'block:' || id AS id, {}",
        error("error")
    );
    let states = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, state, comm, pid, tid, cpu, 'state:' || id AS id";
    let edge = "cut_of(ts, ts_end, cut)";
    let state_edge = "cut_of(ts, ts_end, CASE WHEN ts_end IS NULL THEN 'end' END)";
    for (kind, view, columns, edge) in [
        (Kind::Io, "io", &*io, edge),
        (Kind::Block, "block", &*block, edge),
        (Kind::States, "states", states, state_edge),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("cut", edge),
            ("where", "true"),
        ];
        for query in windows(amount(), &query(kind, Verb::Log)) {
            check(&written, &query, Rows::Table("log"), "log.sql", &words);
        }
    }
    for (kind, view, columns, key, order) in [
        (
            Kind::Io,
            "io",
            &*io,
            "op",
            &*format!("array_position({CLASSES}, op)"),
        ),
        (Kind::States, "states", states, "state", STATES),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("label", key),
            ("keys", key),
            ("limit", "7"),
            ("order", order),
        ];
        for query in windows(amount(), &query(kind, Verb::Top)) {
            let query = Query {
                limit: Some(7),
                ..query
            };
            check(&written, &query, Rows::Series("top_"), "top.sql", &words);
        }
    }
    let words = [
        ("view", "block"),
        ("columns", &*block),
        ("label", "dev_name || ' ' || op"),
        ("keys", "dev_name, op"),
        ("limit", "7"),
        ("order", "dev_name, op"),
    ];
    for query in windows(amount(), &query(Kind::Block, Verb::Top)) {
        let query = Query {
            limit: Some(7),
            ..query
        };
        check(&written, &query, Rows::Series("top_"), "top.sql", &words);
    }
}

#[test]
fn outliers_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let log = "ts AS ts_ns, dur AS dur_ns, queue_ns, device_ns, dev_name AS dev, op, sector, bytes, \
               comm, pid, 'block:' || id AS id";
    for filtered in [false, true] {
        for mut query in windows(amount(), &query(Kind::Block, Verb::Outliers)) {
            query.filter.dur_min = Some(100_000);
            let mut wanted = "true";
            if filtered {
                query.filter.ops = vec!["write".into()];
                wanted = "op = 'write'";
            }
            let over = format!(
                "{wanted} AND certain(cut) AND coalesce(dur, known_until(ts, dur, ts_end, cut) - ts) >= 100000"
            );
            let words = [
                ("view", "block"),
                ("columns", log),
                ("cut", "cut_of(ts, ts_end, cut)"),
                ("where", &*over),
            ];
            let requests = Rows::Table("requests");
            check(&written, &query, requests, "log.sql", &words);
            let words = [("min", "100000"), ("where", wanted)];
            let devices = Rows::Table("devices");
            check(&written, &query, devices, "outliers.sql", &words);
        }
    }
}

#[test]
fn filters_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let check_io = |condition: &str, change: &dyn Fn(&mut Query)| {
        let mut query = query(Kind::Io, Verb::Log);
        change(&mut query);
        let words = [
            ("view", "io"),
            ("columns", "'op:' || id AS id"),
            ("cut", "cut_of(ts, ts_end, cut)"),
            ("where", condition),
        ];
        check(&written, &query, Rows::Table("log"), "log.sql", &words);
    };
    check_io("pid = 1003", &|q| q.filter.pids = vec![1003]);
    check_io("tid IN (1003, 1501)", &|q| q.filter.tids = vec![1003, 1501]);
    check_io("comm GLOB 'kw*'", &|q| q.filter.comms = vec!["kw*".into()]);
    check_io("cpu = 2", &|q| q.filter.cpus = vec![2]);
    check_io("op IN ('read', 'read_write')", &|q| {
        q.filter.ops = vec!["read".into()];
    });
    check_io("op = 'sync' OR name = 'openat'", &|q| {
        q.filter.ops = vec!["sync".into(), "openat".into()];
    });
    check_io("bytes IS NULL OR bytes >= 30000", &|q| {
        q.filter.size_min = Some(30_000);
    });
    check_io("bytes IS NULL OR bytes <= 300", &|q| {
        q.filter.size_max = Some(300);
    });
    check_io(
        "coalesce(dur, known_until(ts, dur, ts_end, cut) - ts) >= 100000",
        &|q| q.filter.dur_min = Some(100_000),
    );
    check_io("dur BETWEEN 1000 AND 64000", &|q| {
        q.filter.dur_min = Some(1000);
        q.filter.dur_max = Some(64_000);
    });
    check_io("errno IS NOT NULL", &|q| q.filter.errors_only = true);
    check_io("utid IS NULL OR utid NOT IN (6, 7)", &|q| {
        q.filter.no_tracer = true;
    });
    check_io("path LIKE '/etc/%' OR path2 LIKE '/etc/%'", &|q| {
        q.filter.files = vec!["/etc/*".into()];
    });
    check_io("path LIKE '%.log' OR path2 LIKE '%.log'", &|q| {
        q.filter.files = vec!["*.log".into()];
    });
    check_io(
        "id <> 12345 AND ts < (SELECT coalesce(ts_end, getvariable('rec_end')) FROM syscall WHERE id = 12345)
         AND (ts_end IS NULL OR ts_end > (SELECT ts FROM syscall WHERE id = 12345)
              OR ts_end = ts AND ts = (SELECT ts FROM syscall WHERE id = 12345))",
        &|q| q.overlaps = Some(("syscall".into(), 12_345)),
    );
}

#[test]
fn files_and_threads_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (name, key) in [("file", "path"), ("dir", "regexp_extract(path, '^.*/')")] {
        for query in windows(amount(), &by(&[name], query(Kind::Files, Verb::Top))) {
            let (starts, ends) = match query.window {
                None => ("true".into(), "ts_end IS NOT NULL".into()),
                Some(Window { begin, end }) => (
                    format!("ts >= {begin} AND ts < {end}"),
                    format!("ts_end >= {begin} AND ts_end < {end}"),
                ),
            };
            let words = [
                ("name", name),
                ("key", key),
                ("starts", &*starts),
                ("ends", &*ends),
            ];
            check(
                &written,
                &query,
                Rows::Table("files"),
                "files_top.sql",
                &words,
            );
        }
    }
    for wide in [false, true] {
        for query in windows(amount(), &query(Kind::Files, Verb::Tree)) {
            let query = Query { wide, ..query };
            let leaves = wide.to_string();
            let tree = Rows::ByFirst("tree");
            check(
                &written,
                &query,
                tree,
                "files_tree.sql",
                &[("leaves", &*leaves)],
            );
        }
    }
    let at = made::BEGIN + 400_000_000;
    let mut open = query(Kind::Files, Verb::Open);
    open.at = Some(at);
    check(
        &written,
        &open,
        Rows::Table("open"),
        "files_open.sql",
        &[("at", &at.to_string())],
    );
    for query in windows(amount(), &query(Kind::Threads, Verb::List)) {
        check(&written, &query, Rows::Table("threads"), "threads.sql", &[]);
    }
    let lives = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS life_ns, path, created, deleted, opens, reads, writes, bytes_read AS read_bytes, bytes_written AS write_bytes, comm, pid";
    let words = [
        ("view", "file_life"),
        ("columns", lives),
        ("cut", "cut_of(ts, ts_end, NULL)"),
        ("where", "touches(ts, ts_end)"),
    ];
    for query in windows(amount(), &query(Kind::Files, Verb::Log)) {
        check(&written, &query, Rows::Table("log"), "log.sql", &words);
    }
}
