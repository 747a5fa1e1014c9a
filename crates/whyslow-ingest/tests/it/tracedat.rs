//! trace-cmd files give the results of `trace-cmd report`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whyslow_ingest::importers::rwbs;
use whyslow_ingest::importers::streamed::{Item, Streamed, Summary};
use whyslow_ingest::importers::tracedat::TraceDatSource;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::event::{Body, PrevState};
use whyslow_testkit::{Need, skip};

use crate::support::zlib_dat;

/// Files for which a complete report exists.
const PRINTED: [&str; 3] = ["packed", "old", "instances"];
const LOST: &str = "lost";

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("trace-cmd").join(name)
}

/// Content of an event, as far as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    ts: i64,
    cpu: i32,
    tid: i32,
    what: String,
}

struct Got {
    is_ordered: bool,
    said: Vec<Said>,
    losses: Vec<(Option<i32>, Option<i64>)>,
    summary: Summary,
}

fn read(path: &Path) -> Option<Got> {
    let mut source = TraceDatSource::open(path, None, 0).ok()?;
    let (mut said, mut losses) = (Vec::new(), Vec::new());
    let (mut before, mut is_ordered) = (i64::MIN, true);
    let mut take = |item: Item<'_>| match item {
        Item::Event(event) => {
            is_ordered &= event.ts >= before;
            before = event.ts;
            said.push(Said {
                ts: event.ts,
                cpu: event.cpu.expect("a CPU"),
                tid: event.context.tid.unwrap_or(-1),
                what: what(&event.body),
            });
        }
        Item::Loss(loss) => losses.push((loss.cpu, loss.count)),
        Item::Before(_) => {}
    };
    while source.next(&mut take).expect("it can be read") {}
    Some(Got {
        is_ordered,
        said,
        losses,
        summary: source.summary(),
    })
}

fn note(summary: &Summary, name: &str) -> u64 {
    let found = summary.notes.iter().find(|note| note.stat.name == name);
    found.map_or(0, |note| note.count)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn letter(state: PrevState) -> &'static str {
    match state {
        // trace-cmd does not show preemption.
        PrevState::Runnable { .. } => "R",
        PrevState::Sleeping => "S",
        PrevState::Uninterruptible => "D",
        // Its table of states is that of kernels before 4.14, in which these two are swapped.
        PrevState::Zombie | PrevState::Dead => "X",
        PrevState::Idle => "I",
        _ => "?",
    }
}

fn what(body: &Body<'_>) -> String {
    match body {
        Body::SchedSwitch {
            prev_tid,
            prev_comm,
            prev_state,
            next_tid,
            next_comm,
            ..
        } => format!(
            "{}:{prev_tid} {} ==> {}:{next_tid}",
            text(prev_comm),
            letter(*prev_state),
            text(next_comm)
        ),
        Body::SchedWakeup { tid, comm, .. } => format!("wakeup {}:{tid}", text(comm)),
        Body::SyscallEnter { nr: Some(nr), .. } => format!("enter {nr}"),
        Body::SyscallExit { ret: Some(ret), .. } => format!("exit {ret}"),
        Body::Fork { child_tid, .. } => format!("fork {child_tid}"),
        Body::Exec { .. } => "exec".into(),
        Body::BlockBioQueue(range)
        | Body::BlockRqIssue(range)
        | Body::BlockRqComplete { range, .. } => format!(
            "block {},{} {} {} + {}",
            range.dev >> 20,
            range.dev & 0xf_ffff,
            range.flags.letters(),
            range.sector,
            range.sectors
        ),
        _ => "?".into(),
    }
}

/// Content of a line of `trace-cmd report -t`.
fn printed_line(line: &str) -> Option<Said> {
    // It prints the names of instances other than the top-level one.
    let line = line.trim_start().strip_prefix("other:").unwrap_or(line);
    let open = line
        .find("] ")
        .map(|close| line[..close].rfind('[').expect("a CPU"))?;
    let (task, rest) = (&line[..open], &line[open + 1..]);
    let tid = task.trim().rsplit_once('-')?.1.parse().expect("a thread");
    let (cpu, rest) = rest.split_once("] ")?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, ns) = time.split_once('.').expect("a time");
    let ns: i64 = ns.parse().expect("a number");
    let (name, text) = rest.split_once(':')?;
    Some(Said {
        ts: seconds.parse::<i64>().expect("a number") * 1_000_000_000 + ns,
        cpu: cpu.parse().expect("a number"),
        tid,
        what: what_printed(name, text.trim()),
    })
}

fn what_printed(name: &str, text: &str) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let value = |key: &str| {
        let found = words.iter().find_map(|word| word.strip_prefix(key));
        found
            .unwrap_or_else(|| panic!("{key} in {text}"))
            .to_owned()
    };
    let without_prio = |text: &str| {
        let (task, rest) = text.split_once(" [").expect("a priority");
        let rest = rest.split_once(']').expect("an end").1.trim();
        (task.to_owned(), rest.to_owned())
    };
    let hexadecimal = |text: &str| {
        let digits = text.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("a number") as i64
    };
    match name {
        "sched_switch" => {
            let (prev, next) = text.split_once(" ==> ").expect("a switch");
            let ((prev, state), (next, _)) = (without_prio(prev), without_prio(next));
            let state = match state.as_str() {
                "Z" => "X",
                "W" => "I",
                "x" => "?",
                state => state,
            };
            format!("{prev} {state} ==> {next}")
        }
        "sched_wakeup" => format!("wakeup {}", without_prio(text).0),
        "sched_process_fork" => format!("fork {}", value("child_pid=")),
        "sched_process_exec" => "exec".into(),
        "sys_enter" => format!("enter {}", words[1]),
        "sys_exit" => format!("exit {}", words[3]),
        "sys_enter_write" => "enter 1".into(),
        "sys_enter_read" => "enter 0".into(),
        "sys_exit_write" | "sys_exit_read" => format!("exit {}", hexadecimal(words[0])),
        "block_bio_queue" | "block_rq_issue" | "block_rq_complete" => {
            let plus = words
                .iter()
                .position(|word| *word == "+")
                .expect("a length");
            let sectors = words[plus + 1].parse().expect("a number");
            // As they are stored: an empty flush is not a write.
            let flags = rwbs::from_text(words[1].as_bytes(), sectors).letters();
            format!("block {} {flags} {} + {sectors}", words[0], words[plus - 1])
        }
        _ => panic!("{name} is not expected"),
    }
}

fn printed(text: &str) -> Vec<Said> {
    let mut lines: Vec<Said> = text.lines().filter_map(printed_line).collect();
    lines.sort();
    lines
}

fn report(name: &str) -> String {
    fs::read_to_string(fixture(&format!("{name}.report.txt"))).expect("a text")
}

#[test]
fn events_are_those_that_trace_cmd_prints() {
    for name in PRINTED {
        let mut got = read(&fixture(&format!("{name}.dat"))).expect("a file of trace-cmd");
        let report = report(name);
        let wanted = printed(&report);
        assert_eq!(
            wanted.len() + 1,
            report.lines().count(),
            "{name}: all lines are events"
        );
        assert!(got.is_ordered, "{name}");
        got.said.sort();
        assert_eq!(got.said.len(), wanted.len(), "{name}");
        for (got, wanted) in got.said.iter().zip(&wanted) {
            assert_eq!(got, wanted, "{name}");
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for line in report.lines().skip(1) {
            let name = line.split(": ").nth(1).expect("a name").trim();
            let name = name.trim_end_matches(':');
            *counts.entry(name).or_default() += 1;
        }
        let reported: BTreeMap<&str, u64> = got
            .summary
            .counts
            .iter()
            .map(|(name, count)| (name.split(':').nth(1).expect("a name"), *count))
            .collect();
        if name != "instances" {
            assert_eq!(reported, counts, "{name}");
        }
        assert!(got.losses.is_empty(), "{name}");
        for anomaly in [
            "TRACEDAT_LOST_BYTES",
            "TRACEDAT_PART_DAMAGED",
            "TRACEDAT_PAGE_DAMAGED",
            "EVENT_UNKNOWN_ID",
        ] {
            assert_eq!(note(&got.summary, anomaly), 0, "{name}: {anomaly}");
        }
    }
}

#[test]
fn what_was_lost_is_told_where_trace_cmd_tells_it() {
    let got = read(&fixture("lost.dat")).expect("a file of trace-cmd");
    let dropped = |line: &str| {
        let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [")?;
        let count = rest.split(' ').next()?.parse().ok()?;
        Some((Some(cpu.parse().ok()?), Some(count)))
    };
    let wanted: Vec<(Option<i32>, Option<i64>)> =
        report(LOST).lines().filter_map(dropped).collect();
    assert!(!wanted.is_empty());
    assert_eq!(got.losses, wanted);
    let done = Command::new("trace-cmd")
        .args(["report", "-t"])
        .arg(fixture("lost.dat"))
        .output();
    let Ok(done) = done else {
        return skip(Need::Tools, "no trace-cmd to print the events between");
    };
    let wanted = printed(&String::from_utf8_lossy(&done.stdout));
    assert!(wanted.len() > 100, "{}", wanted.len());
    let mut said = got.said;
    said.sort();
    assert_eq!(said, wanted);
}

fn imported(name: &str) -> InMemory {
    let imported = import_in_memory(&[fixture(name)]).expect("it can be imported");
    let bad: Vec<_> = imported
        .anomalies
        .iter()
        .filter(|one| one.name.contains("BAD") || one.name.contains("DAMAGED"))
        .collect();
    assert!(bad.is_empty(), "{name}: {bad:?}");
    imported
}

#[test]
fn what_trace_cmd_prints_means_what_the_file_means() {
    let calls = |imported: &InMemory| {
        let rows = &imported.rows.syscall;
        let begin = rows.iter().map(|row| row.ts).min().unwrap_or(0);
        let row = |row: &whyslow_model::tables::SyscallRow| {
            let name = imported.symbols.get(row.name).to_owned();
            (row.ts - begin, row.dur, name, row.tid, row.ret)
        };
        let mut calls: Vec<_> = rows.iter().map(row).collect();
        calls.sort();
        calls
    };
    let of_file = calls(&imported("old.dat"));
    assert!(of_file.len() > 50, "{}", of_file.len());
    assert_eq!(calls(&imported("old.report.txt")), of_file);
    let states = |imported: &InMemory| {
        let mut states: BTreeMap<(String, Option<i32>), i64> = BTreeMap::new();
        for row in &imported.rows.thread_state {
            let state = imported.symbols.get(row.state).to_owned();
            *states.entry((state, row.tid)).or_default() += row.dur.unwrap_or(0);
        }
        assert!(states.len() > 5, "{states:?}");
        states
    };
    assert_eq!(
        states(&imported("packed.report.txt")),
        states(&imported("packed.dat"))
    );
    let requests = |imported: &InMemory| {
        let rows = imported.rows.block_io.iter();
        let mut rows: Vec<_> = rows
            .map(|row| (row.sector, row.bytes, row.dur, row.tid))
            .collect();
        rows.sort();
        assert!(rows.len() > 3, "{rows:?}");
        rows
    };
    assert_eq!(
        requests(&imported("packed.report.txt")),
        requests(&imported("packed.dat"))
    );
}

#[test]
fn a_file_tells_of_its_machine_and_its_threads() {
    let imported = imported("packed.dat");
    let facts = &imported.rows.metadata;
    let fact = |key: &str| facts.iter().any(|row| imported.symbols.get(row.key) == key);
    for key in ["hostname", "kernel_release", "architecture", "trace_clock"] {
        assert!(fact(key), "{key}");
    }
    let comms: Vec<&str> = imported
        .rows
        .thread_comm
        .iter()
        .map(|row| imported.symbols.get(row.comm))
        .collect();
    assert!(comms.contains(&"dd") && comms.contains(&"sh"), "{comms:?}");
    // Recorded with --date; the others are assumed to end at their modification time.
    let guessed = |imported: &InMemory| {
        let mut anomalies = imported.anomalies.iter();
        anomalies.any(|one| one.name == "TRACEDAT_CLOCK_GUESSED")
    };
    assert!(!guessed(&imported));
    let old = self::imported("old.dat");
    assert!(guessed(&old));
    let written = fs::metadata(fixture("old.dat")).and_then(|about| about.modified());
    let written = written
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH);
    assert_eq!(old.end_ns, written.expect("after 1970").as_nanos() as i64);
}

#[test]
fn files_that_zlib_packed_are_the_same() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("trace.dat");
    let whole = fs::read(fixture("instances.dat")).expect("a file");
    let packed = zlib_dat::made(&whole);
    assert!(packed.len() < whole.len() / 2);
    fs::write(&path, &packed).expect("room");
    let got = read(&path).expect("a file of trace-cmd");
    let plain = read(&fixture("instances.dat")).expect("a file of trace-cmd");
    assert_eq!(got.said, plain.said);
    // A chunk that cannot be decompressed is lost, the next one is not.
    let mut bytes = packed;
    let buffer = bytes
        .windows(4)
        .position(|bytes| bytes == [3, 0, 1, 0])
        .expect("pages");
    let chunk = buffer + 16 + 4 + 8;
    bytes[chunk + 20..chunk + 30].fill(0);
    fs::write(&path, &bytes).expect("room");
    let got = read(&path).expect("a file of trace-cmd");
    assert!(note(&got.summary, "TRACEDAT_LOST_BYTES") > 0);
    assert!(!got.said.is_empty() && got.said.len() < plain.said.len());
}

#[test]
fn damaged_files_give_what_they_have() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("trace.dat");
    for name in ["packed", "old", "instances", LOST] {
        let whole = fs::read(fixture(&format!("{name}.dat"))).expect("a file");
        let all = read(&fixture(&format!("{name}.dat")))
            .expect("a file")
            .said
            .len();
        let check = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("room");
            read(&path)
        };
        // Most offsets of the smallest file, which has all parts; the others have larger pages.
        let step = if name == "packed" { 3 } else { 61 };
        let mut opened = 0;
        for end in (0..whole.len()).step_by(step) {
            let Some(got) = check(&whole[..end]) else {
                continue;
            };
            opened += 1;
            assert!(got.said.len() <= all, "{name}: {end}");
            let notes = ["TRACEDAT_LOST_BYTES", "TRACEDAT_PART_DAMAGED"];
            let is_told = notes.iter().any(|name| note(&got.summary, name) > 0);
            assert!(is_told || got.said.len() == all, "{name}: {end}");
        }
        // If the pages of an instance are truncated, the others are complete.
        assert!(opened > 0 || name == "packed", "{name}");
        for at in (0..whole.len()).step_by(step.min(23)) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            check(&bytes);
        }
        for at in (0..whole.len()).step_by(509) {
            let mut bytes = whole.clone();
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0xff);
            check(&bytes);
        }
    }
}
