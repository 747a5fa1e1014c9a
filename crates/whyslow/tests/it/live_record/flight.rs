//! The flight recorder: a fault under load is saved completely, with what preceded it, and memory
//! stays within the limit.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use whyslow_testkit::{Need, skip};

use super::{can_record, memory, rows};
use crate::common::Place;

const DEADLINE: Duration = Duration::from_mins(3);

pub(super) struct Ended(pub(super) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that executes commands of the test; only its calls are recorded.
struct Shell {
    child: Ended,
    words: ChildStdin,
}

impl Shell {
    fn start(place: &Place) -> Self {
        let mut child = Command::new("/bin/sh")
            .current_dir(place.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let words = child.stdin.take().expect("it is piped");
        Self {
            child: Ended(child),
            words,
        }
    }

    /// Returns when the command is done.
    fn run(&mut self, place: &Place, script: &str) {
        let done = place.join("done");
        writeln!(self.words, "{script}; : >done").expect("it listens");
        wait_for("the shell", || done.exists());
        fs::remove_file(done).expect("it is ours");
    }
}

pub(super) struct Recorder {
    child: Ended,
    said: PathBuf,
}

impl Recorder {
    pub(super) fn start(place: &Place, options: &[&str]) -> Self {
        Self::start_with(place, options, &[])
    }

    /// With this environment.
    pub(super) fn start_with(
        place: &Place,
        options: &[&str],
        environment: &[(&str, String)],
    ) -> Self {
        let said = place.join("said.txt");
        let child = Command::new(env!("CARGO_BIN_EXE_whyslow"))
            .args(["record", "-o", "box.wsl"])
            .args(options)
            .current_dir(place.path())
            .env("WHYSLOW_RUN_DIR", place.join("run"))
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(File::create(&said).expect("a disk"))
            .spawn();
        let recorder = Self {
            child: Ended(child.expect("it starts")),
            said,
        };
        wait_for("the recorder", || {
            recorder.said().contains("keeping the last")
        });
        recorder
    }

    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("it starts").success());
    }

    /// Waits until this many were saved; returns their names, oldest first.
    pub(super) fn saved(&self, place: &Place, count: usize) -> Vec<String> {
        wait_for("a recording", || {
            let said = self.said();
            assert!(!said.contains("not saved"), "{said}");
            said.matches("saved ./box-").count() == count
        });
        recordings(place)
    }

    /// Ends it as Ctrl-C does, which saves nothing.
    pub(super) fn end(self) -> String {
        self.end_by("INT")
    }

    pub(super) fn end_by(mut self, signal: &str) -> String {
        self.signal(signal);
        let status = self.child.0.wait().expect("it is ours");
        let said = self.said();
        assert!(status.success(), "{said}");
        said
    }
}

pub(super) fn recordings(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path()).expect("it is there");
    let names = entries.map(|entry| entry.expect("it is there").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".wsl")).collect();
    names.sort();
    names
}

pub(super) fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < DEADLINE, "{what} did not come");
        sleep(Duration::from_millis(20));
    }
}

/// Durations in ms of sleeps that were recorded completely.
fn sleeps(place: &Place, recording: &str) -> Vec<i64> {
    let query = ["syscalls", "log", recording, "--name", "clock_nanosleep"];
    let calls = rows(place, &query);
    let lengths = calls.iter().filter(|call| call["ret"] == 0);
    let mut lengths: Vec<_> = lengths
        .filter_map(|call| Some(call["dur_ns"].as_i64()? / 1_000_000))
        .collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn a_fault_is_saved_once_with_what_came_before_it() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let mut shell = Shell::start(&place);
    let pid = shell.child.0.id().to_string();
    let options = [
        "--ring",
        "8s",
        "--after",
        "1s",
        "--cooldown",
        "1h",
        "-p",
        &pid,
    ];
    let has_pressure = std::path::Path::new("/proc/pressure/io").exists();
    let pressure = if has_pressure { "psi.io>99.99 | " } else { "" };
    let when = ["--when", &format!("{pressure}clock_nanosleep>1200ms")];
    let recorder = Recorder::start(&place, &[&options[..], &when].concat());
    // Ends with its shell.
    let load = "while sleep 0.01 && kill -0 $$; do : >load; cat load; done 2>/dev/null &";
    writeln!(shell.words, "{load}").expect("it listens");
    shell.run(
        &place,
        "i=0; while [ $i -lt 101 ]; do mkdir early-$i; i=$((i+1)); done",
    );
    // Longer than the ring: the load continues, and the oldest data is dropped.
    sleep(Duration::from_secs(25));
    let marked = place
        .whyslow()
        .args(["mark", "before", "7919\x1b[2J"])
        .output();
    assert!(marked.expect("it starts").status.success());
    shell.run(&place, "mkdir before-7919; sleep 1.307; mkdir after-7919");
    let saved = recorder.saved(&place, 1);
    // This one triggers nothing …
    shell.run(&place, "sleep 1.409");
    sleep(Duration::from_secs(2));
    assert_eq!(recordings(&place), saved);
    // … until SIGUSR1 is sent.
    recorder.signal("USR1");
    let both = recorder.saved(&place, 2);
    let said = recorder.end();
    assert!(said.contains("clock_nanosleep by sleep "), "{said}");
    assert!(said.contains("saved 2 times"), "{said}");
    assert!(said.contains("within --cooldown"), "{said}");
    let [first, second] = both.as_slice() else {
        panic!("{both:?}");
    };
    let long = |lengths: Vec<i64>| lengths.into_iter().filter(|ms| *ms >= 1200).collect();
    let lengths: Vec<i64> = long(sleeps(&place, first));
    assert!(lengths.len() == 1 && lengths[0] >= 1307, "{lengths:?}");
    let lengths: Vec<i64> = long(sleeps(&place, second));
    assert!(lengths.iter().any(|ms| *ms >= 1409), "{lengths:?}");
    let made = |recording: &str, name: &str| {
        let query = ["syscalls", "log", recording, "--name", "mkdir,mkdirat"];
        let made = rows(&place, &query);
        let is_named = |call: &&serde_json::Value| call["path"].to_string().contains(name);
        made.iter().filter(is_named).count()
    };
    assert_eq!(made(first, "before-7919"), 1);
    assert_eq!(made(first, "after-7919"), 1);
    assert_eq!(made(first, "early-"), 0);
    let said = place.whyslow().args(["info", first]).output();
    let said = String::from_utf8(said.expect("it starts").stdout).expect("UTF-8");
    // Markers, and the condition that triggered the save.
    assert!(said.contains("before 7919"), "{said}");
    assert!(said.contains("clock_nanosleep>1200ms: "), "{said}");
    assert!(!said.contains('\x1b'), "{said}");
    // The call that met it is explained, although threads are expected to wait in it.
    let explained = place.whyslow().args(["explain", first, "--json"]).output();
    let report = explained.expect("it starts").stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!(finding["is_trigger"], true, "{report:#}");
    assert_eq!(finding["target"]["what"], "clock_nanosleep");
    assert_eq!(finding["target"]["id"], report["trigger"]["id"]);
    let mark = &report["marks"][0];
    assert!(
        mark["text"].to_string().contains("before 7919"),
        "{report:#}"
    );
}

#[test]
fn memory_stays_within_what_was_asked_for() {
    if !can_record() {
        return;
    }
    let _alone = super::floods_alone();
    let place = Place::new();
    let memory = ["--ring-memory", "4MiB", "--buffer", "4MiB"];
    let options = [&["--ring", "10m", "--what", "syscalls"], &memory[..]].concat();
    let recorder = Recorder::start(&place, &options);
    let flood = "dd if=/dev/zero of=/dev/null bs=1 count=3000000 2>/dev/null";
    let mut shell = Shell::start(&place);
    shell.run(&place, flood);
    recorder.signal("USR1");
    recorder.saved(&place, 1);
    let taken = memory::taken(recorder.child.0.id());
    let status = format!("/proc/{}/status", recorder.child.0.id());
    let status = fs::read_to_string(status).expect("it runs");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|text| text.split_whitespace().next());
    let kib: u64 = most.and_then(|kib| kib.parse().ok()).expect("a number");
    let said = recorder.end();
    // Millions of calls take tens of megabytes. The program may use 64 MiB, the buffer four, kept
    // data and data being saved four each.
    assert!(said.contains("limit 76.0 MiB"), "{said}");
    assert!(taken <= 76 << 20, "{taken}; {said}");
    // The buffer counts twice here, because it is mapped twice.
    assert!(kib <= 80 << 10, "{kib} KiB; {said}");
    let kept = said.split_once("kept at most ").map(|(_, rest)| rest);
    let kept = kept.and_then(|rest| rest.split_once(" MiB")?.0.parse::<f64>().ok());
    assert!(kept.is_some_and(|kept| kept <= 4.05), "{said}");
    assert!(said.contains("the memory for kept data was full"), "{said}");
}

#[test]
fn a_flood_keeps_nobody_waiting_and_what_it_cost_is_told() {
    if !can_record() {
        return;
    }
    let _alone = super::floods_alone();
    let place = Place::new();
    let memory = ["--ring-memory", "4MiB", "--buffer", "1MiB"];
    let recorder = Recorder::start(&place, &[&["--ring", "10m"], &memory[..]].concat());
    let mut floods: Vec<_> = (0..2).map(|_| memory::flood()).collect();
    sleep(Duration::from_secs(2));
    recorder.signal("USR1");
    // It was handed over during the flood; it is imported once CPUs are free.
    wait_for("what was kept", || {
        let entries = fs::read_dir(place.path()).expect("it is there").flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with("box-"))
    });
    for flood in &mut floods {
        let status = flood.0.try_wait().expect("it is ours");
        assert!(status.is_none(), "it was over: {status:?}");
    }
    drop(floods);
    let saved = recorder.saved(&place, 1);
    let since = Instant::now();
    let said = recorder.end();
    assert!(since.elapsed() < Duration::from_secs(30), "{said}");
    assert!(said.contains(" records were lost"), "{said}");
    let answer = place.whyslow().args(["info", &saved[0], "--json"]).output();
    let answer = answer.expect("it starts").stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    let losses = answer["losses"].as_array().expect("a list");
    assert!(!losses.is_empty(), "{said}");
}

/// Creates a new function every 20 ms.
const NEW: &str = "
import time
number = 0
while True:
    number += 1
    exec('def new_%d(): time.sleep(0.02)\\nnew_%d()' % (number, number))
";

#[test]
fn functions_that_were_met_last_have_names() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    place.write("program", NEW);
    let mut command = Command::new("python3");
    let Ok(program) = command.arg("program").current_dir(place.path()).spawn() else {
        return skip(Need::Python, "no python3");
    };
    let program = Ended(program);
    let pid = program.0.id().to_string();
    let options = ["--ring", "10m", "--stacks", "wall:10ms", "--what", "sched"];
    let recorder = Recorder::start(&place, &[&options[..], &["-p", &pid]].concat());
    for count in 1..=3 {
        sleep(Duration::from_millis(1200));
        recorder.signal("USR1");
        recorder.saved(&place, count);
    }
    recorder.end();
    for recording in recordings(&place) {
        let stacks = rows(&place, &["stacks", &recording, "--op", "wall"]);
        let functions = stacks.iter().filter_map(|row| row["function"].as_str());
        let (numbers, names): (Vec<&str>, Vec<&str>) =
            functions.partition(|function| function.starts_with("0x10000000"));
        assert_eq!(numbers, [""; 0], "{recording}");
        let new = names.iter().filter(|name| name.contains("new_"));
        assert!(new.count() > 20, "{recording}: {names:?}");
    }
}
