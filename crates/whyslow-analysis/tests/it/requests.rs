//! One request followed through its threads and outbound requests, and bursts by client: computed
//! manually.

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::answer::Answer;
use whyslow_model::tables::{
    Collected, DnsLookupRow, RequestPhaseRow, RequestRow, RequestThreadRow, SyscallRow,
    TcpConnectionRow, ThreadRow, ThreadStateRow,
};
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::shown::{columns, table};

const MS: i64 = 1_000_000;

#[derive(Default)]
struct Made {
    rows: Collected,
    symbols: Symbols,
}

impl Made {
    fn tables(&self, end: i64) -> MemoryTables {
        let info = RecordingInfo {
            begin_ns: 0,
            end_ns: end,
            ..RecordingInfo::default()
        };
        MemoryTables::new(&self.rows, &self.symbols, info)
    }

    fn request(&mut self, ts: i64, dur: i64, client: &str, outcome: &str) -> &mut RequestRow {
        let id = self.rows.request.len() as i64;
        let mut intern = |text: &str| self.symbols.intern(text);
        let row = RequestRow {
            id,
            ts,
            dur: Some(dur),
            ts_end: Some(ts + dur),
            role: intern("server"),
            source: intern("socket"),
            method: Some(intern("GET")),
            endpoint: Some(intern("/login")),
            status: Some(200),
            outcome: intern(outcome),
            client: Some(intern(client)),
            peer: Some(intern("10.0.0.1:50000")),
            utid: Some(1),
            upid: Some(1),
            tid: Some(11),
            pid: Some(11),
            comm: Some(intern("worker")),
            ..RequestRow::default()
        };
        self.rows.request.push(row);
        &mut self.rows.request[id as usize]
    }

    fn phase(&mut self, request: i64, ts: i64, ts_end: i64, phase: &str) {
        self.rows.request_phase.push(RequestPhaseRow {
            id: self.rows.request_phase.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            request,
            phase: self.symbols.intern(phase),
            endpoint: None,
            client: None,
        });
    }

    fn thread(&mut self, utid: i32, comm: &str) {
        self.rows.thread.push(ThreadRow {
            utid,
            upid: Some(1),
            tid: 10 + utid,
            pid: Some(11),
            comm: Some(self.symbols.intern(comm)),
            ts_first: 0,
            ts_last: 0,
            is_tracer: false,
            ..ThreadRow::default()
        });
    }

    fn had(&mut self, request: i64, utid: i32, (ts, ts_end): (i64, i64), from: Option<i32>) {
        let received_by = if from.is_some() { "futex" } else { "read" };
        self.rows.request_thread.push(RequestThreadRow {
            id: self.rows.request_thread.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            request,
            received_by: self.symbols.intern(received_by),
            from_utid: from,
            is_shared: false,
            utid,
            upid: Some(1),
            tid: 10 + utid,
            pid: Some(11),
            comm: Some(self.symbols.intern("worker")),
        });
    }

    fn state(&mut self, utid: i32, ts: i64, ts_end: i64, state: &str) {
        self.rows.thread_state.push(ThreadStateRow {
            id: self.rows.thread_state.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            utid: Some(utid),
            upid: Some(1),
            tid: Some(10 + utid),
            pid: Some(11),
            state: self.symbols.intern(state),
            waker_utid: (state == "sleeping").then_some(1),
            ..ThreadStateRow::default()
        });
    }

    fn call(&mut self, (ts, ts_end): (i64, i64), name: &str, peer: &str, bytes: i64) {
        self.rows.syscall.push(SyscallRow {
            id: self.rows.syscall.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            utid: Some(2),
            upid: Some(1),
            tid: Some(12),
            pid: Some(11),
            name: self.symbols.intern(name),
            compat: false,
            op: self.symbols.intern("net"),
            fd: Some(5),
            path: Some(self.symbols.intern(peer)),
            fd_class: Some(self.symbols.intern("inet")),
            bytes: Some(bytes),
            ..SyscallRow::default()
        });
    }

    /// Request 0 arrives in thread 1 at 100 ms, which passes it to thread 2 at 110 ms; that one
    /// does a DNS lookup, connects to a database and queries it, until 160 ms.
    fn followed() -> Self {
        let mut made = Self::default();
        made.request(100 * MS, 60 * MS, "10.0.0.1", "ok");
        made.phase(0, 100 * MS, 158 * MS, "local");
        made.phase(0, 158 * MS, 160 * MS, "response_send");
        made.thread(1, "acceptor");
        made.thread(2, "worker");
        made.had(0, 1, (100 * MS, 110 * MS), None);
        made.had(0, 2, (110 * MS, 160 * MS), Some(1));
        made.state(1, 90 * MS, 200 * MS, "running");
        made.state(2, 0, 112 * MS, "sleeping");
        made.state(2, 112 * MS, 115 * MS, "runnable");
        made.state(2, 115 * MS, 120 * MS, "running");
        made.state(2, 120 * MS, 150 * MS, "sleeping");
        made.state(2, 150 * MS, 152 * MS, "uninterruptible");
        made.state(2, 152 * MS, 160 * MS, "running");
        made.call((116 * MS, 117 * MS), "sendto", "127.0.0.53:53", 30);
        made.call((117 * MS, 118 * MS), "recvfrom", "127.0.0.53:53", 60);
        made.call((119 * MS, 119 * MS + 1000), "connect", "10.0.0.5:5432", 0);
        made.call((122 * MS, 123 * MS), "sendto", "10.0.0.5:5432", 100);
        made.call((123 * MS, 151 * MS), "recvfrom", "10.0.0.5:5432", 5000);
        made.call((153 * MS, 154 * MS), "sendto", "10.0.0.5:5432", 20);
        made.call((154 * MS, 156 * MS), "recvfrom", "10.0.0.5:5432", 7);
        made.call((158 * MS, 159 * MS), "sendto", "10.0.0.1:50000", 900);
        // Activity after the end of the request does not belong to it.
        made.call((170 * MS, 171 * MS), "sendto", "10.0.0.6:6379", 9);
        made.lookup((115 * MS, 118 * MS), "db.internal", "10.0.0.5");
        made.connection((119 * MS, 121 * MS), "10.0.0.5:5432");
        made
    }

    fn lookup(&mut self, (ts, ts_end): (i64, i64), host: &str, address: &str) {
        self.rows.dns_lookup.push(DnsLookupRow {
            id: 0,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            host: Some(self.symbols.intern(host)),
            function: self.symbols.intern("getaddrinfo"),
            address: Some(self.symbols.intern(address)),
            utid: Some(2),
            upid: Some(1),
            tid: Some(12),
            pid: Some(11),
            ..DnsLookupRow::default()
        });
    }

    fn connection(&mut self, (ts, answered): (i64, i64), peer: &str) {
        self.rows.tcp_connection.push(TcpConnectionRow {
            id: 0,
            ts,
            kind: self.symbols.intern("connect"),
            outcome: self.symbols.intern("open"),
            peer: Some(self.symbols.intern(peer)),
            connect_ns: Some(answered - ts),
            state: self.symbols.intern("established"),
            utid: Some(2),
            upid: Some(1),
            tid: Some(12),
            pid: Some(11),
            ..TcpConnectionRow::default()
        });
    }

    fn evaluate(&self, verb: Verb, request: Option<i64>) -> Answer {
        let query = Query {
            request,
            window: request.map(|_| Window::new(100 * MS, 160 * MS)),
            ..Query::new(Kind::Requests, verb)
        };
        evaluate(&self.tables(200 * MS), &query).unwrap()
    }
}

#[test]
fn one_request_is_a_waterfall_of_phases_threads_and_states() {
    let made = Made::followed();
    for request in [Some(0), None] {
        let answer = made.evaluate(Verb::Threads, request);
        let phases = columns(table(&answer, "phases"), &["phase", "dur_ns", "bar"]);
        let mut bars = [' '; 60];
        bars[..58].fill('=');
        let local: String = bars.iter().collect();
        let sent = format!("{}==", " ".repeat(58));
        assert_eq!(
            phases,
            format!("local | 58000000 | {local}\nresponse_send | 2000000 | {sent}")
        );
        let names = [
            "tid",
            "received_by",
            "from",
            "states",
            "running_ns",
            "runnable_ns",
            "uninterruptible_ns",
            "sleeping_ns",
            "unknown_ns",
        ];
        let threads = columns(table(&answer, "threads"), &names);
        let first = format!("{}{}", "R".repeat(10), " ".repeat(50));
        let second = format!(
            "{}SSrrr{}{}DD{}",
            " ".repeat(10),
            "R".repeat(5),
            "S".repeat(30),
            "R".repeat(8)
        );
        assert_eq!(
            threads,
            format!(
                "11 | read | NULL | {first} | 10000000 | 0 | 0 | 0 | 0\n\
                 12 | futex | acceptor (11) | {second} | 13000000 | 3000000 | 2000000 | 32000000 | 0"
            )
        );
        let waits = columns(
            table(&answer, "waits"),
            &["dur_ns", "tid", "state", "call", "woken_by"],
        );
        assert_eq!(
            waits,
            "2000000 | 12 | sleeping | NULL | acceptor (11)\n\
             3000000 | 12 | runnable | NULL | NULL\n\
             30000000 | 12 | sleeping | NULL | acceptor (11)\n\
             2000000 | 12 | uninterruptible | recvfrom 10.0.0.5:5432 | NULL"
        );
    }
}

#[test]
fn a_request_that_there_is_not_is_an_error() {
    let query = Query {
        request: Some(7),
        ..Query::new(Kind::Requests, Verb::Threads)
    };
    let error = evaluate(&Made::followed().tables(200 * MS), &query).unwrap_err();
    assert!(error.to_string().contains("unknown request 7"), "{error}");
}

#[test]
fn what_a_request_asked_of_others_is_a_row_a_peer() {
    let made = Made::followed();
    for request in [Some(0), None] {
        let answer = made.evaluate(Verb::Outbound, request);
        let names = [
            "request",
            "endpoint",
            "peer",
            "host",
            "protocol",
            "resolve_ns",
            "connect_ns",
            "first_byte_ns",
            "wait_ns",
            "total_ns",
            "exchanges",
            "sent_bytes",
            "received_bytes",
        ];
        assert_eq!(
            columns(table(&answer, "outbound"), &names),
            "request:0 | /login | 10.0.0.5:5432 | db.internal | postgresql | 3000000 | 2000000 | \
             29000000 | 32000000 | 41000000 | 2 | 120 | 5007"
        );
    }
}

/// The request extends beyond the window; what its thread did there does not count.
#[test]
fn outbound_traffic_outside_of_the_window_does_not_count() {
    let made = Made::followed().tables(200 * MS);
    for (window, expected) in [
        ((100 * MS, 112 * MS), ""),
        ((152 * MS, 157 * MS), "10.0.0.5:5432 | 2000000 | 1 | 20 | 7"),
    ] {
        let query = Query {
            window: Some(Window::new(window.0, window.1)),
            ..Query::new(Kind::Requests, Verb::Outbound)
        };
        let answer = evaluate(&made, &query).unwrap();
        let names = [
            "peer",
            "connect_ns",
            "exchanges",
            "sent_bytes",
            "received_bytes",
        ];
        assert_eq!(
            columns(table(&answer, "outbound"), &names),
            expected,
            "{window:?}"
        );
    }
}

/// Ten seconds of three clients at 20 requests/s each: one sends 200 more in the fourth second, and
/// another one's requests fail between the sixth and the seventh.
fn bursts() -> Made {
    let mut made = Made::default();
    for step in 0..200 {
        let ts = step * 50 * MS;
        for client in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            let failing = client == "10.0.0.2" && (6000 * MS..7000 * MS).contains(&ts);
            made.request(ts, MS, client, if failing { "error" } else { "ok" });
        }
        if (4000 * MS..5000 * MS).contains(&ts) {
            for more in 0..10 {
                made.request(ts + more * MS, MS, "10.0.0.3", "ok");
            }
        }
    }
    made
}

#[test]
fn floods_and_bursts_of_errors_name_their_client() {
    let tables = bursts().tables(10_000 * MS);
    let query = Query {
        interval: Some(500 * MS),
        ..Query::new(Kind::Requests, Verb::Bursts)
    };
    let answer = evaluate(&tables, &query).unwrap();
    let names = ["client", "burst", "ts_ns", "dur_ns", "count", "of"];
    assert_eq!(
        columns(table(&answer, "bursts"), &names),
        "10.0.0.3 | requests | 4000000000 | 1000000000 | 220 | 260\n\
         10.0.0.2 | errors | 6000000000 | 1000000000 | 20 | 20"
    );
    let description = columns(table(&answer, "bursts"), &["description"]);
    assert!(
        description.starts_with(
            "10.0.0.3 sent 85 % of 260 requests, 11.0 times its usual 20.0 per s\n\
             20 of 20 requests of 10.0.0.2 failed"
        ),
        "{description}"
    );
    // There is no burst earlier.
    let query = Query {
        window: Some(Window::new(0, 3500 * MS)),
        ..query
    };
    let answer = evaluate(&tables, &query).unwrap();
    assert_eq!(table(&answer, "bursts").rows.len(), 0);
}

#[test]
fn a_client_whose_requests_fail_throughout_is_named_and_a_server_that_fails_is_not() {
    let mut made = Made::default();
    for step in 0..214 {
        let ts = step * 40 * MS;
        made.request(ts, MS, "10.0.0.1", if step < 212 { "error" } else { "ok" });
        made.request(ts, MS, "10.0.0.2", "ok");
        made.request(ts, MS, "10.0.0.3", "ok");
    }
    let query = Query::new(Kind::Requests, Verb::Bursts);
    let answer = evaluate(&made.tables(8_600 * MS), &query).unwrap();
    let names = ["client", "burst", "count"];
    assert_eq!(
        columns(table(&answer, "bursts"), &names),
        "10.0.0.1 | errors | 212"
    );
    let mut made = Made::default();
    for step in 0..200 {
        let outcome = if (100..120).contains(&step) {
            "error"
        } else {
            "ok"
        };
        for client in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            made.request(step * 40 * MS, MS, client, outcome);
        }
    }
    let answer = evaluate(&made.tables(8_000 * MS), &query).unwrap();
    assert_eq!(columns(table(&answer, "bursts"), &names), "");
}

#[test]
fn what_load_and_its_sockets_tell_of_counts_once_unless_somebody_asks_by_source() {
    let mut made = Made::default();
    for turn in 0..3 {
        made.request(10 * MS * turn, MS, "10.0.0.7", "ok");
        made.request(10 * MS * turn, MS, "10.0.0.7", "unknown")
            .same_as = Some(2 * turn);
    }
    made.request(50 * MS, MS, "10.0.0.7", "unknown");
    let tables = made.tables(200 * MS);
    let counts = |verb, by: &[&str]| {
        let query = Query {
            by: by.iter().map(|by| (*by).to_owned()).collect(),
            ..Query::new(Kind::Requests, verb)
        };
        let answer = evaluate(&tables, &query).unwrap();
        columns(&answer.tables[0], &["count"])
    };
    assert_eq!(counts(Verb::Stats, &["role"]), "4");
    assert_eq!(counts(Verb::Usage, &["client"]), "4");
    assert_eq!(counts(Verb::Stats, &["source"]), "7");
    let listed = made.evaluate(Verb::Log, None);
    assert_eq!(listed.tables[0].rows.len(), 4);
}
