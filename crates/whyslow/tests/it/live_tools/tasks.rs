//! Figures of processes and threads against SQL over the tables.

use std::collections::BTreeMap;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{assert_close, float, incident, parts, span, sql, text};

const SECOND: i64 = 1_000_000_000;

/// A table with the process added where only the thread was known at that time.
fn owned(table: &str) -> String {
    format!(
        "(SELECT x.* EXCLUDE (pid), COALESCE(x.pid, h.pid) AS pid
          FROM {table} x LEFT JOIN (SELECT utid, pid FROM thread) h ON x.utid = h.utid)"
    )
}

/// The id of a process as printed.
fn id(pid: &Value) -> String {
    match pid {
        Value::Null => "?".into(),
        pid => text(pid),
    }
}

/// Rows of a `pidstat` report by number of the report and process, averages as the last one.
fn pidstat(args: &[&str]) -> BTreeMap<(i64, String), Vec<String>> {
    let printed = incident().stdout(&[&["as", "pidstat", "web.wsl"], args].concat());
    let mut report = -1;
    let mut rows = BTreeMap::new();
    for line in printed.lines().skip(1) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            report += 1;
        } else if words[1] != "UID" {
            rows.insert((report, words[2].clone()), words[3..].to_vec());
        }
    }
    rows
}

/// Compares each printed row, and checks that all rows with something to show are printed.
fn check(
    args: &[&str],
    want: &[Value],
    keys: &[(usize, &str)],
    is_active: impl Fn(&Value) -> bool,
) {
    let got = pidstat(args);
    assert!(!got.is_empty(), "{args:?}");
    let by_key: BTreeMap<(i64, String), &Value> = want
        .iter()
        .map(|row| ((row["p"].as_i64().expect("a part"), id(&row["pid"])), row))
        .collect();
    for (key, row) in &by_key {
        let is_printed = got.contains_key(key);
        assert_eq!(is_printed, is_active(row), "{args:?} {key:?} {row}");
    }
    for (key, cells) in &got {
        let row = by_key
            .get(key)
            .unwrap_or_else(|| panic!("{args:?} {key:?}"));
        for (place, name) in keys {
            let what = format!("{args:?} {key:?} {name}");
            assert_close(&cells[*place], float(&row[*name]), &what);
        }
    }
}

/// Sums of clipped intervals by part and process; the average over all follows as another part.
fn clipped(width: i64, table: &str, filter: &str, values: &str) -> Option<Vec<Value>> {
    let (begin, end) = span();
    let count = (end - begin + width - 1) / width;
    sql(&format!(
        "{}, every AS (SELECT p, p0, p1, s FROM part
                       UNION ALL SELECT {count}, {begin}, {end}, ({end} - {begin}) / 1e9),
         clip AS (SELECT p, s, pid, LEAST(COALESCE(ts_end, {end}), p1) - GREATEST(ts, p0) AS inside,
                         COALESCE(ts_end, {end}) - ts AS whole, t.* EXCLUDE (pid)
                  FROM every JOIN {} t ON ts < p1 AND COALESCE(ts_end, {end}) > p0
                  WHERE {filter})
         SELECT p, pid, {values} FROM clip GROUP BY p, pid, s",
        parts((begin, end), width),
        owned(table)
    ))
}

#[test]
fn pidstat_cpu_times_are_those_of_the_slices() {
    let width = 4 * SECOND;
    // System time inside a clipped slice is assumed to be uniform, so only unclipped ones are
    // compared.
    let values = "SUM(inside) / 1e7 / s AS cpu";
    let Some(want) = clipped(width, "sched_slice", "TRUE", values) else {
        return;
    };
    check(&["-u", "4"], &want, &[(4, "cpu")], |row| {
        float(&row["cpu"]) > 0.0
    });
    let (begin, end) = span();
    let whole = sql(&format!(
        "SELECT 0 AS p, pid, ({end} - {begin}) / 1e9 AS s,
                SUM(COALESCE(ts_end, {end}) - ts) / 1e7 / s AS cpu,
                (SUM(COALESCE(ts_end, {end}) - ts) - SUM(system_ns + hardirq_ns + softirq_ns))
                    / 1e7 / s AS usr,
                SUM(system_ns + hardirq_ns + softirq_ns) / 1e7 / s AS system,
                ARG_MAX(cpu, ts) AS last_cpu
         FROM {} GROUP BY pid",
        owned("sched_slice")
    ));
    let keys = [(0, "usr"), (1, "system"), (4, "cpu"), (5, "last_cpu")];
    check(&[], &whole.expect("it just ran"), &keys, |row| {
        float(&row["cpu"]) > 0.0
    });
}

#[test]
fn pidstat_waits_are_those_of_runnable_threads() {
    let values = "SUM(inside) / 1e7 / s AS wait";
    let Some(want) = clipped(4 * SECOND, "thread_state", "state = 'runnable'", values) else {
        return;
    };
    let got = pidstat(&["-u", "4"]);
    let mut found = 0;
    for row in &want {
        let key = (row["p"].as_i64().expect("a part"), id(&row["pid"]));
        // A process that waited but never ran in the interval is not listed.
        if let Some(cells) = got.get(&key) {
            assert_close(&cells[3], float(&row["wait"]), &format!("{key:?}"));
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

/// Bytes and uninterruptible sleep by part and process, with the average as another part.
fn disk(width: i64) -> Option<Vec<Value>> {
    let (begin, end) = span();
    let count = (end - begin + width - 1) / width;
    let [block_io, syscall, thread_state] = ["block_io", "syscall", "thread_state"].map(owned);
    sql(&format!(
        "{}, every AS (SELECT p, p0, p1, p1x, s FROM part
                       UNION ALL SELECT {count}, {begin}, {end}, {end} + 1, ({end} - {begin}) / 1e9),
         amounts AS (
           SELECT p, pid, bytes AS rd, 0 AS wr, 0 AS blocked FROM every
             JOIN {block_io} ON ts >= p0 AND ts < p1x WHERE op = 'read' AND layer = 'request'
           UNION ALL
           SELECT p, pid, 0, COALESCE(bytes, 0), 0 FROM every JOIN {syscall} ON ts_end >= p0 AND ts_end < p1x
             WHERE (op = 'write' AND fd_class = 'file' AND NOT regexp_matches(COALESCE(path, ''), '^/(proc|sys|dev)/'))
                OR (op = 'read_write' AND path2[1] = '/' AND NOT regexp_matches(path2, '^/(proc|sys|dev)/'))
           UNION ALL
           SELECT p, pid, 0, 0, LEAST(COALESCE(ts_end, {end}), p1) - GREATEST(ts, p0) FROM every
             JOIN {thread_state} ON ts < p1 AND COALESCE(ts_end, {end}) > p0
             WHERE state = 'uninterruptible')
         SELECT p, pid, SUM(rd) / 1024 / ANY_VALUE(s) AS rd, SUM(wr) / 1024 / ANY_VALUE(s) AS wr,
                -1 AS cc, (SUM(blocked) // 10000000) AS iodelay
         FROM amounts JOIN (SELECT p, s FROM every) USING (p) GROUP BY p, pid",
        parts((begin, end), width)
    ))
}

#[test]
fn pidstat_bytes_are_those_of_requests_and_calls() {
    let Some(want) = disk(4 * SECOND) else {
        return;
    };
    let keys = [(0, "rd"), (1, "wr"), (2, "cc"), (3, "iodelay")];
    let active = |row: &Value| {
        ["rd", "wr", "iodelay"]
            .iter()
            .any(|key| float(&row[*key]) > 0.0)
    };
    check(&["-d", "4"], &want, &keys, active);
}

#[test]
fn pidstat_switches_are_ends_of_slices() {
    let (begin, end) = span();
    let width = 4 * SECOND;
    let count = (end - begin + width - 1) / width;
    let Some(want) = sql(&format!(
        "{}, every AS (SELECT p, p0, p1x, s FROM part
                       UNION ALL SELECT {count}, {begin}, {end} + 1, ({end} - {begin}) / 1e9)
         SELECT p, pid, COUNT(*) FILTER (end_state NOT IN ('R', 'R+')) / ANY_VALUE(s) AS vol,
                COUNT(*) FILTER (end_state IN ('R', 'R+')) / ANY_VALUE(s) AS forced
         FROM every JOIN {} ON ts_end >= p0 AND ts_end < p1x GROUP BY p, pid",
        parts((begin, end), width),
        owned("sched_slice")
    )) else {
        return;
    };
    let keys = [(0, "vol"), (1, "forced")];
    let active = |row: &Value| float(&row["vol"]) + float(&row["forced"]) > 0.0;
    check(&["-w", "4"], &want, &keys, active);
}

#[test]
fn threads_of_a_process_add_up_to_it() {
    let printed = incident().stdout(&["as", "pidstat", "web.wsl", "-wt"]);
    let mut process: Option<(f64, f64)> = None;
    let (mut sum, mut checked) = (0.0, 0);
    let mut compare = |process: Option<(f64, f64)>, sum: f64| {
        if let Some((total, _)) = process {
            assert!((total - sum).abs() < 0.2, "{total} {sum}");
            checked += 1;
        }
    };
    for line in printed.lines().skip(3) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let switches: f64 = words[4].parse().expect("a number");
        if words[2] == "-" {
            sum += switches;
        } else {
            compare(process, sum);
            (process, sum) = (Some((switches, 0.0)), 0.0);
        }
    }
    compare(process, sum);
    assert!(checked > 20, "{checked}");
}

#[test]
fn pidstat_shows_the_processes_asked_for() {
    let of = |args: &[&str]| {
        let rows = pidstat(args);
        rows.into_keys().map(|(_, pid)| pid).collect::<Vec<_>>()
    };
    let all = of(&["-u"]);
    assert!(all.len() > 20);
    assert_eq!(of(&["-u", "-p", &all[3]]), [all[3].clone()]);
    let named = incident().stdout(&["as", "pidstat", "web.wsl", "-u", "-C", "jbd2"]);
    assert!(
        named.lines().skip(3).all(|line| line.contains("jbd2")),
        "{named}"
    );
    assert!(named.lines().count() > 3);
}

#[test]
fn iotop_totals_are_those_of_the_tables() {
    let (begin, end) = span();
    let width = 5 * SECOND;
    let Some(want) = sql(&format!(
        "{} SELECT p, ANY_VALUE(s) AS s, SUM(bytes) FILTER (op = 'read') / ANY_VALUE(s) AS rd,
                SUM(bytes) FILTER (op = 'write') / ANY_VALUE(s) AS wr
         FROM part JOIN block_io ON ts_end >= p0 AND ts_end < p1x WHERE layer = 'request'
         GROUP BY p ORDER BY p",
        parts((begin, end), width)
    )) else {
        return;
    };
    let printed = incident().stdout(&["as", "iotop", "web.wsl", "-bok", "-d", "5"]);
    let current: Vec<Vec<&str>> = printed
        .lines()
        .filter(|line| line.starts_with("Current"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    // The first part has no request.
    let want: BTreeMap<i64, &Value> = want
        .iter()
        .map(|row| (row["p"].as_i64().expect("a part"), row))
        .collect();
    assert_eq!(current.len(), 3);
    for (part, words) in current.iter().enumerate() {
        let of = |key: &str| {
            want.get(&(part as i64))
                .map_or(0.0, |row| float(&row[key]) / 1024.0)
        };
        assert_close(words[3], of("rd"), "read");
        assert_close(words[9], of("wr"), "written");
    }
    // Bytes of threads, whole recording.
    let Some(disk) = disk(end - begin) else {
        return;
    };
    let printed = incident().stdout(&["as", "iotop", "web.wsl", "-Pok"]);
    let rows = printed
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: BTreeMap<String, Vec<&str>> =
        rows.map(|words| (words[0].to_owned(), words)).collect();
    let mut compared = 0;
    for want in disk.iter().filter(|row| float(&row["p"]) == 0.0) {
        let (rd, wr) = (float(&want["rd"]), float(&want["wr"]));
        if rd + wr > 0.0 {
            let words = rows.get(&id(&want["pid"])).expect("a row");
            assert_close(words[3], rd, "read");
            assert_close(words[5], wr, "written");
            compared += 1;
        }
    }
    assert!(compared > 10);
}

#[test]
fn accumulated_io_grows_to_that_of_the_whole_window() {
    let rows = |args: &[&str]| {
        let printed = incident().stdout(&[&["as", "iotop", "web.wsl", "-oak"], args].concat());
        let last = printed.rfind("  TID  PRIO").expect("a header");
        // All except the share of time, which refers to the time so far.
        let cells = |line: &str| line.split_whitespace().take(7).map(str::to_owned).collect();
        printed[last..]
            .lines()
            .skip(1)
            .map(cells)
            .collect::<Vec<Vec<String>>>()
    };
    let (whole, last) = (rows(&[]), rows(&["-d", "5"]));
    assert!(whole.len() > 10);
    assert_eq!(last, whole);
}

#[test]
fn top_has_the_cpu_time_of_the_slices_and_the_states_at_the_end() {
    let (begin, end) = span();
    let Some(want) = sql(&format!(
        "SELECT pid, SUM(COALESCE(ts_end, {end}) - ts) AS ns FROM {} GROUP BY pid",
        owned("sched_slice")
    )) else {
        return;
    };
    let printed = incident().stdout(&["as", "top", "web.wsl", "-b"]);
    let rows = printed
        .lines()
        .skip_while(|line| !line.contains("TIME+"))
        .skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    for want in &want {
        let ns = float(&want["ns"]);
        let row = rows.iter().find(|words| words[0] == id(&want["pid"]));
        let row = row.unwrap_or_else(|| panic!("{want}"));
        assert_close(row[8], 100.0 * ns / (end - begin) as f64, "%CPU");
        let hundredths = (ns / 1e7).floor() as i64;
        let (minutes, rest) = (hundredths / 6000, hundredths % 6000);
        assert_eq!(
            row[10],
            format!("{minutes}:{:02}.{:02}", rest / 100, rest % 100)
        );
        assert_eq!([row[1], row[4], row[5], row[6], row[9]], ["-"; 5]);
    }
    let states = sql(&format!(
        "SELECT pid, state, prio FROM thread_state
         WHERE pid = tid AND ts < {end} AND COALESCE(ts_end, {end}) >= {end}"
    ));
    let mut compared = 0;
    for state in states.expect("it just ran") {
        let Some(row) = rows.iter().find(|words| words[0] == id(&state["pid"])) else {
            continue;
        };
        let want = match state["state"].as_str() {
            Some("running" | "runnable") => "R",
            Some("sleeping") => "S",
            Some("uninterruptible") => "D",
            Some("idle") => "I",
            _ => continue,
        };
        assert_eq!(row[7], want, "{row:?}");
        compared += 1;
    }
    if compared == 0 {
        skip(
            Need::Machine,
            "no state reaches to the end of the recording",
        );
    }
    let lives = sql(
        "SELECT COUNT(*) AS n FROM (SELECT pid, BOOL_OR(ts_exit IS NULL) AS alive FROM thread
         WHERE pid IS NOT NULL GROUP BY pid) WHERE alive",
    );
    let total = text(&lives.expect("it just ran")[0]["n"]);
    let tasks = printed.lines().nth(1).expect("a second line");
    assert_eq!(
        tasks.split_whitespace().nth(1),
        Some(total.as_str()),
        "{tasks}"
    );
}
