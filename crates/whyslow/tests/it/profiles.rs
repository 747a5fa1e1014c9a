//! Queries on wall-clock profiles of a program that logs which thread waited for which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::held::truth;
use crate::common::{Place, recorded};

const MS: i64 = 1_000_000;

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("jfr").join(name)
}

/// A stack of a dump: its threads, its functions, what it waits for.
#[derive(Debug, Default)]
struct Stack {
    names: Vec<String>,
    functions: Vec<String>,
    waits_for: Vec<String>,
}

fn dump(place: &Place, recording: &str, at: i64) -> Vec<Stack> {
    let at = format!("{at}ns");
    let args = ["threads", "dump", recording, "--at", &at, "--json"];
    let answer: Value = serde_json::from_str(&place.stdout(&args)).expect("one JSON document");
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    let mut stacks: Vec<Stack> = Vec::new();
    for row in rows {
        if !row["threads"].is_null() {
            stacks.push(Stack {
                names: texts(&row["names"]),
                waits_for: texts(&row["waits_for"]),
                functions: Vec::new(),
            });
        }
        let stack = stacks.last_mut().expect("a first row of it");
        stack
            .functions
            .push(row["function"].as_str().expect("a name").to_owned());
    }
    stacks
}

#[test]
fn who_waits_for_a_lock_is_seen_waiting_in_a_dump() {
    let place = recorded();
    for name in ["each", "batches", "chunks"] {
        let recording = fixture(&format!("{name}.jfr"));
        let recording = recording.to_str().expect("a path");
        let held = truth(name);
        let waits = held
            .iter()
            .filter(|one| one.lock == "ledger" && one.entered - one.requested > 80 * MS);
        let mut checked = 0;
        for wait in waits.step_by(3).take(6) {
            let at = i64::midpoint(wait.requested, wait.entered);
            let stacks = dump(place, recording, at);
            let of = |thread: &str| {
                let is_of = |name: &String| name.starts_with(&format!("{thread} "));
                stacks.iter().find(|stack| stack.names.iter().any(is_of))
            };
            let stack =
                of(&wait.thread).unwrap_or_else(|| panic!("{name}: {} is not in it", wait.thread));
            let first = stack
                .functions
                .iter()
                .find(|function| function.contains("LockProgram"));
            assert!(
                first.is_some_and(|first| first.contains("$Ledger.")),
                "{name} {wait:?}: {stack:?}"
            );
            assert!(
                stack
                    .waits_for
                    .iter()
                    .any(|what| what.contains("LockProgram$Ledger")),
                "{stack:?}"
            );
            // The holder at that time waits for no other thread.
            let holder = held.iter().find(|one| {
                one.lock == "ledger"
                    && one.entered <= at
                    && at < one.left
                    && one.thread != wait.thread
            });
            if let Some(stack) = holder.and_then(|holder| of(&holder.thread)) {
                assert!(
                    stack.waits_for.iter().all(|what| !what.contains("Ledger")),
                    "{name}: {stack:?}"
                );
            }
            checked += 1;
        }
        assert!(checked >= 3, "{name}: {checked}");
    }
}

#[test]
fn the_longest_waits_name_who_held_the_lock() {
    let place = recorded();
    for name in ["each", "batches", "chunks", "both", "jdk"] {
        let recording = fixture(&format!("{name}.jfr"));
        let recording = recording.to_str().expect("a path");
        let held = truth(name);
        let args = [
            "locks", "top", recording, "-n", "5", "--op", "monitor", "--json",
        ];
        let answer: Value = serde_json::from_str(&place.stdout(&args)).expect("one JSON document");
        let rows = answer["tables"][0]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 5, "{name}");
        for row in rows {
            let (begin, end) = (row["ts_ns"].as_i64(), row["ts_end_ns"].as_i64());
            let (begin, end) = (begin.expect("a time"), end.expect("a time"));
            let mut had: BTreeMap<&str, i64> = BTreeMap::new();
            for one in held.iter().filter(|one| one.lock == "ledger") {
                let overlap = one.left.min(end) - one.entered.max(begin);
                if overlap > 0 {
                    *had.entry(&one.thread).or_default() += overlap;
                }
            }
            let most = had.values().max().copied().unwrap_or(0);
            let holder = row["holder_comm"].as_str().expect("a holder");
            let of_holder = had.get(holder).copied().unwrap_or(0);
            if row["confidence"] != "low" {
                assert!(of_holder >= most - 20 * MS, "{name}: {row} {had:?}");
            }
            assert_eq!(row["object"], "LockProgram$Ledger", "{name}: {row}");
        }
    }
}

#[test]
fn an_explanation_names_who_held_the_lock_and_nothing_of_the_kernel() {
    let place = recorded();
    for name in ["each", "batches", "chunks", "both", "jdk"] {
        let recording = fixture(&format!("{name}.jfr"));
        let recording = recording.to_str().expect("a path");
        let held = truth(name);
        let report: Value = serde_json::from_str(&place.stdout(&["explain", recording, "--json"]))
            .expect("one JSON document");
        let findings = report["findings"].as_array().expect("findings");
        let mut found = 0;
        for finding in findings
            .iter()
            .filter(|finding| finding["target"]["kind"] == "lock")
        {
            let part = &finding["parts"][0];
            if finding["confidence"] != "medium" {
                continue;
            }
            found += 1;
            let target = &finding["target"];
            let (begin, end) = (target["begin_ns"].as_i64(), target["end_ns"].as_i64());
            let (begin, end) = (begin.expect("a time"), end.expect("a time"));
            let of_culprit = held.iter().filter(|one| {
                part["culprit"]["name"] == one.thread.as_str()
                    && target["what"].as_str().is_some_and(|what| {
                        what.to_lowercase().contains(&format!("${}.", one.lock))
                    })
            });
            let had: i64 = of_culprit
                .map(|one| (one.left.min(end) - one.entered.max(begin)).max(0))
                .sum();
            let said = part["dur_ns"].as_i64().expect("a length");
            assert!((had - said).abs() <= 30 * MS, "{name}: {had} {finding:#}");
            assert_eq!(part["grade"], "B", "{name}");
        }
        assert!(found > 0, "{name}: {report:#}");
        let text = report.to_string();
        assert!(
            !text.contains("lock_kernel") && !text.contains("lock_inode"),
            "{name}"
        );
    }
}

#[test]
fn each_thread_is_in_a_dump_once() {
    let recording = fixture("batches.jfr");
    let begin = truth("batches")[0].requested;
    for after in [300, 900, 1500, 2100] {
        let stacks = dump(
            recorded(),
            recording.to_str().expect("a path"),
            begin + after * MS,
        );
        let names: Vec<&String> = stacks.iter().flat_map(|stack| &stack.names).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len());
        assert!(
            names
                .iter()
                .filter(|name| name.starts_with("request-handler-"))
                .count()
                == 8,
            "{names:?}"
        );
    }
}

#[test]
fn where_there_are_no_gaps_it_is_said_why() {
    let place = recorded();
    let query = |query: &[&str], name: &str| {
        let recording = fixture(name);
        let recording = recording.to_str().expect("a path");
        place.stdout(&[query, &[recording]].concat())
    };
    let none = query(&["threads", "gaps"], "each.jfr");
    assert!(
        none.contains(
            "cannot tell whether sampling gaps were recorded: the source `jfr` does not state it"
        ),
        "{none}"
    );
    let info = query(&["info"], "jdk.jfr");
    assert!(info.contains("GAPS_NOT_LOOKED_FOR"), "{info}");
}

/// Nanoseconds by thread, of stacks that contain a function.
fn collapsed(name: &str, weight: &str) -> BTreeMap<String, i64> {
    let recording = fixture(&format!("{name}.jfr"));
    let recording = recording.to_str().expect("a path");
    let text = recorded().stdout(&["export", "collapsed", recording, "--weight", weight]);
    let mut times = BTreeMap::new();
    for line in text.lines() {
        let (stack, time) = line.rsplit_once(' ').expect("a time");
        let (thread, _) = stack.split_once(';').expect("a stack");
        let time: i64 = time.parse().expect("a number");
        *times.entry(thread.to_owned()).or_default() += time;
    }
    times
}

#[test]
fn samples_weigh_what_their_sampler_counted_and_time_what_there_was() {
    let counts = fs::read_to_string(fixture("each.counts")).expect("counts");
    let samples = counts
        .lines()
        .find_map(|line| line.strip_prefix("jdk.ExecutionSample "));
    let samples: i64 = samples.expect("a count").parse().expect("a number");
    let counted: i64 = collapsed("each", "samples").values().sum();
    assert_eq!(counted, samples * 10 * MS);
    for name in ["each", "batches", "chunks"] {
        let held = truth(name);
        let mut handlers = 0;
        for (thread, time) in collapsed(name, "time") {
            let Some((thread, _)) = thread
                .split_once(' ')
                .filter(|(of, _)| of.starts_with("request-handler-"))
            else {
                continue;
            };
            let own = || held.iter().filter(|one| one.thread == thread);
            let begin = own().map(|one| one.requested).min().expect("some");
            let end = own().map(|one| one.left).max().expect("some");
            // It may sleep several times before and after the logged section.
            let more = time - (end - begin);
            assert!(
                (-20 * MS..250 * MS).contains(&more),
                "{name}: {thread} has {time} of {}",
                end - begin
            );
            handlers += 1;
        }
        assert_eq!(handlers, 8, "{name}");
    }
}
