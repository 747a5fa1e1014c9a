//! blktrace files give the results of blkparse and btt, and imported blkparse output gives the
//! same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whyslow_ingest::importers::blktrace::BlktraceSource;
use whyslow_ingest::importers::rwbs;
use whyslow_ingest::importers::streamed::{Item, Streamed, Summary};
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::event::{BlockRange, Body, LossKind};
use whyslow_testkit::{Need, skip};

const PARTS: [&str; 4] = [
    "loop0.blktrace.0",
    "loop0.blktrace.1",
    "loop1.blktrace.0",
    "loop1.blktrace.1",
];
const RECORD_BYTES: usize = 48;

fn folder() -> PathBuf {
    whyslow_testkit::fixture("blktrace")
}

fn parts() -> Vec<PathBuf> {
    PARTS.iter().map(|name| folder().join(name)).collect()
}

/// A step of a request: time, CPU, device, thread, action, direction, sector, length, and further
/// data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    ts: i64,
    cpu: i32,
    dev: i64,
    tid: i32,
    kind: &'static str,
    letters: String,
    sector: i64,
    sectors: i64,
    more: String,
}

struct Got {
    steps: Vec<Step>,
    /// Length of the gap, CPU, number of lost events.
    losses: Vec<(Option<i32>, Option<i64>)>,
    summary: Summary,
}

fn range_of<'b>(body: &'b Body<'_>) -> Option<(&'static str, &'b BlockRange<'b>, String)> {
    let none = String::new();
    Some(match body {
        Body::BlockBioQueue(range) => ("Q", range, none),
        Body::BlockBioBackmerge(range) => ("M", range, none),
        Body::BlockBioFrontmerge(range) => ("F", range, none),
        Body::BlockGetRq(range) => ("G", range, none),
        Body::BlockRqInsert(range) => ("I", range, none),
        Body::BlockRqIssue(range) => ("D", range, none),
        Body::BlockRqRequeue(range) => ("R", range, none),
        Body::BlockRqComplete { range, error } => ("C", range, format!("{error:?}")),
        Body::BlockSplit { range, new_sector } => ("X", range, new_sector.to_string()),
        Body::BlockBioRemap {
            range,
            old_dev,
            old_sector,
        } => ("A", range, format!("{old_dev} {old_sector}")),
        _ => return None,
    })
}

fn read(paths: &[PathBuf]) -> Got {
    let mut source = BlktraceSource::open(paths, None, 0).expect("files of blktrace");
    let (mut steps, mut losses) = (Vec::new(), Vec::new());
    let mut before = i64::MIN;
    let mut take = |item: Item<'_>| match item {
        Item::Event(event) => {
            assert!(event.ts >= before, "in order of time");
            before = event.ts;
            let Some((kind, range, more)) = range_of(&event.body) else {
                return;
            };
            steps.push(Step {
                ts: event.ts,
                cpu: event.cpu.expect("a CPU"),
                dev: range.dev,
                tid: event.context.tid.expect("a thread"),
                kind,
                letters: range.flags.letters(),
                sector: range.sector,
                sectors: range.sectors,
                more,
            });
        }
        Item::Loss(loss) => {
            assert_eq!(loss.kind, LossKind::Events);
            losses.push((loss.cpu, loss.count));
        }
        Item::Before(_) => {}
    };
    while source.next(&mut take).expect("they can be read") {}
    Got {
        steps,
        losses,
        summary: source.summary(),
    }
}

fn note(summary: &Summary, name: &str) -> u64 {
    let found = summary.notes.iter().find(|note| note.stat.name == name);
    found.map_or(0, |note| note.count)
}

fn device(text: &str) -> i64 {
    let (major, minor) = text
        .trim_matches(['(', ')'])
        .split_once(',')
        .expect("a device");
    major.parse::<i64>().expect("a number") << 20 | minor.parse::<i64>().expect("a number")
}

/// Letters of a direction as they are stored: an empty flush is not a write, and an internal
/// request of the kernel is one.
fn kept(letters: &str, has_data: bool) -> String {
    let letters = if letters == "FN" { "FF" } else { letters };
    rwbs::from_text(letters.as_bytes(), i64::from(has_data)).letters()
}

/// Output of blkparse, by columns.
fn printed(name: &str) -> Vec<Step> {
    const KINDS: [&str; 10] = ["Q", "M", "F", "G", "I", "D", "R", "C", "X", "A"];
    let text = fs::read_to_string(folder().join(name)).expect("a text");
    let step = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let kind = KINDS.into_iter().find(|kind| words.get(5) == Some(kind))?;
        let number = |place: usize| words[place].parse::<i64>().expect("a number");
        let (seconds, ns) = words[3].split_once('.').expect("a time");
        let ts = seconds.parse::<i64>().expect("a number") * 1_000_000_000;
        let more = match kind {
            "C" => format!("Some({})", words[words.len() - 1].trim_matches(['[', ']'])),
            "X" => words[9].to_owned(),
            "A" => format!("{} {}", device(words[11]), words[12]),
            _ => String::new(),
        };
        Some(Step {
            ts: ts + ns.parse::<i64>().expect("a number"),
            cpu: number(1) as i32,
            dev: device(words[0]),
            tid: number(4) as i32,
            kind,
            letters: kept(words[6], words.get(8) == Some(&"+")),
            // A flush has no sector.
            sector: words[7].parse().unwrap_or(0),
            sectors: if kind == "X" || words.get(8) != Some(&"+") {
                0
            } else {
                number(9)
            },
            more,
        })
    };
    text.lines().filter_map(step).collect()
}

#[test]
fn steps_are_those_that_blkparse_prints() {
    let mut got = read(&parts());
    let mut wanted = printed("loops.blkparse.txt");
    assert!(wanted.len() > 400, "{}", wanted.len());
    // Relative to the first one: blkparse's times count from there. blkparse prints no length for a
    // split.
    let begin = got.steps[0].ts - wanted[0].ts;
    for step in &mut got.steps {
        step.ts -= begin;
        if step.kind == "X" {
            step.sectors = 0;
        }
    }
    got.steps.sort();
    wanted.sort();
    assert_eq!(got.steps.len(), wanted.len());
    for (got, wanted) in got.steps.iter().zip(&wanted) {
        assert_eq!(got, wanted);
    }
    assert!(got.losses.is_empty());
    for name in [
        "BLKTRACE_LOST_BYTES",
        "BLKTRACE_CLOCK_GUESSED",
        "EVENT_FIELD_MISSING",
    ] {
        assert_eq!(note(&got.summary, name), 0, "{name}");
    }
    // Plugs and similar steps are counted, too: together with messages, nothing else is in the
    // files.
    let text = fs::read_to_string(folder().join("loops.blkparse.txt")).expect("a text");
    let plugs = text
        .lines()
        .filter(|line| line.contains("  P   N ["))
        .count() as u64;
    assert_eq!(got.summary.counts.get("blktrace:plug"), Some(&plugs));
    assert_eq!(
        got.summary.counts.values().sum::<u64>(),
        got.summary.records
    );
}

/// Rows of requests with times relative to the first one.
fn requests(imported: &InMemory) -> Vec<String> {
    let rows = &imported.rows.block_io;
    let begin = rows.iter().map(|row| row.ts).min().unwrap_or(0);
    let text = |sym| imported.symbols.get(sym).to_owned();
    let row = |row: &whyslow_model::tables::BlockIoRow| {
        format!(
            "{:>9} {} {:?} {} {:?} {} {:?}",
            row.ts - begin,
            text(row.dev_name),
            row.dur,
            text(row.op),
            row.sector,
            row.bytes,
            row.comm.map(text)
        )
    };
    let mut requests: Vec<String> = rows.iter().map(row).collect();
    requests.sort();
    requests
}

fn imported(paths: &[PathBuf]) -> InMemory {
    let imported = import_in_memory(paths).expect("it can be imported");
    let bad: Vec<_> = imported
        .anomalies
        .iter()
        .filter(|one| one.name.contains("BAD") || one.name.contains("LOST"))
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
    imported
}

#[test]
fn what_blkparse_prints_means_what_the_files_mean() {
    let binary = requests(&imported(&parts()));
    assert!(binary.len() > 30, "{}", binary.len());
    assert_eq!(
        requests(&imported(&[folder().join("loops.blkparse.txt")])),
        binary
    );
    let binary = requests(&imported(&parts()[2..]));
    for name in ["times.blkparse.txt", "own.blkparse.txt"] {
        assert_eq!(
            requests(&imported(&[folder().join(name)])),
            binary,
            "{name}"
        );
    }
}

#[test]
fn a_folder_is_its_files_in_any_order() {
    let room = tempfile::tempdir().expect("room");
    for name in PARTS {
        fs::copy(folder().join(name), room.path().join(name)).expect("room");
    }
    // The file of a CPU without events.
    let empty = room.path().join("loop0.blktrace.2");
    fs::write(&empty, "").expect("room");
    let whole = requests(&imported(&[room.path().to_owned()]));
    let mut files: Vec<PathBuf> = PARTS.iter().map(|name| room.path().join(name)).collect();
    files.push(empty);
    files.reverse();
    assert_eq!(requests(&imported(&files)), whole);
    assert_eq!(whole, requests(&imported(&parts())));
}

#[test]
fn one_file_with_all_cpus_is_put_in_order() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("all");
    let mut all = Vec::new();
    for part in parts() {
        all.extend(fs::read(part).expect("a file"));
    }
    fs::write(&path, &all).expect("room");
    let (one, many) = (read(&[path]), read(&parts()));
    assert_eq!(one.steps, many.steps);
    assert!(one.losses.is_empty());
}

/// Offsets of records.
fn places(bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut places) = (0, Vec::new());
    while at < bytes.len() {
        places.push(at);
        at += RECORD_BYTES + usize::from(u16::from_le_bytes([bytes[at + 46], bytes[at + 47]]));
    }
    places
}

#[test]
fn files_of_machines_with_the_other_order_of_bytes() {
    const WORDS: [(usize, usize); 12] = [
        (0, 4),
        (4, 4),
        (8, 8),
        (16, 8),
        (24, 4),
        (28, 4),
        (32, 4),
        (36, 4),
        (40, 4),
        (44, 2),
        (46, 2),
        (48, 0),
    ];
    let room = tempfile::tempdir().expect("room");
    let mut paths = Vec::new();
    for part in parts() {
        let mut bytes = fs::read(&part).expect("a file");
        for at in places(&bytes) {
            let action = u32::from_le_bytes(bytes[at + 28..at + 32].try_into().expect("four"));
            let is_time = action & 0xffff == 1 && action >> 16 & 1 << 10 != 0;
            for (offset, size) in WORDS {
                bytes[at + offset..at + offset + size].reverse();
            }
            if is_time {
                bytes[at + 48..at + 52].reverse();
                bytes[at + 52..at + 56].reverse();
            }
        }
        let path = room.path().join(part.file_name().expect("a name"));
        fs::write(&path, bytes).expect("room");
        paths.push(path);
    }
    let (turned, usual) = (read(&paths), read(&parts()));
    assert_eq!(turned.steps, usual.steps);
    assert_eq!(note(&turned.summary, "BLKTRACE_CLOCK_GUESSED"), 0);
}

#[test]
fn records_that_are_missing_by_number_are_lost() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("x");
    let bytes = fs::read(folder().join("loop0.blktrace.0")).expect("a file");
    let places = places(&bytes);
    // Remove two from the middle.
    let (from, to) = (places[places.len() / 2], places[places.len() / 2 + 2]);
    let rest = [&bytes[..from], &bytes[to..]].concat();
    fs::write(&path, rest).expect("room");
    let got = read(&[path]);
    assert_eq!(got.losses, [(Some(0), Some(2))]);
}

#[test]
fn damaged_files_give_what_they_have() {
    let room = tempfile::tempdir().expect("room");
    let path = room.path().join("x");
    let check = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("room");
        read(std::slice::from_ref(&path))
    };
    for part in parts() {
        let bytes = fs::read(&part).expect("a file");
        let all = check(&bytes);
        let places = places(&bytes);
        // Every byte of the small files; the others contain more of the same.
        let step = if bytes.len() < 4096 { 1 } else { 11 };
        for end in (0..bytes.len()).step_by(step) {
            let got = check(&bytes[..end]);
            let whole = places.iter().filter(|at| **at <= end).count() - 1;
            let is_border = places.contains(&end);
            assert_eq!(got.summary.records, whole as u64, "{end}");
            assert_eq!(
                note(&got.summary, "BLKTRACE_LOST_BYTES") == 0,
                is_border,
                "{end}"
            );
        }
        for at in (0..bytes.len()).step_by(step) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let got = check(&bytes);
            assert!(got.summary.records <= all.summary.records + 1, "{at}");
        }
    }
}

/// Values of btt for one device: name, then minimum, mean, maximum in seconds, and count.
fn btt(path: &Path) -> BTreeMap<String, Vec<f64>> {
    // It writes files to the working directory.
    let folder = path.parent().expect("a folder");
    let done = Command::new("btt")
        .arg("-i")
        .arg(path)
        .current_dir(folder)
        .output();
    let done = done.expect("btt runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let row = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().filter(|name| name.contains('2'))?.to_owned();
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        Some((name, numbers?)).filter(|(_, numbers)| numbers.len() == 4)
    };
    let all = text.split("Device Overhead").next().unwrap_or_default();
    all.lines().filter_map(row).collect()
}

#[test]
fn times_of_requests_are_those_of_btt() {
    let has = |tool: &str| Command::new(tool).arg("-h").output().is_ok();
    if !has("btt") || !has("blkparse") {
        return skip(Need::Tools, "no btt and blkparse (blktrace)");
    }
    let room = tempfile::tempdir().expect("room");
    let merged = room.path().join("merged");
    let done = Command::new("blkparse")
        .args(["-q", "-O", "-i", "loop1", "-d"])
        .arg(&merged)
        .current_dir(folder())
        .output();
    assert!(done.expect("blkparse runs").status.success());
    let reported = btt(&merged);
    let imported = imported(&[merged]);
    // The device merges nothing; btt does not follow its splits (large reads).
    let is_write =
        |row: &&whyslow_model::tables::BlockIoRow| imported.symbols.get(row.op) == "write";
    let writes: Vec<_> = imported.rows.block_io.iter().filter(is_write).collect();
    let device = writes.iter().filter_map(|row| row.device_ns).collect();
    let whole = writes.iter().filter_map(|row| row.dur).collect();
    for (name, waits) in [("D2C", device), ("Q2C", whole)] {
        let (waits, wanted): (Vec<i64>, _) = (waits, &reported[name]);
        assert_eq!(waits.len() as f64, wanted[3], "{name}: {reported:?}");
        let seconds = |ns: i64| ns as f64 / 1e9;
        let mean = seconds(waits.iter().sum()) / waits.len() as f64;
        let least = seconds(*waits.iter().min().expect("one"));
        let greatest = seconds(*waits.iter().max().expect("one"));
        for (got, wanted) in [least, mean, greatest].into_iter().zip(wanted) {
            assert!((got - wanted).abs() < 2e-9, "{name}: {got} {wanted}");
        }
    }
}
