//! Operations of the recorder itself: in sums, but not among the longest ones.

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Symbols;
use whyslow_model::tables::{BlockIoRow, Collected, MetadataRow, ProcessRow, ThreadRow};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::shown::{columns, table};

const MS: i64 = 1_000_000;

/// A request of each of two processes named whyslow: 10, the tracer, and 20.
fn recording(facts: &[(&str, &str)]) -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let comm = Some(symbols.intern("whyslow"));
    for upid in [1, 2] {
        rows.process.push(ProcessRow {
            upid,
            pid: upid * 10,
            comm,
            is_tracer: upid == 1,
            ..ProcessRow::default()
        });
        rows.thread.push(ThreadRow {
            utid: upid,
            upid: Some(upid),
            tid: upid * 10,
            pid: Some(upid * 10),
            comm,
            is_main: Some(true),
            is_tracer: upid == 1,
            ..ThreadRow::default()
        });
        rows.block_io.push(BlockIoRow {
            id: i64::from(upid),
            ts: i64::from(upid) * MS,
            dur: Some(9 * MS),
            ts_end: Some(i64::from(upid) * MS + 9 * MS),
            utid: Some(upid),
            upid: Some(upid),
            tid: Some(upid * 10),
            pid: Some(upid * 10),
            comm,
            ts_issue: Some(i64::from(upid) * MS),
            queue_ns: Some(0),
            device_ns: Some(9 * MS),
            dev: 8 << 20,
            dev_name: symbols.intern("sda"),
            sectors: 8,
            bytes: 4096,
            op: symbols.intern("read"),
            rwbs: symbols.intern("R"),
            layer: symbols.intern("request"),
            completions: 1,
            ..BlockIoRow::default()
        });
    }
    for (id, (key, value)) in facts.iter().enumerate() {
        rows.metadata.push(MetadataRow {
            id: id as i64,
            source: None,
            key: symbols.intern(key),
            value: symbols.intern(value),
        });
    }
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 1_000 * MS,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

/// Ids of the longest operations, and the caveat about the tracer.
fn longest(tables: &MemoryTables, pids: &[i32]) -> (String, Option<String>) {
    let mut query = Query::new(Kind::Block, Verb::Top);
    query.filter.pids = pids.to_vec();
    let answer = evaluate(tables, &query).unwrap();
    let top = answer.tables.first().unwrap();
    let mut caveats = answer.caveats.iter();
    let caveat = caveats.find(|caveat| caveat.contains("whyslow (10)"));
    (columns(top, &["pid"]), caveat.cloned())
}

#[test]
fn the_recorder_is_not_among_the_longest_operations() {
    let tables = recording(&[("recorder_pid", "10")]);
    let (pids, caveat) = longest(&tables, &[]);
    assert_eq!(pids, "20");
    let caveat = caveat.unwrap();
    assert!(caveat.starts_with("the recorder is excluded"), "{caveat}");
    // Unless it is selected.
    assert_eq!(longest(&tables, &[10]).0, "10");
    // Sums contain it.
    let answer = evaluate(&tables, &Query::new(Kind::Block, Verb::Stats)).unwrap();
    let stats = answer.tables.first().unwrap();
    assert_eq!(columns(table(&answer, &stats.name), &["count"]), "2");
}

#[test]
fn another_tracer_is_left_out_only_on_request() {
    let tables = recording(&[("tracer_name", "lttng-modules")]);
    let (pids, caveat) = longest(&tables, &[]);
    assert_eq!(pids.lines().count(), 2, "{pids}");
    assert!(caveat.unwrap().contains("--no-tracer"));
}
