//! Clients and servers on one host, in one recording: a client's request is followed into its
//! server's, also if the import did not join them.

use whyslow_explain::{Finding, Query, explain};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::text_in_memory;

use crate::it::blank;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const CLIENT: i64 = 1;

/// A client waits for a server that reads a file for 300 ms.
const TRACE: &str = "\
0.900000 [0] state_process tid=10 pid=10 comm=client
0.900000 [1] state_process tid=20 pid=20 comm=server
0.990000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=client
0.990000 [1] sched_switch prev=0 next=20 prev_state=R next_comm=server
1.000100 [0] (tid=10 pid=10 comm=client) syscall_enter name=recvfrom fd=3 size=100
1.000200 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
1.001000 [1] (tid=20 pid=20 comm=server) syscall_enter name=openat path=/srv/old.db flags=0
1.001100 [1] (tid=20) block_getrq dev=8:0 sector=100 sectors=8 rwbs=R
1.001100 [1] (tid=20) block_rq_issue dev=8:0 sector=100 sectors=8 rwbs=R
1.001200 [1] (tid=20) sched_switch prev=20 prev_state=D next=0
1.300000 [1] irq_enter kind=hard nr=19 name=virtio
1.300000 [1] block_rq_complete dev=8:0 sector=100 sectors=8 rwbs=R error=0
1.300000 [1] sched_waking tid=20
1.300100 [1] irq_exit kind=hard nr=19 ret=1
1.300200 [1] sched_switch prev=0 prev_state=R next=20
1.300300 [1] (tid=20) syscall_exit name=openat ret=7
1.300900 [1] (tid=20 pid=20 comm=server) syscall_enter name=sendto fd=5 size=100
1.300910 [1] (tid=20) sched_waking tid=10
1.300950 [1] (tid=20) syscall_exit name=sendto ret=100
1.301000 [0] sched_switch prev=0 prev_state=R next=10
1.301100 [0] (tid=10 pid=10 comm=client) syscall_exit name=recvfrom ret=100
";

/// How the two sides write their addresses, and what else is recorded.
struct Sides {
    client: [&'static str; 2],
    server: Option<[&'static str; 2]>,
    has_activity: bool,
    /// Time of the server's thread with the request, from 1.0005 s on.
    served: i64,
}

const BOTH: Sides = Sides {
    client: ["127.0.0.1:5000", "127.0.0.1:80"],
    server: Some(["127.0.0.1:80", "127.0.0.1:5000"]),
    has_activity: true,
    served: 300 * MS,
};

fn row(
    (id, ts, dur): (i64, i64, i64),
    role: &'static str,
    [local, peer]: [&str; 2],
    utid: Option<i32>,
    symbols: &mut Symbols,
) -> RequestRow {
    let blank = blank::request((id, ts, dur), (role, "socket"), symbols);
    RequestRow {
        local: Some(symbols.intern(local)),
        peer: Some(symbols.intern(peer)),
        utid,
        wait_ns: (role == "client").then_some(dur),
        endpoint: Some(symbols.intern("/old")),
        ..blank
    }
}

fn finding(sides: &Sides) -> Finding {
    let found = text_in_memory(if sides.has_activity { TRACE } else { "" });
    let (mut rows, mut symbols): (Collected, Symbols) = (found.rows, found.symbols);
    let of = |rows: &Collected, tid: i32| {
        let mut threads = rows.thread.iter();
        let thread = threads.find(|thread| thread.tid == tid);
        thread.map(|thread| thread.utid)
    };
    let (client, server) = (of(&rows, 10), of(&rows, 20));
    if let Some(ends) = sides.server {
        let times = (0, SECOND + MS / 2, sides.served);
        rows.request
            .push(row(times, "server", ends, server, &mut symbols));
        // Another connection to the same server, at the same time.
        let other = ["127.0.0.1:80", "127.0.0.1:6000"];
        rows.request.push(row(
            (5, SECOND, 2 * SECOND),
            "server",
            other,
            server,
            &mut symbols,
        ));
    }
    let times = (CLIENT, SECOND, 301 * MS);
    rows.request
        .push(row(times, "client", sides.client, client, &mut symbols));
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 4 * SECOND,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, &symbols, info);
    let query = Query {
        operation: Some(("request".into(), CLIENT)),
        ..Query::default()
    };
    let report = explain(&tables, &query, None).expect("an answer");
    report.findings.into_iter().next().expect("a finding")
}

/// The client's thread, which waited for the server's, which waited for its disk.
fn is_followed(finding: &Finding) {
    assert_eq!(finding.target.id.as_deref(), Some("request:1"));
    assert_eq!(finding.target.actor.tid, Some(10), "{}", finding.verdict);
    let part = &finding.parts[0];
    assert_eq!(part.root, "block_service", "{part:?}");
    assert!(
        !finding.verdict.contains("no recording"),
        "{}",
        finding.verdict
    );
}

#[test]
fn the_request_of_the_server_in_the_same_recording_explains_it() {
    is_followed(&finding(&BOTH));
}

#[test]
fn addresses_may_be_written_differently_on_both_sides() {
    is_followed(&finding(&Sides {
        server: Some(["[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:5000"]),
        ..BOTH
    }));
}

#[test]
fn a_server_that_had_it_only_briefly_does_not_explain_the_rest() {
    let finding = finding(&Sides {
        served: MS / 100,
        ..BOTH
    });
    assert_eq!(finding.target.actor.tid, Some(10), "{}", finding.verdict);
    assert_eq!(finding.target.end_ns - finding.target.begin_ns, 301 * MS);
    let said = finding.caveats.iter();
    let said = said.filter(|one| one.contains("had the request for only 10.0 us"));
    assert_eq!(said.count(), 1, "{:?}", finding.caveats);
}

#[test]
fn without_activity_of_its_thread_that_is_what_is_missing() {
    let verdict = finding(&Sides {
        has_activity: false,
        ..BOTH
    })
    .verdict;
    assert!(
        verdict.contains("activity of its thread not recorded"),
        "{verdict}"
    );
}

#[test]
fn an_address_of_this_host_is_never_another_host() {
    for peer in ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        let verdict = finding(&Sides {
            client: ["127.0.0.1:5000", peer],
            server: None,
            has_activity: false,
            ..BOTH
        })
        .verdict;
        assert!(!verdict.contains("no recording of the server"), "{verdict}");
        assert!(
            verdict.contains("the server runs on this host"),
            "{verdict}"
        );
    }
    // The own address is known from the client's side.
    let own = finding(&Sides {
        client: ["10.0.0.7:5000", "10.0.0.7:80"],
        server: None,
        has_activity: false,
        ..BOTH
    });
    assert!(
        own.verdict.contains("the server runs on this host"),
        "{}",
        own.verdict
    );
    let other = finding(&Sides {
        client: ["10.0.0.7:5000", "10.0.0.8:80"],
        server: None,
        has_activity: false,
        ..BOTH
    });
    assert!(
        other.verdict.contains("no recording of the server"),
        "{}",
        other.verdict
    );
}
