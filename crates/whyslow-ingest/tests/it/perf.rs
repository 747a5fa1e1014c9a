//! perf.data files give the results of `perf script`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use whyslow_ingest::import_in_memory;
use whyslow_ingest::importers::perf::{Item, Lacks, PerfSource};
use whyslow_ingest::importers::rwbs;
use whyslow_model::event::{Body, PrevState, StackKind};

const NAMES: [&str; 6] = ["blocks", "clock", "named", "packed", "piped", "switches"];

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("perf").join(name)
}

/// A line of `*.printed.csv`.
#[derive(Debug)]
struct Printed {
    ts: i64,
    tid: i32,
    event: String,
    frames: usize,
    text: String,
}

fn printed(name: &str) -> Vec<Printed> {
    let table = fs::read_to_string(fixture(&format!("{name}.printed.csv"))).expect("a table");
    let lines = table.lines().skip(1).map(|line| {
        let mut cells = line.splitn(7, ',');
        let mut next = || cells.next().expect("a cell");
        let ts = next().parse().expect("a time");
        let _pid = next();
        let tid = next().parse().expect("a number");
        let event = next().to_owned();
        let frames = next().parse().expect("a number");
        let _function = next();
        Printed {
            ts,
            tid,
            event,
            frames,
            text: next().trim_matches('"').to_owned(),
        }
    });
    lines.collect()
}

/// Content of an event, as printed by `perf script`.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    ts: i64,
    tid: Option<i32>,
    what: String,
}

struct Got {
    said: Vec<Said>,
    /// Number of frames of CPU samples.
    depths: Vec<usize>,
    /// Stacks of threads that run again after an off-CPU interval.
    back: usize,
    counts: BTreeMap<String, u64>,
    lacks: Lacks,
}

fn read(path: &Path) -> Got {
    let mut source = PerfSource::open(path, Some(0), 0).expect("a file of perf");
    let mut got = Got {
        said: Vec::new(),
        depths: Vec::new(),
        back: 0,
        counts: BTreeMap::new(),
        lacks: Lacks::default(),
    };
    let mut take = |item: Item<'_>| {
        let Item::Event(event) = item else { return };
        if let Body::Stack(stack) = event.body {
            match stack.kind {
                StackKind::Sample => got.depths.push(stack.frames.len()),
                _ => got.back += 1,
            }
        }
        got.said.extend(what(&event.body).map(|what| Said {
            ts: event.ts,
            tid: event.context.tid,
            what,
        }));
    };
    while source.next(&mut take).expect("it can be read") {}
    got.counts = source.counts();
    got.lacks = source.lacks();
    got
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn letter(state: PrevState) -> &'static str {
    match state {
        PrevState::Runnable { preempted: true } => "R+",
        PrevState::Runnable { .. } => "R",
        PrevState::Sleeping => "S",
        PrevState::Uninterruptible => "D",
        PrevState::Zombie => "Z",
        PrevState::Dead => "X",
        PrevState::Idle => "I",
        _ => "?",
    }
}

/// The part of the text that both must agree on.
fn what(body: &Body<'_>) -> Option<String> {
    Some(match body {
        Body::SchedSwitch {
            prev_tid,
            prev_comm,
            prev_state,
            next_tid,
            next_comm,
            ..
        } => format!(
            "switch {} {prev_tid} {} {} {next_tid}",
            text(prev_comm),
            letter(*prev_state),
            text(next_comm)
        ),
        Body::SchedWakeup { tid, comm, .. } => format!("wakeup {} {tid}", text(comm)),
        Body::SyscallEnter { nr: Some(nr), .. } => format!("enter {nr}"),
        Body::SyscallExit { ret: Some(ret), .. } => format!("exit {ret}"),
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
        Body::Stack(stack) if stack.kind == StackKind::Sample => "sample".into(),
        _ => return None,
    })
}

/// Content of a line.
fn what_printed(line: &Printed) -> Option<String> {
    let word = |key: &str| {
        let at = line.text.split(' ').find_map(|word| word.strip_prefix(key));
        at.unwrap_or_else(|| panic!("{key} in {line:?}")).to_owned()
    };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).expect("a number") as i64,
        None => text.parse().expect("a number"),
    };
    let name = line.event.split(':').nth(1).unwrap_or("");
    Some(match name {
        "sched_switch" => format!(
            "switch {} {} {} {} {}",
            word("prev_comm="),
            word("prev_pid="),
            word("prev_state="),
            word("next_comm="),
            word("next_pid=")
        ),
        "sched_wakeup" => format!("wakeup {} {}", word("comm="), word("pid=")),
        "sys_enter" => format!("enter {}", line.text.split(' ').nth(1)?),
        "sys_exit" => format!("exit {}", line.text.split(' ').nth(3)?),
        "sys_enter_openat" => "enter 257".into(),
        "sys_enter_write" => "enter 1".into(),
        "sys_exit_openat" | "sys_exit_write" => format!("exit {}", number(&line.text)),
        "block_bio_queue" | "block_rq_issue" | "block_rq_complete" => {
            let words: Vec<&str> = line.text.split(' ').collect();
            let plus = words.iter().position(|word| *word == "+")?;
            let sectors = words[plus + 1].parse().ok()?;
            // As they are stored: an empty flush is not a write.
            let flags = rwbs::from_text(words[1].as_bytes(), sectors).letters();
            format!("block {} {flags} {} + {sectors}", words[0], words[plus - 1])
        }
        "" => "sample".into(),
        _ => return None,
    })
}

#[test]
fn events_are_those_that_perf_script_prints() {
    for name in NAMES {
        let got = read(&fixture(&format!("{name}.data")));
        assert_eq!(got.lacks.damaged.0, 0, "{name}");
        assert!(!got.lacks.is_unfinished, "{name}");
        assert_eq!((got.lacks.cut, got.lacks.strange), (0, 0), "{name}");
        let printed = printed(name);
        assert!(!printed.is_empty(), "{name}");
        let wanted: Vec<(&Printed, String)> = printed
            .iter()
            .filter_map(|line| Some((line, what_printed(line)?)))
            .collect();
        assert_eq!(got.said.len(), wanted.len(), "{name}");
        // By their distances: the two have different clocks.
        let begin = (got.said[0].ts, wanted[0].0.ts);
        for (said, (line, what)) in got.said.iter().zip(&wanted) {
            assert_eq!(said.what, *what, "{name}");
            assert_eq!(said.ts - begin.0, line.ts - begin.1, "{name}: {said:?}");
            assert_eq!(said.tid, Some(line.tid), "{name}: {said:?}");
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for line in &printed {
            *counts.entry(&line.event).or_default() += 1;
        }
        for (event, count) in counts {
            assert_eq!(
                got.counts.get(event),
                Some(&count),
                "{name}: {:?}",
                got.counts
            );
        }
        if name == "clock" {
            let depths: Vec<usize> = printed.iter().map(|line| line.frames).collect();
            assert_eq!(got.depths, depths);
        }
    }
}

#[test]
fn threads_come_back_with_the_stack_they_left_with() {
    let got = read(&fixture("switches.data"));
    let switches = got
        .said
        .iter()
        .filter(|said| said.what.starts_with("switch"));
    let back = switches.clone().count();
    assert!(got.back > 10 && got.back <= back, "{} of {back}", got.back);
}

#[test]
fn a_recording_of_perf_answers_as_others_do() {
    let imported = import_in_memory(&[fixture("packed.data")]).expect("it can be imported");
    let calls = &imported.rows.syscall;
    assert!(calls.len() > 300, "{}", calls.len());
    let name = |row: &whyslow_model::tables::SyscallRow| imported.symbols.get(row.name).to_owned();
    let syncs = calls.iter().filter(|row| name(row) == "fsync").count();
    assert_eq!(syncs, 1);
    let processes = &imported.rows.process;
    assert!(processes.len() >= 4, "{}", processes.len());
    let comms: Vec<String> = imported
        .rows
        .thread_comm
        .iter()
        .map(|row| imported.symbols.get(row.comm).to_owned())
        .collect();
    assert!(comms.iter().any(|comm| comm == "dd"), "{comms:?}");
    let imported = import_in_memory(&[fixture("blocks.data")]).expect("it can be imported");
    assert!(!imported.rows.block_io.is_empty());
}

#[test]
fn damaged_files_give_what_they_have() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("perf.data");
    for name in NAMES {
        let whole = fs::read(fixture(&format!("{name}.data"))).expect("a file");
        let all = read(&fixture(&format!("{name}.data"))).said.len();
        let check = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("room");
            let source = PerfSource::open(&path, Some(0), 0).ok()?;
            let mut source = source.without_names();
            let mut said = 0;
            let mut take = |item: Item<'_>| {
                if let Item::Event(event) = item {
                    said += usize::from(what(&event.body).is_some());
                }
            };
            while source.next(&mut take).expect("it can be read") {}
            Some((said, source.lacks()))
        };
        for end in (0..whole.len()).step_by(whole.len() / 40) {
            if let Some((said, lacks)) = check(&whole[..end]) {
                assert!(said <= all, "{name}: {end}");
                let is_told = lacks.is_unfinished || lacks.damaged.0 > 0;
                // The rest of a pipe is not reported as missing: its length is unknown.
                assert!(is_told || name == "piped", "{name}: {end}");
            }
        }
        for step in 0..40 {
            let mut bytes = whole.clone();
            let at = bytes.len() * step / 40;
            bytes[at] ^= 1 << (step % 8);
            check(&bytes);
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0);
            check(&bytes);
        }
    }
}

#[test]
fn an_unfinished_file_has_its_records() {
    const DATA_SIZE_AT: usize = 48;
    let mut bytes = fs::read(fixture("clock.data")).expect("a file");
    let whole = read(&fixture("clock.data"));
    let end = 40 + u64::from_le_bytes(bytes[40..48].try_into().expect("eight")) as usize;
    let len = u64::from_le_bytes(bytes[48..56].try_into().expect("eight")) as usize;
    bytes[DATA_SIZE_AT..DATA_SIZE_AT + 8].fill(0);
    bytes.truncate(end - 40 + len - 3);
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("perf.data");
    fs::write(&path, bytes).expect("room");
    let got = read(&path);
    assert!(got.lacks.is_unfinished);
    assert!(got.lacks.damaged.0 > 0);
    assert!(got.said.len() + 1 >= whole.said.len() && !got.said.is_empty());
}

/// Samples of a counter unrelated to time are counted, and are not stacks.
#[test]
fn samples_of_other_counters_are_told_as_not_used() {
    let mut bytes = fs::read(fixture("clock.data")).expect("a file");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word"));
    // The first description: its type and size, then the counter. Clocks are replaced by page
    // faults.
    let attr = word(24) as usize;
    assert_eq!(word(attr) as u32, 1);
    let samples = read(&fixture("clock.data")).depths.len();
    bytes[attr + 8] = 2;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("faults.data");
    fs::write(&path, bytes).expect("written");
    let got = read(&path);
    assert!(samples > 0 && got.depths.is_empty());
    assert_eq!(got.lacks.unused, samples as u64);
}
