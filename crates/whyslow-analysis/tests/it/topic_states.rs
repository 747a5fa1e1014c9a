//! Not recorded, none happened, how many, and what the source does not state.

use std::ops::ControlFlow;

use whyslow_analysis::{
    Filter, Kind, Query, TOPICS, Verb, evaluate, evaluate_streaming, is_recorded, topic_state,
};
use whyslow_model::tables::{Collected, LockWaitRow, MetadataRow, SyscallRow};
use whyslow_model::topic_state::TopicState;
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo, SourceInfo};

/// A recording of 1 ms with these sources and facts: calls `name op ts`, and lock waits by time.
fn recording(
    sources: &[&str],
    facts: &[(&str, &str)],
    calls: &[(&str, &str, i64)],
    waits: &[i64],
) -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    for (id, (key, value)) in facts.iter().enumerate() {
        rows.metadata.push(MetadataRow {
            id: id as i64,
            source: None,
            key: symbols.intern(key),
            value: symbols.intern(value),
        });
    }
    for (id, (name, op, ts)) in calls.iter().enumerate() {
        rows.syscall.push(SyscallRow {
            id: id as i64 + 1,
            ts: *ts,
            dur: Some(10),
            ts_end: Some(ts + 10),
            tid: Some(7),
            name: symbols.intern(name),
            op: symbols.intern(op),
            ..SyscallRow::default()
        });
    }
    for (id, ts) in waits.iter().enumerate() {
        rows.lock_wait.push(LockWaitRow {
            id: id as i64 + 1,
            ts: *ts,
            dur: Some(10),
            ts_end: Some(ts + 10),
            tid: Some(7),
            kind: symbols.intern("mutex"),
            ..LockWaitRow::default()
        });
    }
    let source = |kind: &&str| SourceInfo {
        path: String::new(),
        kind: (*kind).to_owned(),
        bytes: 0,
        digest: String::new(),
    };
    let info = RecordingInfo {
        sources: sources.iter().map(source).collect(),
        begin_ns: 0,
        end_ns: 1_000_000,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

const RECORDED: &[(&str, &str)] = &[("topics", "syscalls,locks")];

fn locks(tables: &MemoryTables) -> TopicState {
    topic_state(tables, Kind::Locks).unwrap()
}

#[test]
fn locks_are_recorded_not_recorded_or_did_not_happen() {
    let some = recording(&["spool"], RECORDED, &[], &[100, 200]);
    assert_eq!(locks(&some), TopicState::Recorded(2));
    let none = recording(&["spool"], RECORDED, &[], &[]);
    assert_eq!(
        locks(&none),
        TopicState::NoneHappened {
            why: "no lock waits: recorded, none happened".into()
        }
    );
    let absent = recording(&["spool"], &[("topics", "syscalls")], &[], &[]);
    assert_eq!(
        locks(&absent),
        TopicState::NotRecorded {
            why: "lock contention unavailable: lock waits not recorded".into(),
            record_with: Some("--what +locks".into()),
        }
    );
    let unknown = recording(&["ftrace"], &[], &[], &[]);
    assert_eq!(
        locks(&unknown),
        TopicState::Unknown {
            why: "cannot tell whether lock waits were recorded: the source `ftrace` does not state it"
                .into(),
            record_with: Some("`whyslow record --what +locks` records them".into()),
        }
    );
    let part = recording(&["spool"], &[("topics_partial", "locks")], &[], &[]);
    let part = locks(&part);
    assert_eq!(part.name(), "unknown");
    let reason = part.reason().unwrap();
    assert!(
        reason.starts_with("cannot tell whether there were lock waits"),
        "{reason}"
    );
}

#[test]
fn an_answer_without_rows_states_why() {
    let check = |tables: &MemoryTables, query: &Query, state: &str, caveat: Option<&str>| {
        let answer = evaluate(tables, query).unwrap();
        let found = answer.state.as_ref().map(TopicState::name);
        assert_eq!(found, Some(state), "{query:?}");
        let caveats = answer.caveats.iter().map(String::as_str);
        // The calls here have no threads.
        let caveats: Vec<&str> = caveats
            .filter(|caveat| !caveat.starts_with("threads unavailable"))
            .collect();
        assert_eq!(caveats, Vec::from_iter(caveat), "{query:?}");
        // A stream has the same state in its header.
        let mut log = query.clone();
        log.verb = Verb::Log;
        let whole = evaluate(tables, &log).unwrap();
        let mut header = None;
        let streamed = evaluate_streaming(tables, &log, &mut |answer, _| {
            header = Some(answer.state.clone());
            ControlFlow::Continue(())
        });
        let streamed = streamed.unwrap();
        assert_eq!(streamed.state.map(|state| state.name()), Some(state));
        assert_eq!(whole.state.map(|state| state.name()), Some(state));
        if let Some(header) = header {
            assert_eq!(header.map(|state| state.name()), Some(state));
        }
    };
    let stats = Query::new(Kind::Locks, Verb::Stats);
    let some = recording(&["spool"], RECORDED, &[], &[100]);
    check(&some, &stats, "recorded", None);
    // The filter is the reason, not the recording.
    let filtered = Query {
        filter: Filter {
            tids: vec![8],
            ..Filter::default()
        },
        ..stats.clone()
    };
    check(&some, &filtered, "recorded", None);
    let later = Query {
        window: Some(Window::new(5_000, 6_000)),
        ..stats.clone()
    };
    check(
        &some,
        &later,
        "none_happened",
        Some("no lock waits: recorded, none happened in this window"),
    );
    let none = recording(&["spool"], RECORDED, &[], &[]);
    check(
        &none,
        &stats,
        "none_happened",
        Some("no lock waits: recorded, none happened"),
    );
    let absent = recording(&["spool"], &[("topics", "syscalls")], &[], &[]);
    check(
        &absent,
        &stats,
        "not_recorded",
        Some("lock contention unavailable: lock waits not recorded (add `--what +locks`)"),
    );
    let unknown = recording(&["ftrace"], &[], &[], &[]);
    check(
        &unknown,
        &stats,
        "unknown",
        Some(
            "cannot tell whether lock waits were recorded: the source `ftrace` does not state it \
             (`whyslow record --what +locks` records them)",
        ),
    );
}

/// Every view of every kind states one of the four without rows.
#[test]
fn no_view_is_silent_about_missing_rows() {
    let all = "syscalls,sched,block,irq,locks,dns,mem,fs,work,tcp,net,pages,stacks,functions,usdt";
    let absent = recording(&["spool"], &[("topics", "")], &[], &[]);
    let none = recording(&["spool"], &[("topics", all)], &[], &[]);
    let unknown = recording(&[], &[], &[], &[]);
    for topic in TOPICS {
        for view in topic.views {
            let query = Query::new(topic.kind, view.verb);
            let name = format!("{} {}", topic.kind.name(), view.verb.name());
            for tables in [&absent, &none, &unknown] {
                let Ok(answer) = evaluate(tables, &query) else {
                    // Some views need a time or an operation.
                    continue;
                };
                let state = answer.state.unwrap_or_else(|| panic!("{name}: no state"));
                let has_rows = answer.tables.iter().any(|table| !table.rows.is_empty());
                assert!(has_rows || state.reason().is_some(), "{name}: {state:?}");
                if let Some(caveat) = state.caveat() {
                    assert!(answer.caveats.contains(&caveat), "{name}: {caveat}");
                    assert!(!caveat.contains(" or there were"), "{name}: {caveat}");
                }
            }
        }
        let state = |tables| topic_state(tables, topic.kind).unwrap();
        assert!(!state(&absent).is_recorded() || topic.kind == Kind::Counters);
        assert!(!state(&unknown).is_recorded(), "{}", topic.kind.name());
    }
}

#[test]
fn a_kind_of_some_calls_is_judged_by_those() {
    let futex = [("futex", "futex", 100)];
    // The recorder records all system calls.
    let spool = recording(&["spool"], RECORDED, &futex, &[]);
    let io = topic_state(&spool, Kind::Io).unwrap();
    assert_eq!(
        io.reason(),
        Some("no I/O operations: recorded, none happened")
    );
    assert_eq!(
        topic_state(&spool, Kind::Syscalls).unwrap(),
        TopicState::Recorded(1)
    );
    // strace may have been run with -e trace=futex.
    let strace = recording(&["strace"], &[], &futex, &[]);
    let io = topic_state(&strace, Kind::Io).unwrap();
    assert_eq!(
        io.reason(),
        Some(
            "cannot tell whether I/O operations were recorded: the source `strace` does not state it"
        )
    );
    let answer = evaluate(&strace, &Query::new(Kind::Io, Verb::Stats)).unwrap();
    assert_eq!(answer.state, Some(io));
    let read = [("read", "read", 100), ("futex", "futex", 200)];
    let strace = recording(&["strace"], &[], &read, &[]);
    let io = topic_state(&strace, Kind::Io).unwrap();
    assert_eq!(io, TopicState::Recorded(1));
    let block = topic_state(&strace, Kind::Block).unwrap();
    assert_eq!(block.name(), "not_recorded");
}

#[test]
fn tables_are_recorded_without_rows() {
    let tables = recording(&["lttng"], &[("topics", "block")], &[], &[]);
    assert!(is_recorded(&tables, "block_io").unwrap());
    assert!(!is_recorded(&tables, "lock_wait").unwrap());
    let enable = topic_state(&tables, Kind::Cpu).unwrap();
    assert_eq!(
        enable.record_with(),
        Some("enable sched_switch, sched_waking")
    );
}
