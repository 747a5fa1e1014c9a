//! Reproducible incidents (`workloads/`) with known causes: the analysis of their recordings must
//! name these causes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, rows};
use crate::common::Place;

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/run.py");
/// Stalls last at least a quarter of a second; this is far below.
const STALL: &str = "200ms";

/// Runs and records a workload as `rec.wsl`; returns its own report. `None` if it cannot run.
pub(super) fn incident(place: &Place, name: &str, options: &[&str]) -> Option<Value> {
    // None of its events may be lost.
    let _calm = super::no_floods();
    let output = place
        .whyslow()
        .args(["-q", "record", "--force", "-o", "rec.wsl"])
        .args(["--", "python3", RUN, name])
        .args(options)
        // All its files are below the place.
        .env("TMPDIR", place.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let truth: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    if let Some(why) = truth["skipped"].as_str() {
        skip(Need::Tools, format!("{name}: {why}"));
        return None;
    }
    Some(truth)
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// Start and end of a section timed by the workload.
pub(super) fn timed(call: &Value) -> (i64, i64) {
    let begin = number(&call["begin_ns"]);
    (begin, begin + number(&call["dur_ns"]))
}

/// Start and end of a row.
fn recorded(row: &Value) -> (i64, i64) {
    (number(&row["ts_ns"]), number(&row["ts_end_ns"]))
}

fn overlap(one: (i64, i64), other: (i64, i64)) -> bool {
    one.0.max(other.0) < one.1.min(other.1)
}

#[test]
fn the_open_that_stalls_is_named_and_overlaps_the_sync_of_another() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(truth) = incident(&place, "sync_storm", &[]) else {
        return;
    };
    let (service, guilty) = (&truth["service"], &truth["guilty"]);
    let stalled = &truth["stalled"][0];
    assert!(stalled.is_object(), "no open stalled: {truth}");
    // The open: its file, thread and time.
    let pid = number(&service["pid"]).to_string();
    let opens = rows(
        &place,
        &["io", "top", "rec.wsl", "--op", "open", "-p", &pid],
    );
    let slowest = &opens[0];
    assert_eq!(slowest["path"], service["slowest_open"]["file"]);
    let open = opens
        .iter()
        .find(|row| row["path"] == stalled["file"])
        .unwrap_or_else(|| panic!("{stalled} among {opens:?}"));
    assert_eq!(open["comm"], "sessiond", "{open}");
    assert!(number(&open["dur_ns"]) > 200_000_000, "{open}");
    assert!(overlap(recorded(open), timed(stalled)), "{open} {stalled}");
    // Where in the kernel it waited: for the journal.
    let (begin, end) = recorded(open);
    let window = format!("{begin}..{end}");
    let mut stacks: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for frame in rows(&place, &["stacks", "rec.wsl", "-p", &pid, "-w", &window]) {
        let function = frame["function"].as_str().unwrap_or_default().to_owned();
        stacks
            .entry(number(&frame["rank"]))
            .or_default()
            .push(function);
    }
    let is_of_journal = |stack: &&Vec<String>| {
        let has = |part: &str| stack.iter().any(|function| function.contains(part));
        has("jbd2") && has("openat")
    };
    assert!(
        stacks.values().any(|stack| is_of_journal(&stack)),
        "{stacks:?}"
    );
    // Every open and every byte of the service.
    let folder = Path::new(text(&stalled["file"])).parent();
    let sessions = format!("{}/*", folder.expect("it is in a folder").display());
    let filter = ["io", "stats", "rec.wsl", "--file", &sessions, "--by", "op"];
    let by_op: BTreeMap<String, (i64, i64)> = rows(&place, &filter)
        .iter()
        .map(|row| {
            let of_op = (number(&row["count"]), number(&row["bytes"]));
            (text(&row["op"]).to_owned(), of_op)
        })
        .collect();
    let count = number(&service["opens"]);
    assert_eq!(by_op["open"].0, count, "{by_op:?}");
    assert_eq!(by_op["write"], (count, number(&service["bytes"])));
    // The syncs: all of them, and one while the open waited.
    let pid = number(&guilty["pid"]).to_string();
    let syncs = rows(
        &place,
        &["io", "log", "rec.wsl", "--op", "sync", "-p", &pid],
    );
    let theirs = guilty["syncs"].as_array().expect("syncs");
    assert_eq!(syncs.len(), theirs.len(), "{syncs:?}");
    for (ours, theirs) in syncs.iter().zip(theirs) {
        assert_eq!(ours["comm"], "nightly-backup", "{ours}");
        assert!(overlap(recorded(ours), timed(theirs)), "{ours} {theirs}");
    }
    let overlaps = |sync: &Value| overlap(recorded(sync), recorded(open));
    assert!(syncs.iter().any(overlaps), "{open} and {syncs:?}");
}

#[test]
fn files_that_live_for_a_moment_have_paths_bytes_and_the_thread_that_wrote_them() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(truth) = incident(&place, "temp_files", &[]) else {
        return;
    };
    let service = &truth["service"];
    let (pid, tid) = (number(&service["pid"]), number(&service["guilty"]["tid"]));
    let mut written = 0;
    for request in service["requests"].as_array().expect("requests") {
        let folder = text(&request["folder"]);
        let files = rows(
            &place,
            &["files", "log", "rec.wsl", "--file", &format!("{folder}/*")],
        );
        let paths: BTreeSet<&str> = files.iter().map(|file| text(&file["path"])).collect();
        assert_eq!(paths.len() as i64, number(&request["files"]));
        for file in &files {
            let path = Path::new(text(&file["path"]));
            assert_eq!(path.parent(), Some(Path::new(folder)));
            let name = path.file_stem().and_then(|name| name.to_str());
            let name: i64 = name.expect("UTF-8").parse().expect("a number");
            let bytes = (number(&file["write_bytes"]), number(&file["read_bytes"]));
            assert_eq!(bytes, (1009 + name, 1009 + name), "{file}");
            assert_eq!(file["created"], true, "{file}");
            assert_eq!(file["deleted"], true, "{file}");
            assert_eq!(
                (&file["comm"], number(&file["pid"])),
                (&"thumbnailer".into(), pid)
            );
            written += bytes.0;
        }
    }
    assert_eq!(written, number(&truth["bytes_written"]));
    // The writer: a thread of the service, and no other.
    let pid = pid.to_string();
    let writes = rows(
        &place,
        &[
            "io", "stats", "rec.wsl", "--op", "write", "-p", &pid, "--file", "/tmp/**", "--by",
            "thread",
        ],
    );
    let [thread] = writes.as_slice() else {
        panic!("{writes:?}");
    };
    assert_eq!(number(&thread["tid"]), tid);
    let totals = (number(&thread["count"]), number(&thread["bytes"]));
    assert_eq!(totals, (number(&truth["files"]), written));
    let threads = rows(&place, &["threads", "list", "rec.wsl", "-p", &pid]);
    let names: BTreeSet<&str> = threads.iter().map(|row| text(&row["comm"])).collect();
    assert_eq!(names, BTreeSet::from(["thumbnailer", "webapp"]));
}

#[test]
fn a_write_stalls_beside_the_sendfile_of_the_same_cold_file() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(truth) = incident(&place, "cold_sendfile", &[]) else {
        return;
    };
    let (guilty, victim) = (&truth["guilty"], &truth["victim"]);
    let file = text(&truth["file"]);
    // The sender, with all of its calls.
    let pid = number(&guilty["pid"]).to_string();
    let sends = rows(
        &place,
        &[
            "syscalls", "log", "rec.wsl", "--name", "sendfile", "-p", &pid,
        ],
    );
    assert_eq!(sends.len() as i64, number(&guilty["calls"]), "{sends:?}");
    let sent: i64 = sends.iter().map(|row| number(&row["ret"])).sum();
    assert_eq!(sent, number(&guilty["bytes"]));
    // The waiting thread, with all writes and bytes.
    let pid = number(&victim["pid"]).to_string();
    let of_victim = [
        "io", "log", "rec.wsl", "--op", "write", "-p", &pid, "--file", file,
    ];
    let writes = rows(&place, &of_victim);
    assert_eq!(writes.len() as i64, number(&victim["writes"]));
    let bytes: i64 = writes.iter().map(|row| number(&row["bytes"])).sum();
    assert_eq!(bytes, number(&victim["bytes"]));
    let slowest = writes.iter().max_by_key(|row| number(&row["dur_ns"]));
    let slowest = slowest.expect("there are writes");
    assert!(
        number(&slowest["dur_ns"]) > 200_000_000,
        "{slowest} {truth}"
    );
    assert!(
        overlap(recorded(slowest), timed(&victim["slowest_write"])),
        "{slowest} {truth}"
    );
    let overlaps = |send: &Value| overlap(recorded(send), recorded(slowest));
    assert!(sends.iter().any(overlaps), "{slowest} and {sends:?}");
    // What it waited for: the inode lock, nearly all of the time.
    let waits = rows(
        &place,
        &["locks", "log", "rec.wsl", "--op", "rwsem", "-p", &pid],
    );
    let (begin, end) = recorded(slowest);
    let waited: i64 = waits
        .iter()
        .filter(|wait| wait["mode"] == "write")
        .map(|wait| {
            let (from, until) = recorded(wait);
            (until.min(end) - from.max(begin)).max(0)
        })
        .sum();
    assert!(
        waited >= (end - begin) / 10 * 9,
        "{waited} of {slowest}: {waits:?}"
    );
    let longest = waits.iter().max_by_key(|wait| number(&wait["dur_ns"]));
    let function = longest.and_then(|wait| wait["function"].as_str());
    assert!(
        function.is_some_and(|name| name.starts_with("xfs_")),
        "{waits:?}"
    );
    // The file was read from the disk, for the sender.
    let reads = rows(
        &place,
        &[
            "block",
            "stats",
            "rec.wsl",
            "--by",
            "process",
            "--op",
            "read",
            "--min",
            STALL,
            "--dev",
            text(&truth["disk"]),
            "-c",
            "downloadd",
        ],
    );
    let [reads] = reads.as_slice() else {
        panic!("{reads:?}");
    };
    let bytes = number(&reads["bytes"]);
    assert!((1..=sent).contains(&bytes), "{reads}");
    the_producer_is_led_to_the_cold_read(&place, &truth);
}

/// Two locks and a disk away: the producer waits for the writer, which waits for the sender, which
/// waits for the disk.
fn the_producer_is_led_to_the_cold_read(place: &Place, truth: &Value) {
    let producer = &truth["victim"]["producer"];
    let stalls = producer["stalls"].as_array().expect("a list");
    let longest = stalls.iter().max_by_key(|stall| number(&stall["dur_ns"]));
    let (begin, end) = timed(longest.expect("the producer had to wait"));
    let window = format!(
        "{}.{:09}..{}.{:09}",
        begin / 1_000_000_000,
        begin % 1_000_000_000,
        end / 1_000_000_000,
        end % 1_000_000_000
    );
    let tid = number(&producer["tid"]).to_string();
    let report = place.stdout(&["explain", "rec.wsl", "-w", &window, "-t", &tid, "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let finding = &report["findings"][0];
    let chain = finding["chain"].as_array().expect("a chain");
    let steps: Vec<(&str, &str)> = chain
        .iter()
        .map(|hop| (text(&hop["actor"]["name"]), text(&hop["mechanism"])))
        .collect();
    let wanted = [("producer", "lock_futex"), ("appender", "lock_inode")];
    assert_eq!(steps[..2], wanted, "{finding:#}");
    // In the disk, or behind another request of the same thread.
    let (name, mechanism) = steps[2];
    assert_eq!(name, "downloadd", "{finding:#}");
    assert!(mechanism.starts_with("block_"), "{finding:#}");
    assert_eq!(chain[2]["activity"]["path"], truth["file"]);
    let culprit = &finding["parts"][number(&finding["culprit"]) as usize];
    assert_eq!(culprit["culprit"]["pid"], truth["guilty"]["pid"]);
    let parts = finding["parts"].as_array().expect("parts").iter();
    let of_guilty = parts.filter(|part| part["culprit"]["pid"] == truth["guilty"]["pid"]);
    let blamed: i64 = of_guilty.map(|part| number(&part["dur_ns"])).sum();
    let share = blamed as f64 / (end - begin) as f64;
    assert!(share > 0.9, "{share} {finding:#}");
}

#[test]
fn a_container_that_is_throttled_waits_though_it_could_run() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // Recorded by the workload itself, as a user would.
    let output = Command::new("python3")
        .args([RUN, "throttled", "--record", "rec.wsl"])
        .args(["--whyslow", env!("CARGO_BIN_EXE_whyslow")])
        .current_dir(place.path())
        .env("TMPDIR", place.path())
        .env("HOME", place.path())
        .env("XDG_STATE_HOME", place.join("state"))
        .output();
    let Ok(output) = output else {
        return skip(Need::Python, "python3 is not installed");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let truth: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    if let Some(why) = truth["skipped"].as_str() {
        return skip(Need::Tools, why);
    }
    // The kernel's own accounting.
    let throttled = number(&truth["throttled_ns"]);
    assert!(number(&truth["throttled_periods"]) > 10, "{truth}");
    let pid = number(&truth["guilty"]["pid"]).to_string();
    let states = rows(
        &place,
        &[
            "threads",
            "states",
            "rec.wsl",
            "-t",
            &pid,
            "-c",
            "container",
        ],
    );
    let [states] = states.as_slice() else {
        panic!("{states:?}");
    };
    let runnable = number(&states["runnable_ns"]);
    assert!(runnable > throttled / 10 * 9, "{states} {truth}");
    // No other delays: it was on CPU as long as it reports, and throttled for the rest.
    let ran = number(&states["running_ns"]);
    let cpu = number(&truth["guilty"]["cpu_ns"]);
    assert!(ran > cpu / 10 * 9, "{states} {truth}");
    let waits = rows(&place, &["sched", "top", "rec.wsl", "-t", &pid]);
    let longest = number(&waits[0]["dur_ns"]);
    // A period is 100 ms, of which it may run 20.
    assert!(longest > 50_000_000, "{waits:?}");
}

/// Whether a workload left anything behind: mounts, loop devices, cgroups below this directory.
fn left(place: &Place, group: &str) -> Vec<String> {
    let folder = place.path().canonicalize().expect("it is there");
    let folder = folder.to_str().expect("UTF-8");
    let mut left = Vec::new();
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the kernel has it");
    left.extend(
        mounts
            .lines()
            .filter(|line| line.contains(folder))
            .map(str::to_owned),
    );
    for entry in std::fs::read_dir("/sys/block")
        .expect("the kernel has it")
        .flatten()
    {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        left.extend(backing.ok().filter(|backing| backing.starts_with(folder)));
    }
    for parent in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"] {
        let path = Path::new(parent).join(group);
        left.extend(path.exists().then(|| path.display().to_string()));
    }
    left
}

fn wait_until(seconds: u64, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn nothing_is_left_of_a_workload_that_is_killed() {
    if !can_record() {
        return;
    }
    for (name, things) in [("sync_storm", 3), ("throttled", 1)] {
        let place = Place::new();
        let mut runner = Command::new("python3")
            .args([RUN, name])
            .env("TMPDIR", place.path())
            .current_dir("/")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let group = format!("whyslow-lab-{}", runner.id());
        // Killed midway: a file system, its device, and the file system below; or a cgroup.
        let is_there = wait_until(60, || {
            let has_ended = !matches!(runner.try_wait(), Ok(None));
            has_ended || left(&place, &group).len() >= things
        });
        assert!(is_there, "{name}: {:?}", left(&place, &group));
        if !matches!(runner.try_wait(), Ok(None)) {
            skip(Need::Tools, format!("{name} cannot run here"));
            continue;
        }
        sleep(Duration::from_millis(700));
        runner.kill().expect("it is ours");
        runner.wait().expect("it is ours");
        let is_gone = wait_until(60, || {
            let is_empty =
                std::fs::read_dir(place.path()).is_ok_and(|mut dir| dir.next().is_none());
            is_empty && left(&place, &group).is_empty()
        });
        assert!(is_gone, "{name}: {:?}", left(&place, &group));
    }
}
