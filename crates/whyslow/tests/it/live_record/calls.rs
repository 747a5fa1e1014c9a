//! System calls, against strace.

use std::collections::BTreeMap;
use std::process::Command;

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// Counts of operations that no other process on the machine makes.
const SCRIPT: &str = "\
    exec </dev/null
    i=0; while [ $i -lt 53 ]; do cat /etc/hostname >/dev/null; i=$((i+1)); done
    dd if=/dev/zero of=written bs=4096 count=101 conv=fsync 2>/dev/null
    mkdir kept; i=0; while [ $i -lt 211 ]; do : >kept/$i; i=$((i+1)); done
    ls -l kept >/dev/null; rm -r kept
    mv written renamed; rm renamed; cat /nonexistent 2>/dev/null; true";

/// Count and errors by name.
type Counts = BTreeMap<String, (i64, i64)>;

/// What strace counts, if it is installed.
fn of_strace(place: &Place) -> Option<Counts> {
    let output = Command::new("strace")
        .args(["-f", "-c", "-o", "strace.txt", "/bin/sh", "-c", SCRIPT])
        .current_dir(place.path())
        .output();
    if !output.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(place.join("strace.txt")).expect("it wrote it");
    let counts = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last().filter(|name| **name != "total")?;
        let is_row = words.len() >= 5 && words[0].starts_with(|c: char| c.is_ascii_digit());
        let errors = if words.len() == 6 { words[4] } else { "0" };
        let count = words.get(3).filter(|_| is_row)?;
        Some((name.to_owned(), (count.parse().ok()?, errors.parse().ok()?)))
    });
    Some(counts.collect())
}

#[test]
fn calls_and_errors_equal_those_of_strace() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(mut theirs) = of_strace(&place) else {
        return skip(Need::Tools, "strace is not installed, or may not trace");
    };
    record(&place, &[], SCRIPT);
    let mut ours: Counts = rows(
        &place,
        &["syscalls", "stats", "rec.wsl", "--by", "name", "--waits"],
    )
    .iter()
    .map(|row| {
        let number = |name: &str| row[name].as_i64().expect("a number");
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, (number("count"), number("errors")))
    })
    .collect();
    // The recorder starts the command, which adds system calls; strace does not count exits.
    for name in ["execve", "exit_group", "prctl"] {
        let counts = (ours.remove(name), theirs.remove(name));
        assert!(counts.0 >= counts.1, "{name}: {counts:?}");
    }
    let extra = |counts: &Counts| counts.get("rt_sigaction").copied().unwrap_or_default();
    let more = extra(&ours).0 - extra(&theirs).0;
    assert!((0..=4).contains(&more), "{more}");
    for counts in [&mut ours, &mut theirs] {
        counts.remove("rt_sigaction");
    }
    let names = ours.keys().chain(theirs.keys());
    let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
    let different: Vec<_> = names
        .filter(differs)
        .map(|name| (name, ours.get(name), theirs.get(name)))
        .collect();
    assert!(different.is_empty(), "call, ours, of strace: {different:?}");
    assert!(ours.values().map(|(count, _)| count).sum::<i64>() > 5000);
}

#[test]
fn short_lived_files_have_paths_and_bytes() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &[], SCRIPT);
    let files = rows(&place, &["files", "top", "rec.wsl"]);
    // The shell opens it by a relative name.
    let path = place
        .path()
        .canonicalize()
        .expect("it is there")
        .join("written");
    let file = files
        .iter()
        .find(|row| row["file"].as_str() == path.to_str())
        .unwrap_or_else(|| panic!("{path:?} among {files:?}"));
    assert_eq!(file["write_bytes"].as_i64(), Some(101 * 4096), "{file}");
    assert_eq!(file["writes"].as_i64(), Some(101), "{file}");
}
