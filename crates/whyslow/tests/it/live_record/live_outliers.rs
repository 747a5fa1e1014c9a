//! `block outliers @live`, against the kernel's own counters.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::blocks::Loop;
use super::can_record;
use crate::common::Place;

/// The running program, once it has reported that it is ready.
pub(crate) struct Running {
    child: Child,
}

/// The program, with its state in this place.
pub(crate) fn command(place: &Place) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyslow"));
    command
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("TMPDIR", place.path())
        .env("WHYSLOW_RUN_DIR", place.join("run"));
    command
}

impl Running {
    /// Runs until it prints `ready` on standard error.
    pub(crate) fn start(place: &Place, words: &[&str], ready: &str) -> Self {
        let mut child = command(place)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(said).lines();
        let mut heard = String::new();
        let is_ready = lines.any(|line| {
            let line = line.expect("UTF-8");
            heard.push_str(&line);
            line.contains(ready)
        });
        assert!(is_ready, "{heard}");
        // Drains the pipe, which must not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output from here on.
    pub(crate) fn take_stdout(&mut self) -> std::process::ChildStdout {
        self.child.stdout.take().expect("it is piped")
    }

    /// Ctrl-C; the remaining output can be read from the handle.
    pub(crate) fn stop(&self) {
        self.signal(Signal::INT);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("it runs");
        kill_process(pid, signal).expect("it is ours");
    }

    /// Waits until it exits by itself; returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().expect("it is ours").code()
    }

    /// Ctrl-C; returns its output and the exit code.
    pub(crate) fn interrupt(mut self) -> (String, Option<i32>) {
        self.stop();
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().expect("it is piped");
        stdout.read_to_string(&mut text).expect("UTF-8");
        let status = self.child.wait().expect("it is ours");
        (text, status.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("each line is JSON")
}

fn of_table<'l>(lines: &'l [Value], table: &'l str) -> impl Iterator<Item = &'l Value> {
    lines
        .iter()
        .filter(move |line| line["type"] == "row" && line["table"] == table)
}

#[test]
fn every_request_is_counted_as_the_kernel_counts_it() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(disk) = Loop::new(&place) else {
        return skip(Need::Isolation, "there is no loop device to be had");
    };
    let query = [
        "block", "outliers", "@live", "--dev", &disk.name, "--min", "1ns", "--json", "3600",
    ];
    let running = Running::start(&place, &query, "Ctrl-C to stop");
    let before = disk.counters();
    let script = format!(
        "dd if=/dev/zero of=/dev/{0} bs=8192 count=97 oflag=direct && \
         dd if=/dev/{0} of=/dev/null bs=4096 count=89 iflag=direct",
        disk.name
    );
    let done = Command::new("/bin/sh").args(["-c", &script]).output();
    assert!(done.expect("there is a shell").status.success());
    let after = disk.counters();
    let (text, code) = running.interrupt();
    assert_eq!(code, Some(0));
    let (reads, writes) = (after[0] - before[0], after[4] - before[4]);
    assert_eq!(writes, 97, "no other process writes there");
    let lines = lines(&text);
    let slow: Vec<&Value> = of_table(&lines, "slow").collect();
    let of = |op: &str| slow.iter().filter(|row| row["op"] == op).count() as i64;
    // Programs that inspect new disks may have read before counting started.
    assert_eq!((of("read"), of("write")), (reads, writes));
    let is_dd = |row: &&&Value| row["comm"] == "dd" && row["op"] == "write";
    let mut sectors: Vec<i64> = slow
        .iter()
        .filter(is_dd)
        .map(|row| row["sector"].as_i64().expect("a number"))
        .collect();
    sectors.sort_unstable();
    assert_eq!(
        sectors,
        (0..97).map(|number| number * 16).collect::<Vec<_>>()
    );
    let [device] = of_table(&lines, "devices").collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    let number = |name: &str| device[name].as_i64().expect("a number");
    assert_eq!(device["dev"], disk.name.as_str());
    assert_eq!(number("count"), slow.len() as i64);
    assert_eq!(
        (number("slow"), number("slow_open")),
        (slow.len() as i64, 0)
    );
    // The summary follows from the requests.
    let mut lengths: Vec<i64> = slow
        .iter()
        .map(|row| row["dur_ns"].as_i64().expect("a number"))
        .collect();
    lengths.sort_unstable();
    let ends = (lengths[0], lengths[lengths.len() - 1]);
    assert_eq!((number("dur_ns_min"), number("dur_ns_max")), ends);
    let average = lengths.iter().sum::<i64>() / lengths.len() as i64;
    assert_eq!(number("dur_ns_avg"), average);
    for (name, percent) in [("dur_ns_p50", 50), ("dur_ns_p99", 99)] {
        let exact = lengths[(lengths.len() * percent).div_ceil(100) - 1];
        assert!(
            (number(name) - exact).abs() * 32 <= exact,
            "{name}: {device} {exact}"
        );
    }
    let is_cut = |line: &Value| line["text"] == "this interval was cut short";
    assert!(lines.iter().any(is_cut), "{text}");
}

#[test]
fn intervals_end_by_themselves_and_only_slow_requests_are_told() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let output = place
        .whyslow()
        .args(["block", "outliers", "@live", "--min", "1h", "100ms", "3"])
        .output()
        .expect("it starts");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let heads = text.lines().filter(|line| line.starts_with("@live"));
    assert_eq!(heads.count(), 3, "{text}");
    assert!(!text.contains("before its time"), "{text}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("of 1 h or more"), "{said}");
    assert!(said.contains("100 ms"), "{said}");
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let place = Place::new();
    let check = |words: &[&str], message: &str| {
        let output = place
            .whyslow()
            .args(["block", "outliers", "@live"])
            .args(words)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(message), "{words:?}: {said}");
    };
    check(&["--pid", "1"], "cannot use --pid");
    check(&["-w", "+1s..+2s"], "cannot use a window with @live");
    check(&["--dev", "no-such-disk"], "unknown device `no-such-disk`");
    check(&["--csv"], "use text or JSON");
    check(&["-o", "file"], "to a file");
}
