//! `@live` next to a running recorder: the followed data equals that of a separate recorder, and
//! the recorder's own recording is complete.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::live_outliers::{Running, command};
use super::{borders, can_record, no_floods, rows};
use crate::common::Place;

/// Records everything until it is ended.
struct Recorder {
    running: Running,
}

impl Recorder {
    fn start(place: &Place, options: &[&str]) -> Self {
        let words = [&["record", "-o", "rec.wsl"], options].concat();
        Self {
            running: Running::start(place, &words, "recording started; press Ctrl-C"),
        }
    }

    fn end(self) {
        self.running.stop();
        assert_eq!(self.running.wait(), Some(0));
    }
}

/// Standard output and error of a query.
fn query(place: &Place, words: &[&str]) -> (String, String, Option<i32>) {
    let output = place.whyslow().args(words).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn two_follow_a_recorder_and_all_three_tell_every_call() {
    if !can_record() {
        return;
    }
    let _calm = no_floods();
    let place = Place::new();
    let recorder = Recorder::start(&place, &[]);
    let reads = borders::calls_count_once(&place);
    recorder.end();
    let pid = std::process::id().to_string();
    let query = [
        "syscalls", "stats", "rec.wsl", "--name", "pread64", "-p", &pid,
    ];
    let text = rows(&place, &query);
    let counted: i64 = text.iter().filter_map(|row| row["count"].as_i64()).sum();
    // Other tests of this process may read in this way, too.
    assert!(counted >= reads, "{counted} {reads}");
}

#[test]
fn a_recorder_that_has_what_is_needed_is_followed_and_no_other() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let recorder = Recorder::start(&place, &["--what", "syscalls"]);
    let (_, said, code) = query(&place, &["syscalls", "stats", "@live", "200ms", "2"]);
    assert!(said.contains("following the recorder of process"), "{said}");
    assert_eq!(code, Some(0));
    let pid = said_pid(&said);
    // Block I/O is not recorded.
    for words in [
        ["block", "usage", "@live"],
        ["syscalls", "stats", "@live:new"],
    ] {
        let (_, said, code) = query(&place, &[&words[..], &["200ms", "1"]].concat());
        assert!(!said.contains("following"), "{said}");
        assert_eq!(code, Some(0));
    }
    let (text, said, code) = query(
        &place,
        &["block", "usage", &format!("@live:{pid}"), "200ms", "1"],
    );
    assert!(said.contains("does not record: block"), "{said}");
    assert_eq!(code, Some(0), "{text}");
    recorder.end();
    let (_, said, code) = query(&place, &["io", "top", &format!("@live:{pid}"), "1", "1"]);
    assert!(
        said.contains("no recorder of this user has this process id"),
        "{said}"
    );
    assert_eq!(code, Some(1));
    let (_, said, code) = query(&place, &["io", "top", "@live:x", "1", "1"]);
    assert!(said.contains("requires a PID or `new`"), "{said}");
    assert_eq!(code, Some(2));
}

/// Process id in "following the recorder of process 77; …".
fn said_pid(said: &str) -> i32 {
    let pid = said
        .split("process ")
        .nth(1)
        .and_then(|rest| rest.split(';').next());
    pid.and_then(|pid| pid.parse().ok()).expect("it is said")
}

#[test]
fn the_end_of_the_recorder_is_told_with_what_there_was() {
    if !can_record() {
        return;
    }
    for signal in [Signal::INT, Signal::KILL] {
        let place = Place::new();
        let mut recorder = command(&place)
            .args(["record", "-q", "-o", "rec.wsl", "--no-import"])
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let socket = place.join("run").join(recorder.id().to_string());
        let begun = Instant::now();
        while !socket.exists() {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "it does not begin"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut follower = command(&place)
            .args(["syscalls", "stats", "@live", "3600", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Until the snapshot has started.
        let is_there = || {
            let entries = fs::read_dir(place.path()).expect("it is there").flatten();
            let mut spools = entries.map(|entry| entry.path().join("0.spool/000001.blocks"));
            spools.any(|spool| spool.metadata().is_ok_and(|spool| spool.len() > 4_000))
        };
        while !is_there() {
            assert!(begun.elapsed() < Duration::from_mins(1), "nothing comes");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(1500));
        let pid = Pid::from_raw(recorder.id() as i32).expect("it runs");
        kill_process(pid, signal).expect("it is ours");
        recorder.wait().expect("it is ours");
        let (mut text, mut said) = (String::new(), String::new());
        let (stdout, stderr) = (follower.stdout.take(), follower.stderr.take());
        stdout
            .expect("piped")
            .read_to_string(&mut text)
            .expect("UTF-8");
        stderr
            .expect("piped")
            .read_to_string(&mut said)
            .expect("UTF-8");
        let status = follower.wait().expect("it is ours");
        assert!(said.contains("the recorder stopped"), "{signal:?} {said}");
        assert_eq!(status.code(), Some(1), "{said}");
        // What had been handed over is answered.
        assert!(
            text.contains("\"name\":\"read\""),
            "{signal:?} {said} {text}"
        );
    }
}

#[test]
fn a_flight_recorder_is_followed_and_saves_whole_windows() {
    if !can_record() {
        return;
    }
    let _calm = no_floods();
    let place = Place::new();
    let words = [
        "record",
        "-o",
        "box.wsl",
        "--ring",
        "20s",
        "--ring-memory",
        "64MiB",
    ];
    let recorder = Running::start(&place, &words, "keeping the last");
    let reads = borders::calls_count_once(&place);
    let (_, said, code) = query(&place, &["sched", "stats", "@live", "300ms", "2"]);
    assert!(said.contains("following the flight recorder"), "{said}");
    assert_eq!(code, Some(0));
    recorder.signal(Signal::USR1);
    let begun = Instant::now();
    let saved = loop {
        let names = fs::read_dir(place.path()).expect("it is there").flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        if let Some(name) = names.find(|name| name.starts_with("box-") && name.ends_with(".wsl")) {
            break name;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing is saved");
        std::thread::sleep(Duration::from_millis(50));
    };
    recorder.stop();
    assert_eq!(recorder.wait(), Some(0));
    let pid = std::process::id().to_string();
    let query = ["syscalls", "stats", &saved, "--name", "pread64", "-p", &pid];
    let text = rows(&place, &query);
    let counted: i64 = text.iter().filter_map(|row| row["count"].as_i64()).sum();
    assert!(counted >= reads, "{counted} {reads}");
}
