//! `usage` by interval compared with SQL, as in `oracle.rs`.

use std::collections::BTreeMap;

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::Value;

use crate::it::duckdb::{Rows, amount, by, check, query, sql, windows, written};
use crate::it::made::{Amount, BEGIN};
use crate::it::shown;

/// Does not divide the window: the last interval is shorter.
const WIDTH: i64 = 70_000_000;

fn each_part(query: &Query) -> [Query; 2] {
    let of_parts = |query: Query| Query {
        interval: Some(WIDTH),
        ..query
    };
    windows(amount(), query).map(of_parts)
}

#[test]
fn io_by_interval_equals_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let time = format!("begin_of(ts, {WIDTH}) AS ts_ns");
    let either = |name: &str| format!("coalesce(calls.{name}, disk.{name}) AS {name}");
    let same = |name: &str| format!("calls.{name} IS NOT DISTINCT FROM disk.{name}");
    for (key, name, shown, with) in [
        (
            "process",
            "upid",
            "ts_ns, process.comm, process.pid, joined.* EXCLUDE (upid, ts_ns)",
            "LEFT JOIN process USING (upid)",
        ),
        ("tid", "tid", "*", ""),
    ] {
        let words = [
            ("keys", &*format!("{time}, {name}")),
            ("names", &*format!("ts_ns, {name}")),
            ("either", &*format!("{}, {}", either("ts_ns"), either(name))),
            ("on", &*format!("{} AND {}", same("ts_ns"), same(name))),
            ("order", &*format!("{name} NULLS FIRST")),
            ("shown", shown),
            ("with", with),
            ("first", "ts_ns,"),
        ];
        for query in each_part(&by(&[key], query(Kind::Io, Verb::Usage))) {
            let usage = Rows::Table("usage");
            check(&written, &query, usage, "usage_owner.sql", &words);
        }
    }
    for (kind, view, wanted) in [
        (Kind::Io, "io", "true"),
        (Kind::Files, "files", "path2 LIKE '/%'"),
    ] {
        let words = [
            ("time", &*format!("{time},")),
            ("ts", "ts_ns,"),
            ("view", view),
            ("wanted", wanted),
            ("name", "file"),
            ("first", "object"),
            ("second", "path2"),
        ];
        for query in each_part(&by(&["file"], query(kind, Verb::Usage))) {
            let usage = Rows::Table("usage");
            check(&written, &query, usage, "usage_file.sql", &words);
        }
    }
    let width = WIDTH.to_string();
    for query in each_part(&query(Kind::Io, Verb::Usage)) {
        let words = [("width", &*width)];
        let interfaces = Rows::Table("interfaces");
        check(&written, &query, interfaces, "interfaces.sql", &words);
        let words = [
            ("width", &*format!("{width}::BIGINT")),
            ("time", "b AS ts_ns,"),
            ("order", "ts_ns, dev"),
        ];
        check(
            &written,
            &query,
            Rows::Table("devices"),
            "devices.sql",
            &words,
        );
    }
}

#[test]
fn sharers_by_interval_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for query in each_part(&by(&["file"], query(Kind::Io, Verb::Usage))) {
        let width = WIDTH.to_string();
        let expected = sql(
            &written,
            &query,
            "sharers_by_time.sql",
            &[("width", &width)],
        );
        let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
        let expected: BTreeMap<_, _> = expected
            .iter()
            .map(|row| (text(row, "place"), text(row, "by")))
            .collect();
        let answer = evaluate(&written.recording, &query).unwrap();
        let table = shown::table(&answer, "usage");
        let [ts, file, by] = ["ts_ns", "file", "by"].map(|name| shown::place(table, name));
        let rows = table.rows.iter().filter(|row| row[file] != Value::Null);
        let cell = |row: &[Value], place: usize| shown::cell(&row[place]);
        let found: BTreeMap<_, _> = rows
            .map(|row| {
                (
                    format!("{} {}", cell(row, ts), cell(row, file)),
                    cell(row, by),
                )
            })
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(found, expected);
    }
}

#[test]
fn states_interrupts_memory_and_packets_by_interval_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let width = WIDTH.to_string();
    // The last interval is shorter.
    let length =
        |begin: &str| format!("(least({begin} + {WIDTH}, getvariable('span_end')) - {begin})");
    let seconds = format!("({} / 1e9)", length("ts_ns"));
    let order = "comm NULLS FIRST";
    let usage = Rows::Table("usage");
    for (kind, verb) in [(Kind::States, Verb::Usage), (Kind::Threads, Verb::States)] {
        for query in each_part(&query(kind, verb)) {
            let words = [("time", "part AS ts_ns,"), ("width", &*width)];
            check(
                &written,
                &query,
                Rows::Table("states"),
                "usage_states.sql",
                &words,
            );
        }
    }
    let time = format!("begin_of(ts, {WIDTH}) AS ts_ns,");
    for query in each_part(&by(&["comm"], query(Kind::Irq, Verb::Usage))) {
        let words = [
            ("keys", "comm"),
            ("time", &*time),
            ("time_order", "ts_ns,"),
            (
                "length",
                &*format!("any_value({})", length(&format!("begin_of(ts, {WIDTH})"))),
            ),
            ("order", order),
        ];
        check(&written, &query, usage, "usage_irq.sql", &words);
    }
    let keys = format!("{time} netif");
    let words = [
        ("keys", &*keys),
        ("first", "ts_ns,"),
        ("order", "netif NULLS FIRST"),
        ("seconds", &*seconds),
    ];
    for query in each_part(&by(&["netif"], query(Kind::Net, Verb::Usage))) {
        check(&written, &query, usage, "usage_net.sql", &words);
    }
}

/// Long enough for several intervals of whole seconds, in which pages are counted.
#[test]
fn memory_by_interval_equals_sql() {
    const WIDTH: i64 = 3_000_000_000;
    let long = Amount {
        syscalls: 20_000,
        blocks: 10,
        gap_ns: 1_000_000,
        ..amount()
    };
    let Some(written) = written(long) else {
        return;
    };
    let time = format!("begin_in_seconds(ts, {WIDTH}) AS ts_ns,");
    let width = WIDTH.to_string();
    let either = "coalesce(pages.ts_ns, stalled.ts_ns) AS ts_ns, \
                  coalesce(pages.comm, stalled.comm) AS comm";
    let on = "pages.ts_ns = stalled.ts_ns AND pages.comm IS NOT DISTINCT FROM stalled.comm";
    let words = [
        ("keys", "comm"),
        ("time", &*time),
        ("part", "part AS ts_ns,"),
        ("width", &*width),
        ("either", either),
        ("on", on),
        ("first", "ts_ns,"),
        ("order", "comm NULLS FIRST"),
    ];
    for query in windows(long, &by(&["comm"], query(Kind::Mem, Verb::Usage))) {
        let query = Query {
            interval: Some(WIDTH),
            ..query
        };
        let usage = Rows::Table("usage");
        check(&written, &query, usage, "usage_mem.sql", &words);
    }
}

#[test]
fn errors_by_number_are_those_of_their_interval() {
    let Some(written) = written(amount()) else {
        return;
    };
    for query in each_part(&query(Kind::Syscalls, Verb::Stats)) {
        let answer = evaluate(&written.recording, &query).unwrap();
        let table = shown::table(&answer, "syscalls");
        let [errors, errnos] = ["errors", "errnos"].map(|name| shown::place(table, name));
        let mut failed = 0;
        for row in &table.rows {
            let Value::List(numbers) = &row[errnos] else {
                panic!("a list: {row:?}");
            };
            let count = |number: &Value| {
                let text = shown::cell(number);
                text.rsplit(' ')
                    .next()
                    .and_then(|count| count.parse::<i64>().ok())
                    .unwrap()
            };
            let sum: i64 = numbers.iter().map(count).sum();
            assert_eq!(Value::Int(sum), row[errors], "{row:?}");
            failed += sum;
        }
        assert!(failed > 0);
    }
}

/// `-n` limits the rows of each block; they are the first of all rows.
#[test]
fn a_limit_is_that_of_each_interval() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (kind, verb, keys) in [
        (Kind::Io, Verb::Usage, &["file"][..]),
        (Kind::Io, Verb::Usage, &["tid"]),
        (Kind::Io, Verb::Stats, &["op"]),
        (Kind::Net, Verb::Usage, &["netif"]),
        (Kind::Cpu, Verb::Usage, &["tid"]),
        (Kind::States, Verb::Usage, &["tid"]),
    ] {
        let all = Query {
            interval: Some(WIDTH),
            ..by(keys, query(kind, verb))
        };
        let few = Query {
            limit: Some(1),
            ..all.clone()
        };
        let [all, few] = [all, few].map(|query| evaluate(&written.recording, &query).unwrap());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut expected = all.tables[0].rows.clone();
        expected.retain(|row| {
            let count = seen.entry(shown::cell(&row[0])).or_default();
            *count += 1;
            *count <= 1
        });
        assert!(expected.len() < all.tables[0].rows.len());
        assert_eq!(few.tables[0].rows, expected, "{kind:?} {verb:?} {keys:?}");
    }
}

/// Each block of `use` equals the answer for its interval alone.
#[test]
fn use_by_interval_is_use_of_each_window() {
    let Some(written) = written(amount()) else {
        return;
    };
    let series = Query {
        interval: Some(WIDTH),
        window: Some(Window::new(BEGIN + 100_000_000, BEGIN + 300_000_000)),
        ..query(Kind::Use, Verb::Usage)
    };
    let answer = evaluate(&written.recording, &series).unwrap();
    let mut expected = Vec::new();
    for begin in [100_000_000, 170_000_000, 240_000_000] {
        let (begin, end) = (BEGIN + begin, BEGIN + (begin + WIDTH).min(300_000_000));
        let part = Query {
            window: Some(Window::new(begin, end)),
            ..query(Kind::Use, Verb::Usage)
        };
        let answer = evaluate(&written.recording, &part).unwrap();
        for row in &answer.tables[0].rows {
            let mut row = row.clone();
            row.insert(0, begin.into());
            expected.push(row);
        }
    }
    assert_eq!(answer.tables[0].rows, expected);
}
