//! The metadata of every development trace: read completely, compared with the result of
//! babeltrace2, and equal when written as CTF 2.

// A test prints to stdout what it compared.
#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::Command;

use whyslow_ingest::importers::ctf::class::{
    ClockClass, FieldClass, IntegerClass, Role, TraceClass, Version,
};
use whyslow_ingest::importers::ctf::metadata::{ParsedMetadata, parse_metadata};
use whyslow_testkit::{Need, skip};

use crate::support::{ctf2, show, traces};

/// All metadata files: path and content.
fn metadata_files() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for archive in traces::archives() {
        for entry in traces::open(&archive)
            .entries()
            .expect("the archive is tar")
        {
            let mut entry = entry.expect("the archive is whole");
            let path = entry.path().expect("paths are sound").into_owned();
            if path.file_name().is_some_and(|name| name == "metadata") {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).expect("the archive is whole");
                found.push((path.to_string_lossy().into_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}

fn parse(name: &str, bytes: &[u8]) -> ParsedMetadata {
    parse_metadata(bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_development_trace_is_read_whole() {
    for (name, bytes) in metadata_files() {
        let parsed = parse(&name, &bytes);
        // These contain unknown attributes on purpose.
        let odd = ["/warnings/", "/succeed3/", "/succeed4/"];
        let odd = odd.iter().any(|folder| name.contains(folder));
        let stats: BTreeSet<&str> = parsed.anomalies.iter().map(|a| a.stat.name).collect();
        let expected: BTreeSet<&str> = odd.then_some("METADATA_UNKNOWN").into_iter().collect();
        assert_eq!(stats, expected, "{name}: {:?}", parsed.anomalies);
        assert!(!parsed.trace.streams.is_empty(), "{name}");
    }
}

#[test]
fn ctf_2_says_the_same_as_ctf_1_8() {
    for (name, bytes) in metadata_files() {
        let mut expected = parse(&name, &bytes).trace;
        let written = ctf2::to_ctf2(&expected);
        let again = parse(&name, &written);
        assert!(again.anomalies.is_empty(), "{name}: {:?}", again.anomalies);
        expected.version = Version::V2;
        expected.clocks.iter_mut().for_each(move_cycles_to_seconds);
        for_each_scope(&mut expected, &mut forget_what_ctf_2_cannot_say);
        let mut found = again.trace;
        // A trace without integers outside of events does not show it.
        found.byte_order = expected.byte_order;
        assert_same(&name, &found, &expected);
    }
}

/// Shows the first line that differs; both texts are megabytes long.
fn assert_same(name: &str, found: &TraceClass, expected: &TraceClass) {
    if found == expected {
        return;
    }
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let mut lines = found.lines().zip(expected.lines()).enumerate();
    let difference = lines.find(|(_, (one, other))| one != other);
    panic!("{name}: found and expected differ: {difference:?}");
}

#[test]
fn cut_metadata_is_used_up_to_the_cut() {
    for (name, bytes) in metadata_files() {
        let whole = parse(&name, &bytes).trace;
        let step = (bytes.len() / 60).max(7);
        for end in (0..bytes.len()).step_by(step) {
            check_cut(&name, &whole, &bytes[..end]);
        }
        let written = ctf2::to_ctf2(&whole);
        for end in (0..written.len()).step_by((written.len() / 60).max(7)) {
            check_cut(&name, &whole, &written[..end]);
        }
    }
}

/// Everything that a truncated text declares, the complete one declares, too, in the same order.
fn check_cut(name: &str, whole: &TraceClass, cut: &[u8]) {
    let Ok(parsed) = parse_metadata(cut) else {
        return;
    };
    for (stream, all) in parsed.trace.streams.iter().zip(&whole.streams) {
        assert_eq!(stream.id, all.id, "{name}");
        let names = stream.events.iter().map(|event| (event.id, &event.name));
        let all = all.events.iter().map(|event| (event.id, &event.name));
        for (one, other) in names.zip(all) {
            assert_eq!(one, other, "{name} cut after {} bytes", cut.len());
        }
    }
}

#[test]
fn classes_are_those_that_babeltrace2_sees() {
    const SCRIPT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/support/event_classes.py"
    );
    // The Python that the distribution's module of babeltrace2 is installed for.
    const PYTHON: &str = "/usr/bin/python3";
    let probe = Command::new(PYTHON).args(["-c", "import bt2"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip(
            Need::Babeltrace,
            "the Python module bt2 of babeltrace2 is not installed",
        );
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for archive in traces::archives() {
        let unpacked = traces::open(&archive).unpack(folder.path());
        unpacked.expect("the archive can be unpacked");
    }
    let mut compared = 0;
    for (name, bytes) in metadata_files() {
        let trace = folder.path().join(&name);
        let directory = trace.parent().expect("metadata is in a folder");
        // One process each: babeltrace2 2.0 fails an assertion on one of them.
        let output = Command::new(PYTHON).arg(SCRIPT).arg(directory).output();
        let output = output.expect("Python was there before");
        let theirs = String::from_utf8(output.stdout).expect("names are Unicode");
        if theirs.is_empty() {
            continue;
        }
        let prefix = format!("{}\t", directory.display());
        let theirs: BTreeSet<&str> = theirs
            .lines()
            .map(|line| line.strip_prefix(&prefix).unwrap_or(line).trim_end())
            .collect();
        let ours = show::trace(&parse(&name, &bytes).trace);
        let ours: BTreeSet<&str> = ours.iter().map(|line| line.trim_end()).collect();
        let only_ours: Vec<_> = ours.difference(&theirs).take(5).collect();
        let only_theirs: Vec<_> = theirs.difference(&ours).take(5).collect();
        assert!(
            only_ours.is_empty() && only_theirs.is_empty(),
            "{name}: only ours {only_ours:#?}, only babeltrace2's {only_theirs:#?}"
        );
        compared += ours.len();
    }
    println!("{compared} scopes and events are the same");
}

fn move_cycles_to_seconds(clock: &mut ClockClass) {
    let frequency = clock.frequency as i64;
    clock.offset_seconds += clock.offset_cycles.div_euclid(frequency);
    clock.offset_cycles = clock.offset_cycles.rem_euclid(frequency);
}

fn for_each_scope(trace: &mut TraceClass, change: &mut impl FnMut(&mut IntegerClass)) {
    let streams = trace.streams.iter_mut().flat_map(|stream| {
        let events = stream.events.iter_mut();
        let in_events = events.flat_map(|event| [&mut event.context, &mut event.payload]);
        [
            &mut stream.packet_context,
            &mut stream.event_header,
            &mut stream.event_context,
        ]
        .into_iter()
        .chain(in_events)
    });
    for scope in streams.chain([&mut trace.packet_header]).flatten() {
        for member in &mut scope.members {
            for_each_integer(&mut member.class, change);
        }
    }
}

fn for_each_integer(class: &mut FieldClass, change: &mut impl FnMut(&mut IntegerClass)) {
    match class {
        FieldClass::Integer(integer) => change(integer),
        FieldClass::Struct(class) => {
            for member in &mut class.members {
                for_each_integer(&mut member.class, change);
            }
        }
        FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => {
            for_each_integer(element, change);
        }
        FieldClass::Variant { options, .. } => {
            for option in options {
                for_each_integer(&mut option.class, change);
            }
        }
        _ => {}
    }
}

fn forget_what_ctf_2_cannot_say(integer: &mut IntegerClass) {
    let is_time = |role: &Role| matches!(role, Role::Timestamp | Role::PacketEndTimestamp);
    if !integer.roles.iter().any(is_time) {
        integer.clock = None;
    }
    integer.is_text = false;
}
