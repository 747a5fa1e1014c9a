//! Snapshots of one text answer of each view over a bundled recording, so that a rewording of heads,
//! caveats and hints is one difference to read:
//! `INSTA_UPDATE=always cargo test -p whyslow view_answers` accepts it.
//!
//! The recording is that of the shop in `fixtures/web-servers`; kinds of program profiles are
//! answered over `fixtures/kafka`, reported counters over `fixtures/former-versions`.

use std::fmt::Write as _;
use std::path::Path;

use whyslow_analysis::{TOPICS, Topic, Verb, View};

use crate::common::Place;

/// Lines of an answer that are kept; columns are cut.
const LINES: usize = 14;
const CHARACTERS: usize = 150;

/// Kinds of a snapshot.
const GROUPS: [(&str, &[&str]); 4] = [
    ("storage", &["io", "block", "files", "mem", "fs", "work"]),
    (
        "threads",
        &[
            "sched", "threads", "states", "cpu", "irq", "syscalls", "use",
        ],
    ),
    (
        "network",
        &["net", "tcp", "dns", "nameservers", "requests", "signals"],
    ),
    (
        "programs",
        &[
            "functions",
            "usdt",
            "locks",
            "stacks",
            "gaps",
            "runtime",
            "counters",
        ],
    ),
];

/// The recordings of the place.
const SHOP: &str = "shop.wsl.tar.zst";
const KAFKA: &str = "kafka.wsl.tar.zst";
const FORMER: &str = "former.wsl.tar.zst";

fn recordings() -> Place {
    let place = Place::new();
    for (name, folder, file) in [
        (SHOP, "web-servers/shop", "recording.wsl.tar.zst"),
        (KAFKA, "kafka", "incident.wsl.tar.zst"),
        (FORMER, "former-versions", "recording-2.wsl.tar.zst"),
    ] {
        let fixture = whyslow_testkit::fixture(folder).join(file);
        std::fs::copy(fixture, place.join(name)).expect("a fixture");
    }
    place
}

fn recording_of(kind: &str) -> &'static str {
    match kind {
        "locks" | "stacks" | "gaps" | "runtime" => KAFKA,
        "counters" => FORMER,
        _ => SHOP,
    }
}

/// Arguments without which a view is an error.
fn arguments(kind: &str, verb: Verb) -> &'static [&'static str] {
    match (kind, verb.name()) {
        (_, "open" | "dump") => &["--at", "+5s"],
        (_, "differs") => &["--vs", "+1s..+2s", "-w", "+3s..+4s"],
        ("requests", "threads") => &["-w", "request:17"],
        ("threads", "flame") => &["--format", "collapsed"],
        _ => &[],
    }
}

/// The answer as printed, or the error; without what is beyond the limits.
fn answer(place: &Place, topic: &Topic, view: &View) -> String {
    let (kind, verb) = (topic.kind.name(), view.verb);
    let mut command = place.whyslow();
    command.args([kind, verb.name(), recording_of(kind)]);
    command.args(arguments(kind, verb));
    let output = command.output().expect("it runs");
    let mut out = String::new();
    let printed = String::from_utf8_lossy(&output.stdout);
    let reported = String::from_utf8_lossy(&output.stderr);
    add(&mut out, &printed);
    if !reported.is_empty() {
        out.push_str("-- standard error\n");
        add(&mut out, &reported);
    }
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        let _ = writeln!(out, "-- exit status {code}");
    }
    out
}

/// Whether a word contains a UUID, as names that belong to the recorded machine do.
fn has_uuid(word: &str) -> bool {
    let parts = word.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    parts
        .map(str::as_bytes)
        .any(|part| part.len() >= 36 && [8, 13, 18, 23].iter().all(|place| part[*place] == b'-'))
}

/// Without names that show how and where the fixture was made.
fn neutral(line: &str) -> String {
    let words = line.split(' ').map(|word| match word {
        word if has_uuid(word) || word.split('/').nth(1) == Some("root") => "NAME",
        word => word,
    });
    let words: Vec<&str> = words.collect();
    words.join(" ")
}

fn add(out: &mut String, text: &str) {
    for line in text.lines().take(LINES) {
        let cut: String = neutral(line).chars().take(CHARACTERS).collect();
        let _ = writeln!(out, "{}", cut.trim_end());
    }
    let more = text.lines().count().saturating_sub(LINES);
    if more > 0 {
        let _ = writeln!(out, "… {more} more lines");
    }
}

#[test]
fn one_answer_of_each_view() {
    let place = recordings();
    for (group, kinds) in GROUPS {
        let mut out = String::new();
        let is_of_group = |topic: &&&Topic| kinds.contains(&topic.kind.name());
        for topic in TOPICS.iter().filter(is_of_group) {
            for view in topic.views {
                let (kind, verb) = (topic.kind.name(), view.verb.name());
                let words = arguments(kind, view.verb).join(" ");
                let shown = format!("whyslow {kind} {verb} {} {words}", recording_of(kind));
                let _ = writeln!(out, "======== {}", shown.trim_end());
                out.push_str(&answer(&place, topic, view));
                out.push('\n');
            }
        }
        insta::assert_snapshot!(format!("answers_{group}"), out);
    }
}

#[test]
fn every_kind_is_in_one_group() {
    let in_groups = |kind: &str| {
        let groups = GROUPS.iter();
        groups.filter(|(_, kinds)| kinds.contains(&kind)).count()
    };
    for topic in TOPICS {
        assert_eq!(in_groups(topic.kind.name()), 1, "{}", topic.kind.name());
    }
}

/// A recording of the version before names changed is answered like one of today.
#[test]
fn a_recording_of_a_former_version_is_answered() {
    let place = recordings();
    assert!(Path::new(&place.join(FORMER)).exists());
    let counters = place.stdout(&["counters", "log", FORMER, "--csv"]);
    let head = counters.lines().next().expect("a head");
    assert!(
        head.contains("reported_by") && !head.contains("told_by"),
        "{head}"
    );
    assert!(counters.contains("iostat"), "{counters}");
    let locks = place.stdout(&["locks", "log", FORMER, "--csv", "--cols", "+reported_by"]);
    assert!(locks.contains("dump"), "{locks}");
    let info = place.stdout(&["info", FORMER]);
    assert!(info.contains("SNOOP_STATUS_LINE"), "{info}");
    assert!(info.contains("status messages of a tool"), "{info}");
}
