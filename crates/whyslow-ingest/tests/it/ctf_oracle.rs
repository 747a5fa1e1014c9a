//! Every event and every field of real traces, compared with the output of babeltrace.
//!
//! Needs the traces (`WHYSLOW_DATA`), and `babeltrace2` for the comparison of fields.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use whyslow_ingest::archive::{Unpacked, unpack};
use whyslow_ingest::importers::ctf::class::Scope;
use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, Want};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::metadata::parse_metadata;
use whyslow_ingest::importers::ctf::reader::{CtfReader, Summary, decode_all};
use whyslow_testkit::{Need, skip, skip_unless_installed};

use crate::common::data;
use crate::support::ctf2;

fn babeltrace2() -> Option<()> {
    skip_unless_installed(Need::Babeltrace, "babeltrace2", "--version").then_some(())
}

/// A table of two columns: text and number.
fn counts(path: &Path) -> BTreeMap<String, u64> {
    let table = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('\t');
        (
            cells.next().unwrap().to_owned(),
            cells.next().unwrap().parse().unwrap(),
        )
    };
    table.lines().map(row).collect()
}

fn events_by_name(reader: &CtfReader, summary: &Summary) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (class, count) in reader.classes().zip(&summary.events_by_class) {
        if *count > 0 {
            *counts.entry(class.event.name.clone()).or_default() += count;
        }
    }
    counts
}

fn check_counts(archive: &str, folder: &str, table: &str) {
    let Some(data) = data() else { return };
    let unpacked = unpack(&data.join(archive)).unwrap();
    let path = unpacked.path().join(folder);
    let reader = CtfReader::open(&path).unwrap();
    let summary = decode_all(&path).unwrap();
    let expected = counts(&data.join("counts").join(table));
    assert_eq!(events_by_name(&reader, &summary), expected, "{archive}");
    assert_eq!(summary.events_read, expected.values().sum::<u64>());
    assert_eq!(summary.events_delivered, summary.events_read);
    assert_eq!(
        summary.anomalies.len(),
        0,
        "{archive}: {:?}",
        summary.anomalies
    );
}

#[test]
fn events_by_name_are_those_of_babeltrace() {
    for name in [
        "arm-old-syscalls-3.10",
        "basic-kernel-4.4",
        "big-endian-3.14",
        "many-threads-4.4",
        "no-thread-6.2",
        "perfctx-6.2",
        "tidctx-only-6.2",
    ] {
        check_counts(&format!("{name}.tar.xz"), "", &format!("{name}.tsv"));
    }
    check_counts(
        "ours-web-incident/trace.tar.zst",
        "",
        "ours-web-incident.tsv",
    );
}

/// babeltrace2 stops in both traces where a packet starts before the last event of the previous
/// one.
#[test]
fn both_hosts_are_read_to_their_ends() {
    for host in ["scp_src", "scp_dest"] {
        let folder = format!("two-hosts-scp-3.6/{host}");
        check_counts(
            "two-hosts-scp-3.6.tar.xz",
            &folder,
            &format!("two-hosts-scp-3.6.{host}.tsv"),
        );
    }
}

/// An event as a line, as printed by babeltrace2, without host and process.
struct Lines {
    lines: Vec<(i64, String)>,
    has_clock: bool,
}

impl Consumer for Lines {
    fn wants(&mut self, class: &ClassRef<'_>) -> Want {
        self.has_clock |= class.stream.clock.is_some();
        Want::Everything
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        let mut line = String::new();
        if self.has_clock {
            line = format!(
                "[{}.{:09}] ",
                event.ts.div_euclid(1_000_000_000),
                event.ts.rem_euclid(1_000_000_000)
            );
        }
        line.push_str(event.name());
        line.push(':');
        let mut comma = "";
        if let Some(cpu) = event.cpu {
            write!(line, " {{ cpu_id = {cpu} }}").unwrap();
            comma = ",";
        }
        for scope in [Scope::EventContext, Scope::SpecificContext, Scope::Payload] {
            let mut fields = String::new();
            if event.render(scope, &mut fields) {
                let space = if fields.is_empty() { "" } else { " " };
                write!(line, "{comma} {{{space}{fields} }}").unwrap();
                comma = ",";
            }
        }
        self.lines.push((event.ts, line));
        ControlFlow::Continue(())
    }
}

fn our_lines(path: &Path) -> Vec<String> {
    let mut lines = Lines {
        lines: Vec::new(),
        has_clock: false,
    };
    CtfReader::open(path).unwrap().read(&mut lines).unwrap();
    lines.lines.sort();
    lines.lines.into_iter().map(|(_, line)| line).collect()
}

/// Sorted, because readers order events with equal times differently.
fn their_lines(program: &str, path: &Path) -> Option<Vec<String>> {
    let mut command = Command::new(program);
    let output = command
        .args(["--clock-seconds", "--no-delta"])
        .arg(path)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<(i64, String)> = text
        .lines()
        .map(|line| {
            let line = line.trim_end();
            let Some((time, rest)) = line
                .strip_prefix('[')
                .and_then(|rest| rest.split_once("] "))
            else {
                return (0, line.to_owned());
            };
            // `HOST NAME: { …` or `HOST:PROCESS:(PID) NAME: { …`, or the name alone.
            let head = rest.split(" {").next().unwrap();
            let rest = match head.trim_end_matches(':').split_once(' ') {
                Some((host, _)) => &rest[host.len() + 1..],
                None => rest,
            };
            (
                time.replace('.', "").parse().unwrap(),
                format!("[{time}] {rest}"),
            )
        })
        .collect();
    lines.sort();
    Some(lines.into_iter().map(|(_, line)| line).collect())
}

/// babeltrace2 2.0 prints the text of the previous event for an empty string (and starts another
/// field); babeltrace 1 does not, and is used if the two results differ.
fn check_fields(path: &Path) {
    let ours = our_lines(path);
    let theirs = their_lines("babeltrace2", path).expect("it is installed");
    let mut older = None;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours == theirs {
            continue;
        }
        assert!(
            ours.contains("= \"\""),
            "{}\nours   {ours}\ntheirs {theirs}",
            path.display()
        );
        let older = older.get_or_insert_with(|| {
            let lines = their_lines("babeltrace", path)?;
            Some(lines.into_iter().collect::<HashSet<_>>())
        });
        match older {
            Some(older) => assert!(older.contains(ours), "{}: {ours}", path.display()),
            None => skip(
                Need::Babeltrace,
                format_args!("babeltrace is not installed, {ours} not compared"),
            ),
        }
    }
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
}

#[test]
fn every_field_of_every_event_is_that_of_babeltrace2() {
    let (Some(data), Some(())) = (data(), babeltrace2()) else {
        return;
    };
    for name in [
        "arm-old-syscalls-3.10",
        "basic-kernel-4.4",
        "big-endian-3.14",
        "many-threads-4.4",
        "no-thread-6.2",
        "perfctx-6.2",
        "tidctx-only-6.2",
    ] {
        let unpacked: Unpacked = unpack(&data.join(format!("{name}.tar.xz"))).unwrap();
        check_fields(&unpacked.path().join(name));
    }
}

#[test]
fn odd_traces_are_read_as_babeltrace2_reads_them() {
    let Some(data) = data() else { return };
    let unpacked = unpack(&data.join("reader-cases.tar.xz")).unwrap();
    let root = unpacked.path().join("reader-cases");
    for (case, lines) in counts(&data.join("counts/reader-cases.tsv")) {
        let summary = decode_all(&root.join(&case)).unwrap();
        assert_eq!(
            summary.events_delivered, lines,
            "{case}: {:?}",
            summary.anomalies
        );
        assert_eq!(summary.events_skipped, 0, "{case}: {:?}", summary.anomalies);
        if babeltrace2().is_some() {
            check_fields(&root.join(&case));
        }
    }
}

/// The metadata is rewritten as CTF 2; the streams stay unchanged.
#[test]
fn the_version_of_the_metadata_makes_no_difference() {
    let Some(data) = data() else { return };
    for name in [
        "arm-old-syscalls-3.10",
        "basic-kernel-4.4",
        "big-endian-3.14",
        "perfctx-6.2",
    ] {
        let unpacked = unpack(&data.join(format!("{name}.tar.xz"))).unwrap();
        let path = unpacked.path().join(name);
        let in_version_1 = our_lines(&path);
        let metadata = path.join("metadata");
        let parsed = parse_metadata(&std::fs::read(&metadata).unwrap()).unwrap();
        std::fs::write(&metadata, ctf2::to_ctf2(&parsed.trace)).unwrap();
        let in_version_2 = our_lines(&path);
        for (first, second) in in_version_1.iter().zip(&in_version_2) {
            assert_eq!(first, second, "{name}");
        }
        assert_eq!(in_version_1.len(), in_version_2.len(), "{name}");
    }
}
