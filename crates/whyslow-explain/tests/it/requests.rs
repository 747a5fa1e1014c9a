//! Requests with recorded server threads: what slow ones do that others do not, and why one of
//! them was slow.

use std::fmt::Write as _;

use whyslow_explain::{Query, Report, explain, requests_versus};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow, RequestThreadRow};
use whyslow_store::{MemoryTables, RecordingInfo};
use whyslow_test_recordings::text_in_memory;

use crate::it::blank;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const REQUESTS: i64 = 400;

pub(super) struct Imported {
    pub(super) rows: Collected,
    pub(super) symbols: Symbols,
}

/// One in ten requests reads from a slow file for 900 ms.
fn is_slow(id: i64) -> bool {
    id % 10 == 7
}

pub(super) fn imported(slow_ms: i64) -> Imported {
    let mut text = String::from(
        "0.500000 [0] state_process tid=10 pid=10 comm=server\n\
         0.500000 [0] state_process tid=11 pid=10 comm=worker\n",
    );
    for id in 0..REQUESTS {
        let mut at_us = 1_000_000 * (id + 1);
        let mut call = |name: &str, arguments: &str, ret: i64, us: i64| {
            for (event, after) in [
                (format!("syscall_enter name={name} {arguments}"), us),
                (format!("syscall_exit name={name} ret={ret}"), 10),
            ] {
                let (seconds, us) = (at_us / 1_000_000, at_us % 1_000_000);
                let _ = writeln!(
                    text,
                    "{seconds}.{us:06} [0] (tid=11 pid=10 comm=worker) {event}"
                );
                at_us += after;
            }
        };
        call("recvfrom", "fd=5 size=100", 100, 10);
        if is_slow(id) {
            call(
                "openat",
                "path=/srv/archive/old.db flags=0",
                7,
                1000 * slow_ms,
            );
        }
        call(
            "openat",
            "path=/srv/data/items.db flags=0",
            7,
            20_000 + 100 * (id % 37),
        );
        call("sendto", "fd=5 size=100", 100, 10);
    }
    let found = text_in_memory(&text);
    let mut imported = Imported {
        rows: found.rows,
        symbols: found.symbols,
    };
    requests(&mut imported, slow_ms);
    imported
}

fn requests(imported: &mut Imported, slow_ms: i64) {
    let utid = imported.rows.syscall.iter().find_map(|row| row.utid);
    let utid = utid.expect("calls of a known thread");
    for id in 0..REQUESTS {
        let mut dur = 20 * MS + 100_000 * (id % 37) + 60_000;
        if is_slow(id) {
            dur += slow_ms * MS;
        }
        let ts = SECOND * (id + 1);
        let symbols = &mut imported.symbols;
        let endpoint = format!("/{}", id % 7);
        let blank = blank::request((id, ts, dur), ("server", "socket"), symbols);
        imported.rows.request.push(RequestRow {
            endpoint: Some(symbols.intern(&endpoint)),
            connection: Some(id / 4),
            utid: Some(utid),
            tid: Some(11),
            pid: Some(10),
            ..blank
        });
        served(imported, (id, ts, dur, utid));
    }
}

/// The request was served by the thread that read it.
fn served(imported: &mut Imported, (id, ts, dur, utid): (i64, i64, i64, i32)) {
    let received_by = imported.symbols.intern("read");
    imported.rows.request_thread.push(RequestThreadRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        request: id,
        received_by,
        from_utid: None,
        is_shared: false,
        utid,
        upid: None,
        tid: 11,
        pid: Some(10),
        comm: None,
    });
}

pub(super) fn tables(imported: &Imported) -> MemoryTables {
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: (REQUESTS + 2) * SECOND,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&imported.rows, &imported.symbols, info)
}

fn explained(imported: &Imported, query: &Query) -> Report {
    explain(&tables(imported), query, None).expect("an answer")
}

#[test]
fn what_slow_requests_do_and_others_do_not_is_named() {
    let imported = imported(900);
    let report = explained(&imported, &Query::default());
    let summary = &report.patterns[0].summary;
    assert!(
        summary.contains("file /srv/archive/old.db: 100 % of the slow requests, 0 %"),
        "{summary}"
    );
    let finding = &report.findings[0];
    assert!(
        finding.verdict.starts_with("40 of 400 requests were slow"),
        "{}",
        finding.verdict
    );
    assert_eq!(finding.target.actor.tid, Some(11));
    assert_eq!(finding.group.as_ref().expect("a group").count, 40);
}

#[test]
fn one_request_is_told_by_the_thread_that_served_it() {
    let imported = imported(900);
    let query = Query {
        operation: Some(("request".into(), 17)),
        ..Query::default()
    };
    let finding = &explained(&imported, &query).findings[0];
    assert_eq!(finding.target.id.as_deref(), Some("request:17"));
    assert_eq!(finding.target.actor.name, "worker");
    let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
    assert_eq!(sum, finding.target.end_ns - finding.target.begin_ns);
    let unknown = Query {
        operation: Some(("request".into(), 9999)),
        ..Query::default()
    };
    assert!(explain(&tables(&imported), &unknown, None).is_err());
}

#[test]
fn threads_of_two_recordings_are_compared() {
    let (before, after) = (imported(900), imported(1500));
    let (before, after) = (tables(&before), tables(&after));
    let found = requests_versus((&before, None), (&after, None), ("a", "b"));
    let found = found.expect("an answer").expect("threads are known");
    assert_eq!((found.here, found.there), (48, 48));
    assert!(found.mean_here_ns > found.mean_there_ns.expect("requests"));
}
