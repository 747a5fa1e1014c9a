//! Tracepoints as text give the same results as the binary files that they were printed from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture(name)
}

fn imported(name: &str) -> InMemory {
    let imported = import_in_memory(&[fixture(name)]).expect("it can be imported");
    let bad: Vec<_> = imported
        .anomalies
        .iter()
        .filter(|one| one.name.contains("BAD") || one.name.contains("CUT"))
        .collect();
    assert!(bad.is_empty(), "{name}: {bad:?}");
    imported
}

/// Start relative to the first one, duration, name, thread, result.
type Call = (i64, Option<i64>, String, Option<i32>, Option<i64>);

fn calls(imported: &InMemory) -> Vec<Call> {
    let rows = &imported.rows.syscall;
    let begin = rows.iter().map(|row| row.ts).min().unwrap_or(0);
    let mut calls: Vec<_> = rows
        .iter()
        .map(|row| {
            let name = imported.symbols.get(row.name).to_owned();
            (row.ts - begin, row.dur, name, row.tid, row.ret)
        })
        .collect();
    calls.sort();
    calls
}

#[test]
fn system_calls_are_those_of_the_file_that_was_printed() {
    let (text, file) = (
        imported("ftrace/named.script.txt"),
        imported("perf/named.data"),
    );
    let (text, file) = (calls(&text), calls(&file));
    assert!(text.len() > 20, "{}", text.len());
    assert_eq!(text, file);
}

#[test]
fn requests_are_those_of_the_file_that_was_printed() {
    let requests = |imported: &InMemory| {
        let rows = &imported.rows.block_io;
        let row = |row: &whyslow_model::tables::BlockIoRow| {
            let op = imported.symbols.get(row.op).to_owned();
            (op, row.sector, row.bytes, row.dur)
        };
        let mut requests: Vec<_> = rows.iter().map(row).collect();
        requests.sort();
        requests
    };
    let text = requests(&imported("ftrace/blocks.script.txt"));
    assert!(!text.is_empty());
    assert_eq!(text, requests(&imported("perf/blocks.data")));
}

#[test]
fn switches_and_their_stacks_are_those_of_the_file_that_was_printed() {
    let (text, file) = (
        imported("ftrace/switches.script.txt"),
        imported("perf/switches.data"),
    );
    let states = |imported: &InMemory| {
        let mut states: BTreeMap<(String, Option<i32>), i64> = BTreeMap::new();
        for row in &imported.rows.thread_state {
            let state = imported.symbols.get(row.state).to_owned();
            // The file also reports the start and end of threads.
            if state != "unknown" && row.tid != Some(0) {
                *states.entry((state, row.tid)).or_default() += row.dur.unwrap_or(0);
            }
        }
        states.retain(|_, dur| *dur > 0);
        assert!(states.len() > 5, "{states:?}");
        states
    };
    assert_eq!(states(&text), states(&file));
    let stacks = |imported: &InMemory| {
        let rows = imported.rows.stack_sample.iter();
        let row = |row: &whyslow_model::tables::StackSampleRow| {
            let kind = imported.symbols.get(row.kind).to_owned();
            let state = row
                .state
                .map(|state| imported.symbols.get(state).to_owned());
            let depth = row.callsite_id.and_then(|id| {
                let found = imported.rows.callsite.iter().find(|row| row.id == id);
                found.map(|row| row.depth)
            });
            (kind, state, row.tid, row.dur, depth)
        };
        let mut stacks: Vec<_> = rows.map(row).collect();
        stacks.sort();
        stacks
    };
    let of_text = stacks(&text);
    assert!(of_text.len() > 10, "{of_text:?}");
    assert_eq!(of_text, stacks(&file));
}

#[test]
fn what_tracefs_prints_is_read() {
    let imported = imported("ftrace/tracefs.txt");
    let rows = &imported.rows;
    assert!(rows.syscall.len() > 100, "{}", rows.syscall.len());
    assert!(rows.sched_slice.len() > 10, "{}", rows.sched_slice.len());
    let comms: Vec<&str> = rows
        .thread_comm
        .iter()
        .map(|row| imported.symbols.get(row.comm))
        .collect();
    assert!(comms.contains(&"dd"), "{comms:?}");
}

#[test]
fn what_the_tool_lost_is_a_gap_in_the_recording() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.txt");
    let trace = "CPU:1 [LOST 45 EVENTS]\n\
                 dd-7 [001] 1.000001: x: y=1\n\
                 CPU:1 [9860 EVENTS DROPPED]\n\
                 dd-7 [001] 1.000005: x: y=1\n";
    std::fs::write(&path, trace).expect("a temporary folder takes it");
    let imported = import_in_memory(&[path]).expect("it can be imported");
    let lost = imported.rows.lost_events.iter();
    let lost: Vec<_> = lost.map(|row| (row.cpu, row.dur, row.count)).collect();
    let expected = [
        (Some(1), Some(0), Some(45)),
        (Some(1), Some(4_000), Some(9860)),
    ];
    assert_eq!(lost, expected);
}
