//! Slow requests that only sockets show, and operations that are always slow.

use std::fmt::Write as _;

use whyslow_explain::{Confidence, Query, Report, explain};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow, RequestThreadRow};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::text_in_memory;

use crate::it::blank;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
/// The slow request of the client, and that of the other client which keeps the server busy.
const SLOW: i64 = 100;
const SCRIPT: i64 = 200;

const THREADS: &str = "\
0.900000 [0] state_process tid=10 pid=10 comm=client
0.900000 [1] state_process tid=20 pid=20 comm=kvserver
0.900000 [0] state_process tid=30 pid=30 comm=script
0.990000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=client
0.990000 [1] sched_switch prev=0 next=20 prev_state=R next_comm=kvserver
";

/// The client waits for a server that is on CPU for 350 ms.
const BUSY: &str = "\
20.000100 [0] (tid=10 pid=10 comm=client) syscall_enter name=recvfrom fd=3 size=100
20.000200 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
20.349900 [1] (tid=20 pid=20 comm=kvserver) syscall_enter name=sendto fd=5 size=100
20.349910 [1] (tid=20) sched_waking tid=10
20.349950 [1] (tid=20) syscall_exit name=sendto ret=100
20.350000 [0] sched_switch prev=0 prev_state=R next=10
20.350100 [0] (tid=10 pid=10 comm=client) syscall_exit name=recvfrom ret=100
";

/// The client waits for a server that waits for events for 350 ms, and then reads another request.
const POPPED: &str = "\
20.000100 [0] (tid=10 pid=10 comm=client) syscall_enter name=recvfrom fd=3 size=100
20.000200 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
20.001000 [1] (tid=20 pid=20 comm=kvserver) syscall_enter name=epoll_wait fd=4
20.001100 [1] (tid=20) sched_switch prev=20 prev_state=S next=0
20.349000 [0] (tid=30 pid=30 comm=script) sched_waking tid=20
20.349100 [1] sched_switch prev=0 prev_state=R next=20
20.349200 [1] (tid=20 pid=20 comm=kvserver) syscall_exit name=epoll_wait ret=1
20.349900 [1] (tid=20 pid=20 comm=kvserver) syscall_enter name=sendto fd=5 size=100
20.349910 [1] (tid=20) sched_waking tid=10
20.349950 [1] (tid=20) syscall_exit name=sendto ret=100
20.350000 [0] sched_switch prev=0 prev_state=R next=10
20.350100 [0] (tid=10 pid=10 comm=client) syscall_exit name=recvfrom ret=100
";

struct Rows {
    rows: Collected,
    symbols: Symbols,
}

impl Rows {
    fn of(text: &str) -> Self {
        let found = text_in_memory(text);
        Self {
            rows: found.rows,
            symbols: found.symbols,
        }
    }

    fn utid(&self, tid: i32) -> Option<i32> {
        let mut threads = self.rows.thread.iter();
        threads.find(|thread| thread.tid == tid).map(|one| one.utid)
    }

    /// A request of a client, and the same as its server saw it: ids `id` and `id + 1`.
    fn request(
        &mut self,
        id: i64,
        (client, comm): (i32, &str),
        whole: (i64, i64),
        served: Option<(i64, i64)>,
    ) {
        let (utid, server) = (self.utid(client), self.utid(20));
        let symbols = &mut self.symbols;
        let of_client = blank::request(
            (id, whole.0, whole.1 - whole.0),
            ("client", "socket"),
            symbols,
        );
        self.rows.request.push(RequestRow {
            peer: Some(symbols.intern("10.0.0.1:6379")),
            server_request: served.map(|_| id + 1),
            comm: Some(symbols.intern(comm)),
            utid,
            tid: Some(client),
            pid: Some(client),
            ..of_client
        });
        let Some((begin, end)) = served else {
            return;
        };
        let of_server = blank::request((id + 1, begin, end - begin), ("server", "socket"), symbols);
        self.rows.request.push(RequestRow {
            local: Some(symbols.intern("10.0.0.1:6379")),
            comm: Some(symbols.intern("kvserver")),
            utid: server,
            tid: Some(20),
            pid: Some(20),
            ..of_server
        });
        let received_by = symbols.intern("read");
        self.rows.request_thread.push(RequestThreadRow {
            id,
            ts: begin,
            dur: Some(end - begin),
            ts_end: Some(end),
            request: id + 1,
            received_by,
            from_utid: None,
            is_shared: false,
            utid: server.unwrap_or(0),
            upid: None,
            tid: 20,
            pid: Some(20),
            comm: None,
        });
    }

    /// Thirty requests of the client that take 1 ms.
    fn usual(&mut self) {
        for number in 0..30 {
            let begin = SECOND + number * SECOND / 2;
            self.request(2 * number, (10, "client"), (begin, begin + MS), None);
        }
    }

    fn explained(mut self, query: &Query) -> Report {
        self.rows.request.sort_by_key(|row| (row.ts, row.id));
        let info = RecordingInfo {
            begin_ns: 0,
            end_ns: 40 * SECOND,
            ..RecordingInfo::default()
        };
        let tables = MemoryTables::new(&self.rows, &self.symbols, info);
        explain(&tables, query, None).expect("an answer")
    }
}

fn at(ms: i64) -> i64 {
    20 * SECOND + ms * MS
}

/// A server that serves the request of another client for 349 ms before it reads this one.
fn behind_another() -> Rows {
    let mut rows = Rows::of(&format!("{THREADS}{BUSY}"));
    rows.usual();
    rows.request(
        SLOW,
        (10, "client"),
        (at(0), at(350)),
        Some((at(349) + 900_000, at(350))),
    );
    rows.request(
        SCRIPT,
        (30, "script"),
        (at(0), at(349)),
        Some((at(0), at(349))),
    );
    rows
}

#[test]
fn a_request_behind_that_of_another_client_is_the_first_finding() {
    let report = behind_another().explained(&Query::default());
    let finding = &report.findings[0];
    assert_eq!(finding.target.id.as_deref(), Some("request:100"));
    assert_eq!(finding.target.actor.tid, Some(10));
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(part.culprit.pid, Some(20), "{}", finding.verdict);
    assert_eq!(part.root, "cpu_running", "{}", finding.verdict);
    let group = finding.group.as_ref().expect("a group");
    assert_eq!((group.count, group.all), (1, Some(31)));
    assert!(
        finding
            .page
            .why
            .contains("served request 201 of script (pid 30)"),
        "{}",
        finding.page.why
    );
    // The other client's request has the same cause.
    assert_eq!(finding.also.len(), 1, "{:?}", finding.also);
    assert_eq!(report.findings.len(), 1);
}

/// The client waits for a server that sleeps for 350 ms.
const SLEPT: &str = "\
20.000100 [0] (tid=10 pid=10 comm=client) syscall_enter name=recvfrom fd=3 size=100
20.000200 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
20.001000 [1] (tid=20 pid=20 comm=kvserver) syscall_enter name=clock_nanosleep
20.001100 [1] (tid=20) sched_switch prev=20 prev_state=S next=0
20.349000 [1] irq_enter kind=hrtimer nr=0
20.349010 [1] sched_waking tid=20
20.349020 [1] irq_exit kind=hrtimer nr=0
20.349100 [1] sched_switch prev=0 prev_state=R next=20
20.349200 [1] (tid=20 pid=20 comm=kvserver) syscall_exit name=clock_nanosleep ret=0
20.349900 [1] (tid=20 pid=20 comm=kvserver) syscall_enter name=sendto fd=5 size=100
20.349910 [1] (tid=20) sched_waking tid=10
20.349950 [1] (tid=20) syscall_exit name=sendto ret=100
20.350000 [0] sched_switch prev=0 prev_state=R next=10
20.350100 [0] (tid=10 pid=10 comm=client) syscall_exit name=recvfrom ret=100
";

#[test]
fn requests_that_always_wait_for_a_timer_are_no_sure_finding() {
    let confidence = |usual: i64, others: i64| {
        // What the client did during the others is not recorded.
        let threads = THREADS.replace("0.990000 [0]", "19.990000 [0]");
        let mut rows = Rows::of(&format!("{threads}{SLEPT}"));
        for number in 0..others {
            let begin = SECOND + number * 800 * MS;
            let whole = (begin, begin + usual * MS);
            rows.request(1000 + 2 * number, (10, "client"), whole, None);
        }
        rows.request(
            SLOW,
            (10, "client"),
            (at(0), at(350)),
            Some((at(0), at(350))),
        );
        let report = rows.explained(&Query::default());
        let finding = report.findings.into_iter().next().expect("a finding");
        (finding.verdict.contains("as always"), finding.confidence)
    };
    assert_eq!(confidence(345, 20), (true, Confidence::Low));
    assert_eq!(confidence(345, 6), (true, Confidence::Low));
    let unusual = (false, Confidence::Medium);
    assert_eq!(confidence(1, 20), unusual, "slower than usual");
    assert_eq!(confidence(345, 2), unusual, "too few to be usual");
}

/// Requests of 500 us, and `slow` that take `ms`, in forty seconds.
fn brief(ms: i64, slow: i64) -> Report {
    let text = BUSY
        .replace("20.35", &format!("20.0{ms:02}"))
        .replace("20.349", &format!("20.0{:02}", ms - 1));
    let mut rows = Rows::of(&format!("{THREADS}{text}"));
    for number in 0..900 {
        let begin = SECOND + number * 20 * MS;
        let long = if number < slow - 1 { ms * MS } else { MS / 2 };
        rows.request(
            1000 + 2 * number,
            (10, "client"),
            (begin, begin + long),
            None,
        );
    }
    let served = Some((at(0) + 200_000, at(ms)));
    rows.request(SLOW, (10, "client"), (at(0), at(ms)), served);
    rows.explained(&Query::default())
}

#[test]
fn short_operations_that_take_little_time_are_counted_but_no_finding() {
    let is_found = |report: &Report| {
        let mut ids = report.findings.iter().map(|one| &one.target.id);
        ids.any(|id| id.as_deref().is_some_and(|id| id.starts_with("request:")))
    };
    let left_out = |report: &Report| {
        let mut notes = report.caveats.iter();
        notes.any(|note| note.starts_with("brief slow operations"))
    };
    let few = brief(9, 1);
    assert!(!is_found(&few), "one of 9 ms");
    assert!(left_out(&few), "{:?}", few.caveats);
    assert!(
        few.caveats
            .iter()
            .any(|one| one.ends_with("except for brief ones"))
    );
    for (what, report) in [
        ("one of 12 ms", brief(12, 1)),
        ("120 of 9 ms", brief(9, 120)),
    ] {
        assert!(is_found(&report), "{what}: {:?}", report.caveats);
        assert!(!left_out(&report), "{what}: {:?}", report.caveats);
    }
}

#[test]
fn the_same_request_has_one_answer() {
    let whole = behind_another().explained(&Query::default());
    let alone = behind_another().explained(&Query {
        operation: Some(("request".into(), SLOW)),
        ..Query::default()
    });
    let (whole, alone) = (&whole.findings[0], &alone.findings[0]);
    assert_eq!(alone.target, whole.target);
    assert_eq!((&alone.parts, alone.culprit), (&whole.parts, whole.culprit));
    assert_eq!(alone.target.end_ns - alone.target.begin_ns, 350 * MS);
    assert!(!alone.verdict.contains("not slower"), "{}", alone.verdict);
}

#[test]
fn a_blocked_pop_is_no_finding() {
    let popped = |is_nested: bool| {
        let mut rows = Rows::of(&format!("{THREADS}{POPPED}"));
        rows.usual();
        rows.request(
            SLOW,
            (10, "client"),
            (at(0), at(350)),
            Some((at(0), at(350))),
        );
        rows.request(
            SCRIPT,
            (30, "script"),
            (at(348), at(351)),
            Some((at(349) + 300_000, at(351))),
        );
        if is_nested {
            rows.request(300, (20, "kvserver"), (at(1), at(349)), None);
            let nested = rows.rows.request.last_mut().expect("a request");
            nested.parent_request = Some(SLOW + 1);
        }
        rows.explained(&Query::default())
    };
    let report = popped(false);
    let is_it = |id: &str| {
        report
            .findings
            .iter()
            .any(|one| one.target.id.as_deref() == Some(id))
    };
    assert!(!is_it("request:100"), "{:?}", report.findings[0].verdict);
    let note = report
        .caveats
        .iter()
        .find(|one| one.contains("waits for work"));
    assert!(
        note.is_some_and(|note| note.contains("request 100")),
        "{:?}",
        report.caveats
    );
    // One that waits for the server's own request to another server is no wait for work.
    let report = popped(true);
    let first = report.findings.first().expect("a finding");
    assert_eq!(first.target.id.as_deref(), Some("request:100"));
}

/// Calls of one thread one after the other: name, path, duration in us.
fn calls(calls: &[(&str, &str, i64)]) -> String {
    let mut text = String::from("0.500000 [0] state_process tid=10 pid=10 comm=writer\n");
    let mut us = 1_000_000;
    for (name, arguments, dur) in calls {
        let enter = format!("syscall_enter name={name} {arguments}");
        let exit = format!("syscall_exit name={name} ret=0");
        for (event, after) in [(enter, *dur), (exit, 10)] {
            let (seconds, rest) = (us / 1_000_000, us % 1_000_000);
            let _ = writeln!(
                text,
                "{seconds}.{rest:06} [0] (tid=10 pid=10 comm=writer) {event}"
            );
            us += after;
        }
    }
    text
}

fn of_calls(text: &str, end: i64) -> Report {
    let rows = Rows::of(text);
    let info = RecordingInfo {
        begin_ns: SECOND,
        end_ns: end,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows.rows, &rows.symbols, info);
    explain(&tables, &Query::default(), None).expect("an answer")
}

#[test]
fn calls_that_are_always_slow_are_a_finding() {
    let syncs = |us: i64| {
        let one = [("fsync", "fd=3", us), ("write", "fd=3 count=100", 500)];
        let all: Vec<_> = (0..50).flat_map(|_| one).collect();
        of_calls(&calls(&all), 2 * SECOND)
    };
    let report = syncs(18_000);
    let finding = &report.findings[0];
    assert!(
        finding
            .verdict
            .starts_with("50 fsync by writer are always slow: 900 ms in total"),
        "{}",
        finding.verdict
    );
    assert!(finding.confidence <= whyslow_explain::Confidence::Low);
    // Calls that take little of the time are not.
    assert!(syncs(1500).findings.is_empty());
}

#[test]
fn a_request_of_many_short_calls_shows_what_it_did() {
    let one = [
        ("fsync", "fd=3", 7000),
        ("openat", "path=/tmp/part-17.tmp flags=0", 500),
    ];
    let all: Vec<_> = (0..40).flat_map(|_| one).collect();
    let mut rows = Rows::of(&calls(&all));
    let utid = rows.utid(10);
    let (begin, dur) = (SECOND, 40 * 7520 * 1000);
    let blank = blank::request((1, begin, dur), ("server", "socket"), &mut rows.symbols);
    rows.rows.request.push(RequestRow {
        utid,
        tid: Some(10),
        ..blank
    });
    let query = Query {
        operation: Some(("request".into(), 1)),
        ..Query::default()
    };
    let report = rows.explained(&query);
    let did = &report.findings[0].did;
    let found: Vec<_> = did
        .iter()
        .map(|did| {
            (
                did.call.as_str(),
                did.path.as_deref(),
                did.count,
                did.dur_ns / MS,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("fsync", None, 40, 280),
            ("openat", Some("/tmp/part-*.tmp"), 40, 20)
        ]
    );
}

#[test]
fn a_send_that_waits_for_room_is_a_finding() {
    let mut all = vec![("sendto", "fd=3 size=100", 2); 60];
    all.push(("sendto", "fd=3 size=100", 230_000));
    let mut rows = Rows::of(&calls(&all));
    let unix = rows.symbols.intern("unix");
    for row in &mut rows.rows.syscall {
        row.fd_class = Some(unix);
    }
    let report = rows.explained(&Query::default());
    let finding = report.findings.first().expect("a finding");
    assert_eq!(finding.target.end_ns - finding.target.begin_ns, 230 * MS);
    let operation = finding.group.as_ref().map(|group| group.operation.as_str());
    assert_eq!(operation, Some("sendto to a Unix socket by writer"));
    // A receiver waits for work.
    let mut rows = Rows::of(&calls(&[("read", "fd=3 size=100", 230_000)]));
    let unix = rows.symbols.intern("unix");
    for row in &mut rows.rows.syscall {
        row.fd_class = Some(unix);
    }
    assert!(rows.explained(&Query::default()).findings.is_empty());
}
