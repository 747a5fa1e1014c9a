//! `@live`: answers interval by interval, against strace, iostat and the kernel's counters.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::blocks::Loop;
use super::can_record;
use super::live_outliers::{Running, lines};
use crate::common::Place;

/// Temporary directories of live queries, below the place.
fn rooms(place: &Place) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place.path()).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let is_room = |path: &std::path::PathBuf| path.to_string_lossy().contains("whyslow-live-");
    paths.filter(is_room).collect()
}

/// A command that runs until this is dropped.
struct Going(Child);

impl Going {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_interval_is_answered_and_leaves_nothing() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let script = "i=0; while :; do : > live-7817-$i; rm live-7817-$i; i=$((i+1)); sleep 0.02; done";
    let load = Going::start(
        Command::new("/bin/sh")
            .args(["-c", script])
            .current_dir(place.path()),
    );
    let folder = place.path().canonicalize().expect("it is there");
    let files = format!("{}/live-7817-*", folder.display());
    // Of one process: the others may make more calls than can be processed.
    let pid = load.0.id().to_string();
    let query = [
        "io", "top", "@live", "1", "2", "--json", "--file", &files, "-n", "0", "-p", &pid,
    ];
    let output = place
        .whyslow()
        .env("TMPDIR", place.path())
        .args(query)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = lines(&text);
    let of = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    let windows: Vec<(i64, i64)> = of("answer")
        .map(|answer| {
            let number = |name: &str| answer["window"][name].as_i64().expect("a number");
            (number("begin_ns"), number("end_ns"))
        })
        .collect();
    let [first, second] = windows[..] else {
        panic!("{text}");
    };
    assert!(first.0 < second.0 && first.1 < second.1);
    // The shell duplicates what it opens to another descriptor, an operation of the same class.
    let opens = of("row").filter(|row| row["table"] == "top_open" && row["name"] == "openat");
    let opens: Vec<(i64, &str)> = opens
        .map(|row| {
            let path = row["path"].as_str().expect("a path");
            (row["ts_ns"].as_i64().expect("a number"), path)
        })
        .collect();
    for (begin, end) in [first, second] {
        let of_window = opens.iter().filter(|(ts, _)| (begin..=end).contains(ts));
        assert!(of_window.count() > 0, "{text}");
    }
    // Each file is opened once.
    let mut paths: Vec<&str> = opens.iter().map(|(_, path)| *path).collect();
    paths.sort_unstable();
    let count = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), count, "{text}");
    assert!(rooms(&place).is_empty());
}

#[test]
fn ctrl_c_ends_it_with_the_last_interval_and_nothing_left() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let load = Going::start(Command::new("/bin/sh").args(["-c", "while :; do sleep 0.05; done"]));
    let pid = load.0.id().to_string();
    let query = ["syscalls", "stats", "@live", "3600", "--csv", "-p", &pid];
    let running = Running::start(&place, &query, "Ctrl-C to stop");
    let [room] = &rooms(&place)[..] else {
        panic!("{:?}", rooms(&place));
    };
    let mode = std::fs::metadata(room).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    std::thread::sleep(Duration::from_secs(1));
    let (text, code) = running.interrupt();
    assert_eq!(code, Some(0));
    let titles = text.lines().filter(|line| line.contains("count"));
    assert_eq!(titles.count(), 1, "{text}");
    assert!(text.lines().count() > 1, "{text}");
    assert!(rooms(&place).is_empty());
}

#[test]
fn a_reader_that_leaves_ends_it_and_what_a_killed_one_left_is_taken_away() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let query = ["block", "usage", "@live", "3600"];
    let running = Running::start(&place, &query, "Ctrl-C to stop");
    drop(running);
    assert_eq!(rooms(&place).len(), 1);
    let query = ["block", "log", "@live", "200ms", "--json"];
    let mut running = Running::start(&place, &query, "Ctrl-C to stop");
    let stdout = running.take_stdout();
    let mut first = String::new();
    let read = BufReader::new(stdout).read_line(&mut first);
    assert!(read.is_ok_and(|bytes| bytes > 0) && first.starts_with('{'));
    assert_eq!(running.wait(), Some(0));
    assert!(rooms(&place).is_empty());
}

/// How often each path below the directory was opened, and failed to open.
type Opens = BTreeMap<(String, bool), usize>;

#[test]
fn opensnoop_shows_what_strace_sees() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let folder = place.path().canonicalize().expect("it is there");
    let folder = folder.to_str().expect("UTF-8");
    // One process, which waits until it is recorded.
    let script = format!(
        "echo $$ > pid.new; mv pid.new pid; while [ ! -e go ]; do sleep 0.1; done; \
         i=0; while [ $i -lt 149 ]; do \
           : > {folder}/opened-$i; read text < {folder}/opened-$((i/2)); \
           command : < {folder}/missing-$i; i=$((i+1)); \
         done"
    );
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "strace.txt"])
        .args(["-e", "trace=open,openat,creat"])
        .args(["/bin/sh", "-c", &script])
        .current_dir(place.path())
        .stderr(Stdio::null())
        .spawn();
    let Ok(traced) = traced else {
        return skip(Need::Tools, "strace is not installed");
    };
    let mut traced = Going(traced);
    let pid = loop {
        if let Ok(pid) = std::fs::read_to_string(place.join("pid")) {
            break pid.trim().to_owned();
        }
        if !matches!(traced.0.try_wait(), Ok(None)) {
            return skip(Need::Tools, "strace may not trace");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let query = ["as", "opensnoop", "@live", "-p", &pid];
    let running = Running::start(&place, &query, "Ctrl-C to stop");
    place.write("go", "");
    traced.0.wait().expect("it is ours");
    let (text, code) = running.interrupt();
    let theirs = std::fs::read_to_string(place.join("strace.txt")).expect("it wrote it");
    assert_eq!(code, Some(0));
    let titles = text.lines().filter(|line| line.contains("PATH"));
    assert_eq!(titles.count(), 1, "{text}");
    let mut ours = Opens::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., fd, _, path] = words[..]
            && path.starts_with(folder)
            && !path.ends_with("strace.txt")
        {
            *ours.entry((path.to_owned(), fd == "-1")).or_default() += 1;
        }
    }
    let mut expected = Opens::new();
    for line in theirs.lines() {
        let path = line
            .split('"')
            .nth(1)
            .filter(|path| path.starts_with(folder));
        if let Some(path) = path {
            let failed = line.contains(" = -1 ");
            *expected.entry((path.to_owned(), failed)).or_default() += 1;
        }
    }
    assert_eq!(expected.values().sum::<usize>(), 149 * 3);
    assert_eq!(ours, expected);
}

/// Sums of columns of an iostat report, and the values of others if not zero.
struct Report {
    read: f64,
    written: f64,
}

/// For `-d -k`: kB read and written in all intervals.
fn report(text: &str, device: &str) -> Report {
    let mut sums = Report {
        read: 0.0,
        written: 0.0,
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&device) {
            let number = |at: usize| words[at].parse::<f64>().expect("a number");
            sums.read += number(5);
            sums.written += number(6);
        }
    }
    sums
}

/// For `-d -x -k`: request sizes by column, in intervals with requests.
fn sizes(text: &str, device: &str, title: &str) -> Vec<String> {
    let mut place = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"Device") {
            place = words.iter().position(|word| *word == title);
        } else if words.first() == Some(&device) {
            let size = words[place.expect("titles come first")];
            found.extend((size != "0.00").then(|| size.to_owned()));
        }
    }
    found.dedup();
    found
}

/// The real iostat, until it is stopped.
struct Iostat(Child);

impl Iostat {
    fn start(options: &[&str], device: &str) -> Option<Self> {
        let mut child = Command::new("iostat")
            .args(options)
            .args([device, "1"])
            .env("LC_ALL", "C")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // Without -y the first report covers the time since boot; it has been read here.
        let stdout = child.stdout.take()?;
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        while !line.starts_with(device) {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        child.stdout = Some(reader.into_inner());
        Some(Self(child))
    }

    /// Its output until it has shown this many idle intervals.
    fn rest(mut self, device: &str, idle: usize) -> String {
        let stdout = self.0.stdout.take().expect("it is piped");
        let mut text = String::new();
        let mut idle_left = idle;
        let mut is_busy_seen = false;
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("UTF-8");
            if line.starts_with(device) {
                let mut numbers = line.split_whitespace().skip(1);
                let is_idle = numbers.all(|number| number.parse() == Ok(0.0));
                is_busy_seen |= !is_idle;
                if is_idle && is_busy_seen {
                    idle_left -= 1;
                }
            }
            text.push_str(&line);
            text.push('\n');
            if idle_left == 0 {
                break;
            }
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
        text
    }
}

impl Drop for Iostat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads and writes of 8 and 4 KiB for some seconds, and the kernel's counters of them.
fn load(disk: &Loop) -> (i64, i64, i64, i64) {
    let before = disk.counters();
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11; do \
           dd if=/dev/zero of=/dev/{0} bs=8192 count=37 oflag=direct && \
           dd if=/dev/{0} of=/dev/null bs=4096 count=53 iflag=direct && sleep 0.3; \
         done",
        disk.name
    );
    let done = Command::new("/bin/sh").args(["-c", &script]).output();
    assert!(done.expect("there is a shell").status.success());
    let after = disk.counters();
    let new = |at: usize| after[at] - before[at];
    (new(0), new(2) / 2, new(4), new(6) / 2)
}

#[test]
fn iostat_counts_the_bytes_that_iostat_counts() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(disk) = Loop::new(&place) else {
        return skip(Need::Isolation, "there is no loop device to be had");
    };
    let query = ["as", "iostat", "-dk", "@live", &disk.name, "1"];
    let ours = Running::start(&place, &query, "Ctrl-C to stop");
    let query = ["as", "iostat", "-dxk", "@live", &disk.name, "1"];
    let ours_extended = Running::start(&place, &query, "Ctrl-C to stop");
    let query = [
        "block", "usage", "@live", "--dev", &disk.name, "--json", "1",
    ];
    let answers = Running::start(&place, &query, "Ctrl-C to stop");
    let theirs = Iostat::start(&["-dk"], &disk.name);
    let theirs_extended = Iostat::start(&["-dxk"], &disk.name);
    let (reads, read_kb, writes, written_kb) = load(&disk);
    assert_eq!(
        (writes, written_kb),
        (11 * 37, 11 * 37 * 8),
        "no other process writes there"
    );
    let theirs = theirs.map(|iostat| iostat.rest(&disk.name, 1));
    let theirs_extended = theirs_extended.map(|iostat| iostat.rest(&disk.name, 1));
    let (ours, code) = ours.interrupt();
    assert_eq!(code, Some(0));
    let (ours_extended, _) = ours_extended.interrupt();
    let (answers, _) = answers.interrupt();
    // Nothing is lost or counted twice at interval borders.
    let rows = lines(&answers);
    let rows = rows.iter().filter(|line| line["type"] == "row");
    let requests = rows.map(|row: &Value| row["requests"].as_i64().expect("a number"));
    assert_eq!(requests.sum::<i64>(), reads + writes, "{answers}");
    let sums = report(&ours, &disk.name);
    let exact = (read_kb as f64, written_kb as f64);
    assert_eq!((sums.read, sums.written), exact, "{ours}");
    let of_ours = |title: &str| sizes(&ours_extended, &disk.name, title);
    assert_eq!(of_ours("wareq-sz"), ["8.00"], "{ours_extended}");
    let (Some(theirs), Some(theirs_extended)) = (theirs, theirs_extended) else {
        return skip(Need::Tools, "iostat is not installed");
    };
    let sums = report(&theirs, &disk.name);
    assert_eq!((sums.read, sums.written), exact, "{theirs}");
    let of_theirs = |title: &str| sizes(&theirs_extended, &disk.name, title);
    assert_eq!(of_theirs("wareq-sz"), ["8.00"], "{theirs_extended}");
    assert_eq!(of_theirs("rareq-sz"), of_ours("rareq-sz"));
}

#[test]
fn sql_asks_this_machine_and_leaves_nothing() {
    if !can_record() {
        return;
    }
    let has_duckdb = Command::new("duckdb").arg("-version").output();
    if !has_duckdb.is_ok_and(|output| output.status.success()) {
        return skip(Need::DuckDb, "duckdb is not installed");
    }
    let place = Place::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyslow"));
    command
        .args(["sql", "@live", "SELECT count(*) AS calls FROM io", "--json"])
        .env("HOME", place.path())
        .env("WHYSLOW_RUN_DIR", place.join("run"))
        .env("TMPDIR", place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    // It would record for ten seconds; Ctrl-C ends it early.
    let begun = Instant::now();
    while rooms(&place).is_empty() && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    let pid = Pid::from_raw(child.id() as i32).expect("it runs");
    kill_process(pid, Signal::INT).expect("it is ours");
    let output = child.wait_with_output().expect("it is ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(rows[0]["calls"].is_number(), "{rows}");
    assert!(rooms(&place).is_empty());
}

#[test]
fn what_cannot_be_live_is_refused_before_anything_is_recorded() {
    let place = Place::new();
    let check = |words: &[&str], message: &str| {
        let output = place.whyslow().args(words).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    };
    check(
        &["io", "top", "@live", "-w", "+1s..+2s"],
        "cannot use a window with @live",
    );
    check(
        &["io", "top", "@live", "--overlaps", "op:1"],
        "cannot use a window with @live",
    );
    check(
        &["files", "open", "@live", "--at", "+1s"],
        "cannot use a window with @live",
    );
    check(&["io", "top", "@live", "10ms"], "shorter than 100 ms");
    check(&["io", "top", "@live", "1", "-o", "x"], "standard output");
    check(
        &["io", "top", "@live", "1", "--format", "html"],
        "one answer",
    );
    check(
        &["io", "top", "@live", "--min", "2s", "--max", "1s"],
        "longer than --max",
    );
    check(
        &["as", "iostat", "@live", "--begin", "+1s"],
        "@live has no window",
    );
    check(
        &["as", "lttng-cputop", "@live", "--begin", "12:00:00"],
        "@live has no window",
    );
    check(&["import", "@live"], "is not a trace");
}
