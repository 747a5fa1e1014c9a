//! `record --stacks wall:…`: activity of every thread of a program whose threads do one thing each,
//! against scheduler events of the same time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::compiled::{compiled, recorded};
use super::{can_record, floods_alone, no_floods, rows};
use crate::common::Place;

const MS: i64 = 1_000_000;

/// The program, built as distributions do: without frame pointers.
fn program(place: &Place, name: &str) -> Option<PathBuf> {
    let options = ["-O2", "-fno-optimize-sibling-calls", "-pthread"];
    compiled(place, name, "wall.c", &options)
}

fn text<'r>(row: &'r Value, column: &str) -> &'r str {
    row[column].as_str().unwrap_or_default()
}

fn int(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_default()
}

/// Names of threads, with the current call of each, its state and its function.
const WAITS: [(&str, &str, &str); 4] = [
    ("w-sleeps", "clock_nanosleep", "sleeps"),
    ("w-polls", "poll", "polls"),
    ("w-reads", "read", "reads"),
    ("w-waits", "futex", "waits"),
];

/// Wall rows of a thread, without the time before it arrived there.
fn settled(place: &Place, name: &str) -> Vec<Value> {
    let log = ["stacks", "log", "rec.wsl", "--op", "wall", "--comm", name];
    let mut found = rows(place, &log);
    let begin = found.iter().map(|row| int(row, "ts_ns")).min();
    let begin = begin.unwrap_or_default() + 200_000_000;
    found.retain(|row| int(row, "ts_ns") >= begin);
    found
}

/// Functions of the stacks of a thread, innermost first.
fn functions(place: &Place, name: &str) -> Vec<String> {
    let stacks = ["stacks", "rec.wsl", "--op", "wall", "--comm", name];
    let found = rows(place, &stacks);
    found
        .iter()
        .map(|row| text(row, "function").to_owned())
        .collect()
}

fn check(options: &[&str]) {
    if !can_record() {
        return;
    }
    let _quiet = no_floods();
    let place = Place::new();
    let Some(program) = program(&place, "walls") else {
        return;
    };
    let options = [&["--stacks", "wall:10ms"][..], options].concat();
    // A row covers 2 s at most, and the first one is skipped.
    recorded(&place, &options, &program, &["5"]);
    for (name, call, function) in WAITS {
        let found = settled(&place, name);
        let time = |rows: &mut dyn Iterator<Item = &Value>| -> i64 {
            rows.map(|row| int(row, "dur_ns")).sum()
        };
        let all = time(&mut found.iter());
        assert!(all > 2_000_000_000, "{name}: {found:?}");
        let is_right =
            |row: &&Value| text(row, "state") == "sleeping" && text(row, "syscall") == call;
        let right = time(&mut found.iter().filter(is_right));
        assert!(
            right * 100 >= all * 99,
            "{name}: {right} of {all}: {found:?}"
        );
        // Idle threads do not cost a row per sample.
        let credits: i64 = found.iter().map(|row| int(row, "credits")).sum();
        assert!(
            found.len() as i64 * 10 < credits,
            "{name}: {credits} {found:?}"
        );
        let stack = functions(&place, name);
        let has = |wanted: &str| stack.iter().any(|function| function == wanted);
        assert!(
            has(function) && has("outer") && has("thread"),
            "{name}: {stack:?} {found:?}"
        );
    }
    let spins = settled(&place, "w-spins");
    let may_run = |row: &&Value| matches!(text(row, "state"), "running" | "runnable");
    let right = spins.iter().filter(may_run).count();
    assert!(right * 100 >= spins.len() * 99 && right > 50, "{spins:?}");
    let stack = functions(&place, "w-spins");
    assert!(
        stack.iter().any(|function| function == "spins"),
        "{stack:?}"
    );
}

#[test]
fn each_thread_is_where_it_says() {
    check(&[]);
}

#[test]
fn each_thread_is_where_it_says_by_files_of_proc() {
    check(&["--refuse", "iterator"]);
}

/// The state of a thread for nearly all of an interval, by scheduler events: `None` if there were
/// several states, or if events contradict each other.
fn most(states: &[Value], (begin, end): (i64, i64)) -> Option<String> {
    let mut times: BTreeMap<&str, i64> = BTreeMap::new();
    for state in states {
        let (ts, dur) = (int(state, "ts_ns"), int(state, "dur_ns"));
        let shared = end.min(ts + dur) - begin.max(ts);
        *times.entry(text(state, "state")).or_default() += shared.max(0);
    }
    let (state, time) = times.into_iter().max_by_key(|(_, time)| *time)?;
    (time * 10 >= (end - begin) * 8 && state != "unknown").then(|| state.to_owned())
}

/// Whether another thread had the CPU at the moment of a sample: for longer than the sampler needs.
fn was_preempted(states: &[Value], at: i64) -> bool {
    states.iter().any(|state| {
        let (ts, dur) = (int(state, "ts_ns"), int(state, "dur_ns"));
        let is_there = ts <= at + MS && at - MS <= ts + dur;
        text(state, "state") == "runnable" && dur >= MS && is_there
    })
}

/// States of wall rows against scheduler segments. The sampler itself preempts threads, so the
/// interval since the previous sample is compared.
#[test]
fn states_are_those_that_the_scheduler_tells() {
    if !can_record() {
        return;
    }
    // Another preemption in the moment of a sample is a true state, but not that of its interval.
    let _alone = floods_alone();
    let place = Place::new();
    let Some(program) = program(&place, "walls") else {
        return;
    };
    recorded(
        &place,
        &["--stacks", "wall:10ms", "--what", "sched"],
        &program,
        &["3"],
    );
    let (mut same, mut all, mut others) = (0, 0, Vec::new());
    for name in ["w-sleeps", "w-polls", "w-reads", "w-waits", "w-spins"] {
        let log = ["states", "log", "rec.wsl", "--comm", name];
        let states = rows(&place, &log);
        for row in settled(&place, name) {
            let span = (int(&row, "ts_ns"), int(&row, "ts_end_ns"));
            let Some(state) = most(&states, span) else {
                continue;
            };
            all += 1;
            let sampled = text(&row, "state");
            if state == sampled
                || sampled == "runnable"
                    && (was_preempted(&states, span.0) || was_preempted(&states, span.1))
            {
                same += 1;
            } else {
                others.push(format!("{name}: {state} but {row}"));
            }
        }
    }
    assert!(all > 100, "{all}");
    assert!(same * 100 >= all * 99, "{same} of {all}: {others:#?}");
}
