//! Figures of disks against SQL over `block_io`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{assert_close, float, incident, parts, span, sql, text};

/// Everything that `iostat` shows, by part and device, computed from complete rows only.
fn counters((begin, end): (i64, i64), width: i64) -> Option<Vec<Value>> {
    let (_, last) = span();
    let way = |op: &str, short: char| {
        format!(
            "COUNT(*) FILTER (op = '{op}') AS {short}_n,
             COALESCE(SUM(bytes) FILTER (op = '{op}'), 0)::DOUBLE AS {short}_bytes,
             COALESCE(SUM(merges) FILTER (op = '{op}'), 0)::DOUBLE AS {short}_merges,
             COALESCE(SUM(dur) FILTER (op = '{op}'), 0)::DOUBLE AS {short}_ticks"
        )
    };
    let ways = [
        ("read", 'r'),
        ("write", 'w'),
        ("discard", 'd'),
        ("flush", 'f'),
    ];
    let ways: Vec<String> = ways.iter().map(|(op, short)| way(op, *short)).collect();
    sql(&format!(
        "{},
         done AS (SELECT p, dev_name, {} FROM part JOIN block_io ON ts_end >= p0 AND ts_end < p1x
                  GROUP BY p, dev_name),
         clip AS (SELECT p, dev_name, GREATEST(ts, p0) AS b, LEAST(COALESCE(ts_end, {last}), p1) AS e
                  FROM part JOIN block_io ON ts < p1 AND COALESCE(ts_end, {last}) > p0),
         run AS (SELECT *, MAX(e) OVER (PARTITION BY p, dev_name ORDER BY b, e
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m FROM clip),
         busy AS (SELECT p, dev_name, SUM(e - b)::DOUBLE AS total,
                  SUM(GREATEST(0, e - GREATEST(b, COALESCE(m, b))))::DOUBLE AS busy
                  FROM run GROUP BY p, dev_name),
         all_of AS (SELECT p, p0, s, dev_name FROM part CROSS JOIN
                    (SELECT DISTINCT dev_name FROM block_io))
         SELECT a.p, a.s, a.dev_name AS dev, done.* EXCLUDE (p, dev_name), total, busy
         FROM all_of a LEFT JOIN done ON a.p = done.p AND a.dev_name = done.dev_name
         LEFT JOIN busy ON a.p = busy.p AND a.dev_name = busy.dev_name
         ORDER BY a.p, a.dev_name",
        parts((begin, end), width),
        ways.join(",\n")
    ))
}

/// Rows of devices with their cells by column, in printed order.
fn devices(args: &[&str]) -> Vec<(String, BTreeMap<String, String>)> {
    let printed = incident().stdout(&[&["as", "iostat", "web.wsl"], args].concat());
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in printed.lines() {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match words.first().map(String::as_str) {
            Some("Device") => columns = words,
            Some(name) if words.len() == columns.len() && !name.starts_with("Linux") => {
                let cells = columns.iter().cloned().zip(words.iter().cloned());
                rows.push((name.to_owned(), cells.collect()));
            }
            _ => {}
        }
    }
    rows
}

fn check(args: &[&str], window: (i64, i64), width: i64) {
    let Some(want) = counters(window, width) else {
        return;
    };
    let got = devices(args);
    assert_eq!(got.len(), want.len(), "{args:?}");
    assert!(!got.is_empty());
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    for ((name, cells), want) in got.iter().zip(&want) {
        assert_eq!(*name, text(&want["dev"]), "{args:?}");
        let of = |key: &str| float(&want[key]);
        let s = of("s");
        for (column, printed) in cells {
            let short = |column: &str| column.chars().next().expect("not empty");
            let key = |what: &str| of(&format!("{}_{what}", short(column.trim_start_matches('%'))));
            let wanted = match column.as_str() {
                "Device" => continue,
                "r/s" | "w/s" | "d/s" | "f/s" => ratio(key("n"), s),
                "rkB/s" | "wkB/s" | "dkB/s" => ratio(key("bytes") / 1024.0, s),
                "rMB/s" | "wMB/s" | "dMB/s" => ratio(key("bytes") / 1_048_576.0, s),
                "rrqm/s" | "wrqm/s" | "drqm/s" => ratio(key("merges"), s),
                "%rrqm" | "%wrqm" | "%drqm" => {
                    100.0 * ratio(key("merges"), key("merges") + key("n"))
                }
                "r_await" | "w_await" | "d_await" | "f_await" => {
                    ratio(key("ticks") / 1e6, key("n"))
                }
                "rareq-sz" | "wareq-sz" | "dareq-sz" => ratio(key("bytes") / 1024.0, key("n")),
                "aqu-sz" => ratio(of("total") / 1e9, s),
                "%util" => 100.0 * ratio(of("busy") / 1e9, s),
                "svctm" => ratio(of("busy") / 1e6, of("r_n") + of("w_n") + of("d_n")),
                "tps" => ratio(of("r_n") + of("w_n") + of("d_n"), s),
                "kB_read/s" => ratio(of("r_bytes") / 1024.0, s),
                "kB_wrtn/s" => ratio(of("w_bytes") / 1024.0, s),
                "kB_dscd/s" => ratio(of("d_bytes") / 1024.0, s),
                "kB_read" => (of("r_bytes") / 1024.0).trunc(),
                "kB_wrtn" => (of("w_bytes") / 1024.0).trunc(),
                "kB_dscd" => (of("d_bytes") / 1024.0).trunc(),
                column => panic!("no arithmetic for {column}"),
            };
            let what = format!("{args:?} {name} part {} {column}", want["p"]);
            assert_close(printed, wanted, &what);
        }
    }
}

const SECOND: i64 = 1_000_000_000;

#[test]
fn iostat_counts_as_sql_does() {
    let (begin, end) = span();
    check(&["-dx"], (begin, end), end - begin);
    check(&["-d"], (begin, end), end - begin);
    check(&["-dx", "1"], (begin, end), SECOND);
    check(
        &["-d", "0.5", "7"],
        (begin, begin + 7 * SECOND / 2),
        SECOND / 2,
    );
    check(&["-dxm", "100ms"], (begin, end), SECOND / 10);
    check(&["-dx", "--layout", "11", "3"], (begin, end), 3 * SECOND);
    let window = (begin + 5 * SECOND, begin + 9 * SECOND);
    check(&["-dx", "-w", "+5s..+9s"], window, 4 * SECOND);
    check(&["-dx", "-w", "+5s..+9s", "1500ms"], window, 3 * SECOND / 2);
}

#[test]
fn iostat_says_what_our_own_question_says() {
    let answer = incident().stdout(&["block", "usage", "web.wsl", "--json", "--by", "dev"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let got = devices(&["-dx"]);
    assert_eq!(got.len(), rows.len());
    for row in rows {
        let name = text(&row["dev"]);
        let (_, cells) = got.iter().find(|(got, _)| *got == name).expect("there");
        for (column, key, scale) in [
            ("r/s", "r_per_s", 1.0),
            ("w/s", "w_per_s", 1.0),
            ("rkB/s", "read_bytes_per_s", 1.0 / 1024.0),
            ("wkB/s", "write_bytes_per_s", 1.0 / 1024.0),
            ("r_await", "r_await_ns", 1e-6),
            ("w_await", "w_await_ns", 1e-6),
            ("aqu-sz", "aqu_sz", 1.0),
            ("%util", "util_ratio", 100.0),
        ] {
            assert_close(
                &cells[column],
                float(&row[key]) * scale,
                &format!("{name} {column}"),
            );
        }
    }
}

#[test]
fn iostat_shows_the_devices_asked_for() {
    let names = |args: &[&str]| {
        let rows = devices(args);
        rows.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["-dx"]), ["sda", "vda", "vdb"]);
    assert_eq!(names(&["-dx", "vdb", "/dev/sda"]), ["sda", "vdb"]);
    assert_eq!(names(&["-d", "vda", "5", "2"]), ["vda", "vda"]);
    // The first second has no request.
    assert_eq!(names(&["-dx", "1", "1"]), ["sda", "vda", "vdb"]);
    assert_eq!(names(&["-dxz", "1", "1"]), [""; 0]);
}

#[test]
fn iostat_has_the_mean_of_all_cpus() {
    let answer = incident().stdout(&["cpu", "web.wsl", "2", "--by", "cpu", "--json"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let printed = incident().stdout(&["as", "iostat", "web.wsl", "-c", "2"]);
    let got: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() == 6 && words[0].contains('.'))
        .collect();
    // There is one CPU.
    assert_eq!(got.len(), rows.len());
    for (cells, row) in got.iter().zip(rows) {
        let of = |keys: &[&str]| 100.0 * keys.iter().map(|key| float(&row[key])).sum::<f64>();
        assert_close(cells[0], of(&["user_ratio"]), "user");
        assert_close(cells[1], of(&["nice_ratio"]), "nice");
        let system = of(&["system_ratio", "hardirq_ratio", "softirq_ratio"]);
        assert_close(cells[2], system, "system");
        assert_close(cells[3], of(&["iowait_ratio"]), "iowait");
        assert_eq!(cells[4], "-");
        assert_close(cells[5], of(&["idle_ratio"]), "idle");
    }
}

#[test]
fn biosnoop_lists_requests_by_completion() {
    let (begin, end) = span();
    let check = |args: &[&str], (from, to): (i64, i64), filter: &str| {
        let last = i64::from(to == end);
        let Some(want) = sql(&format!(
            "SELECT ts_end, comm, pid, dev_name, UPPER(op[1]) AS t, sector, bytes,
                    queue_ns / 1e6 AS que, device_ns / 1e6 AS lat
             FROM block_io WHERE ts_end > {from} AND ts_end < {to} + {last} AND {filter}
             ORDER BY ts_end, ts, id"
        )) else {
            return;
        };
        let printed = incident().stdout(&[&["as", "biosnoop", "web.wsl", "-Q"], args].concat());
        let got: Vec<&str> = printed.lines().skip(1).collect();
        assert_eq!(got.len(), want.len(), "{args:?}");
        assert!(got.len() > 10);
        let first = want[0]["ts_end"].as_i64().expect("a time");
        for (line, row) in got.iter().zip(&want) {
            // Thread names contain spaces.
            let (time, rest) = line.split_at(12);
            let comm: String = rest.chars().take(15).collect();
            let words: Vec<&str> = rest[15..].split_whitespace().collect();
            let since = row["ts_end"].as_i64().expect("a time") - first;
            assert_close(time.trim(), since as f64 / 1e9, line);
            let name: String = text(&row["comm"]).chars().take(14).collect();
            assert_eq!(comm.trim_end(), name.trim_end(), "{line}");
            let keys = ["pid", "dev_name", "t", "sector", "bytes"];
            assert_eq!(words[..5], keys.map(|key| text(&row[key])), "{line}");
            for (word, key) in words[5..].iter().zip(["que", "lat"]) {
                match &row[key] {
                    Value::Null => assert_eq!(*word, "-", "{line}"),
                    value => assert_close(word, float(value), line),
                }
            }
        }
    };
    check(&[], (begin, end), "TRUE");
    check(&["-d", "sda"], (begin, end), "dev_name = 'sda'");
    let window = (begin + 6 * SECOND, begin + 8 * SECOND);
    check(&["-w", "+6s..+8s"], window, "TRUE");
}

#[test]
fn biolatency_counts_as_sql_does() {
    let (begin, end) = span();
    let check = |args: &[&str], width: i64, value: &str, unit: i64, name: &str| {
        let Some(want) = sql(&format!(
            "{} SELECT p, {name} AS name,
                FLOOR(LOG2(GREATEST({value} // {unit}, 1)))::INT AS slot, COUNT(*) AS n
             FROM part JOIN block_io ON ts_end >= p0 AND ts_end < p1x
             WHERE {value} IS NOT NULL GROUP BY ALL ORDER BY ALL",
            parts((begin, end), width)
        )) else {
            return;
        };
        let printed = incident().stdout(&[&["as", "biolatency", "web.wsl"], args].concat());
        let mut got: Vec<(i64, String, i64, i64)> = Vec::new();
        let (mut part, mut name) = (-1, String::new());
        for line in printed.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => part += 1,
                ["disk", "=", disk] => name = (*disk).to_owned(),
                [from, "->", to, ":", count, ..] if *count != "0" => {
                    let (from, to): (i64, i64) = (from.parse().unwrap(), to.parse().unwrap());
                    let slot = i64::from((to + 1).ilog2()) - 1;
                    assert_eq!(from, if slot == 0 { 0 } else { 1 << slot }, "{line}");
                    got.push((part, name.clone(), slot, count.parse().unwrap()));
                }
                _ => {}
            }
        }
        got.sort();
        let want: Vec<_> = want
            .iter()
            .map(|row| {
                let of = |key: &str| row[key].as_i64().expect("a number");
                let name = row["name"].as_str().unwrap_or("").to_owned();
                (of("p"), name, of("slot"), of("n"))
            })
            .collect();
        assert_eq!(got, want, "{args:?}");
        assert!(!want.is_empty());
    };
    check(&[], end - begin, "device_ns", 1000, "''");
    check(&["-D"], end - begin, "device_ns", 1000, "dev_name");
    check(&["-Qm"], end - begin, "dur", 1_000_000, "''");
    check(&["-DQ", "2"], 2 * SECOND, "dur", 1000, "dev_name");
}
