//! Requests of a broker that wait in its queue, and what its handlers did at that time.

use whyslow_explain::{Confidence, Finding, Query, Report, explain};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestPhaseRow, RequestRow};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::text_in_memory;

use crate::it::blank;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const HANDLERS: i64 = 4;
/// The queried request.
const WAITED: i64 = 3;

/// What handlers do from 1.00 s to 1.80 s.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Do {
    Read,
    Nothing,
}

/// A trace of a broker with handlers of this name, with `N` for their number.
fn trace(doing: Do, name: &str) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for number in 0..HANDLERS {
        let (tid, comm) = (20 + number, name.replace('N', &number.to_string()));
        line(format!(
            "0.500000 [0] state_process tid={tid} pid=20 comm={comm}"
        ));
    }
    let network = name.replace("dler-N", "TEXT-0");
    line(format!(
        "0.500000 [4] state_process tid=30 pid=20 comm={network}"
    ));
    line("0.600000 [4] sched_switch prev=0 next=30 prev_state=R".into());
    line("0.600100 [4] (tid=30 pid=20) syscall_enter name=epoll_wait fd=9".into());
    line("0.600200 [4] sched_switch prev=30 next=0 prev_state=S".into());
    for cpu in 0..HANDLERS {
        begins(cpu, doing, &mut line);
    }
    if doing == Do::Nothing {
        line("1.799000 [4] irq_enter kind=hard nr=19 name=eth0".into());
        line("1.799100 [4] sched_waking tid=30".into());
        line("1.799200 [4] irq_exit kind=hard nr=19 ret=1".into());
        line("1.799300 [4] sched_switch prev=0 next=30 prev_state=R".into());
        line("1.799400 [4] (tid=30 pid=20) syscall_exit name=epoll_wait ret=1".into());
    }
    for cpu in 0..HANDLERS {
        ends(cpu, doing, &mut line);
    }
    text
}

fn request(cpu: i64) -> String {
    format!("dev=8:16 sector={}00 sectors=8 rwbs=R", cpu + 1)
}

fn begins(cpu: i64, doing: Do, line: &mut dyn FnMut(String)) {
    let tid = 20 + cpu;
    let mut event = |place: i64, what: String| {
        line(format!("1.000{:03} [{cpu}] {what}", 100 + 20 * cpu + place));
    };
    event(0, format!("sched_switch prev=0 next={tid} prev_state=R"));
    let path = "/var/lib/kafka/orders-0/00000000000000000000.log";
    let (call, state) = match doing {
        Do::Read => (format!("pread64 fd=7 count=4096 path={path}"), 'D'),
        Do::Nothing => ("futex address=0x100 flags=0".to_owned(), 'S'),
    };
    event(1, format!("(tid={tid} pid=20) syscall_enter name={call}"));
    if doing == Do::Read {
        event(2, format!("(tid={tid}) block_getrq {}", request(cpu)));
        event(3, format!("(tid={tid}) block_rq_issue {}", request(cpu)));
    }
    event(
        4,
        format!("(tid={tid}) sched_switch prev={tid} prev_state={state} next=0"),
    );
}

fn ends(cpu: i64, doing: Do, line: &mut dyn FnMut(String)) {
    let tid = 20 + cpu;
    let mut event = |place: i64, on: i64, what: String| {
        line(format!("1.80{cpu}{place:03} [{on}] {what}"));
    };
    let name = match doing {
        Do::Read => {
            event(0, cpu, "irq_enter kind=hard nr=19 name=virtio".into());
            event(
                1,
                cpu,
                format!("block_rq_complete {} error=0", request(cpu)),
            );
            event(2, cpu, format!("sched_waking tid={tid}"));
            event(3, cpu, "irq_exit kind=hard nr=19 ret=1".into());
            "pread64"
        }
        Do::Nothing => {
            event(2, 4, format!("(tid=30) sched_waking tid={tid}"));
            "futex"
        }
    };
    event(
        4,
        cpu,
        format!("sched_switch prev=0 next={tid} prev_state=R"),
    );
    event(
        5,
        cpu,
        format!("(tid={tid} pid=20) syscall_exit name={name} ret=0"),
    );
    event(
        9,
        cpu,
        format!("sched_switch prev={tid} next=0 prev_state=S"),
    );
}

/// Eighty requests of 2 ms, and five that wait for a handler for most of 800 ms.
fn log(rows: &mut Collected, symbols: &mut Symbols) {
    let mut next = 0;
    for id in 0..85 {
        let is_slow = id < 5;
        let (ts, queue) = if is_slow {
            (SECOND + (10 + id) * MS, 770 * MS)
        } else {
            (2 * SECOND + id * 100 * MS, MS)
        };
        let dur = queue + MS;
        let blank = blank::request((id, ts, dur), ("server", "kafka"), symbols);
        rows.request.push(RequestRow {
            protocol: Some(symbols.intern("kafka")),
            endpoint: Some(symbols.intern(if id % 2 == 0 { "FETCH" } else { "PRODUCE" })),
            client: Some(symbols.intern("orders")),
            outcome: symbols.intern("ok"),
            local: Some(symbols.intern("10.0.0.9:9092")),
            queue_ns: Some(queue),
            ..blank
        });
        for (phase, ts, dur) in [("request_queue", ts, queue), ("local", ts + queue, MS)] {
            rows.request_phase.push(RequestPhaseRow {
                id: next,
                ts,
                dur: Some(dur),
                ts_end: Some(ts + dur),
                request: id,
                phase: symbols.intern(phase),
                endpoint: None,
                client: None,
            });
            next += 1;
        }
    }
}

fn explained(trace: Option<String>, query: &Query) -> Report {
    let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
    let is_alone = trace.is_none();
    if let Some(trace) = trace {
        let found = text_in_memory(&trace);
        (rows, symbols) = (found.rows, found.symbols);
    }
    log(&mut rows, &mut symbols);
    let mut info = RecordingInfo {
        begin_ns: 0,
        end_ns: 12 * SECOND,
        ..RecordingInfo::default()
    };
    if is_alone {
        for name in ["thread_state", "syscall"] {
            info.tables
                .insert(name.into(), whyslow_store::TableInfo::default());
        }
    }
    let tables = MemoryTables::new(&rows, &symbols, info);
    explain(&tables, query, None).expect("an answer")
}

fn one(trace: Option<String>) -> Finding {
    let query = Query {
        recording: "broker.wsl".into(),
        operation: Some(("request".into(), WAITED)),
        ..Query::default()
    };
    let mut report = explained(trace, &query);
    assert_eq!(report.findings.len(), 1);
    report.findings.remove(0)
}

const SHORT: &str = "data-pl..dler-N";

#[test]
fn a_wait_for_a_handler_is_put_down_to_what_all_handlers_waited_for() {
    for name in [
        SHORT,
        "data-plane-kafk",
        "data-plane-kafka-request-handler-N",
    ] {
        let finding = one(Some(trace(Do::Read, name)));
        let verdict = &finding.verdict;
        assert!(verdict.contains("the 4 threads data-pl"), "{verdict}");
        assert!(verdict.contains("uninterruptible"), "{verdict}");
        assert!(
            verdict.contains("in pread64(/var/lib/kafka/orders-<n>/<n>.log)"),
            "{verdict}"
        );
        assert!(
            verdict.contains("a handler waited behind requests of data-pl"),
            "{verdict}"
        );
        assert_eq!(finding.confidence, Confidence::Medium, "{verdict}");
        let part = &finding.parts[finding.culprit.expect("a culprit")];
        assert_eq!(part.mechanism, "block_queue");
        assert!(part.culprit.name.starts_with("data-pl"), "{part:?}");
        assert_eq!(
            part.object.as_ref().map(|one| one.name.as_str()),
            Some("8:16")
        );
        let length = finding.target.end_ns - finding.target.begin_ns;
        assert!(finding.saved_at_most_ns * 10 > length * 9, "{verdict}");
        let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
        assert_eq!(sum, finding.target.end_ns - finding.target.begin_ns);
    }
}

#[test]
fn slow_requests_of_a_broker_are_told_by_one_that_waited_for_a_handler() {
    let report = explained(Some(trace(Do::Read, SHORT)), &Query::default());
    let verdict = &report.findings[0].verdict;
    assert!(
        verdict.starts_with("5 of 85 requests were slow"),
        "{verdict}"
    );
    assert!(
        verdict.contains("The longest that waited for a handler: request"),
        "{verdict}"
    );
    assert!(
        verdict.contains("a handler waited behind requests of data-pl"),
        "{verdict}"
    );
}

#[test]
fn handlers_that_waited_for_requests_are_not_what_was_lacking() {
    let finding = one(Some(trace(Do::Nothing, SHORT)));
    let verdict = &finding.verdict;
    assert!(
        verdict.contains("why none took the request is unknown"),
        "{verdict}"
    );
    assert_eq!(finding.confidence, Confidence::None);
    assert_eq!(finding.culprit, None);
}

#[test]
fn without_a_recording_of_the_broker_it_is_said_what_to_record() {
    let finding = one(None);
    assert!(finding.verdict.contains("no recording of the server"));
    assert_eq!(finding.confidence, Confidence::None);
    let summary = finding.caveats.iter().any(|one| {
        one.contains(
            "activity of handlers unavailable: kernel events not recorded (run `whyslow record",
        )
    });
    assert!(summary, "{:?}", finding.caveats);
    let other = trace(Do::Read, "postgres");
    let finding = one(Some(other));
    let summary = finding.caveats.iter();
    let summary = summary.filter(|one| one.contains("handler threads not identified"));
    assert_eq!(summary.count(), 1, "{:?}", finding.caveats);
}
