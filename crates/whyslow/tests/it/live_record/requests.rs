//! Requests to real servers of three architectures, against the logs of servers and clients: which
//! thread read which request on which connection, which one replied, and which client sent it.

use std::collections::BTreeMap;
use std::process::Command;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::tables::{RequestRow, RequestThreadRow};
use whyslow_testkit::{Need, skip};

use super::can_record;
use crate::common::Place;

const SERVERS: &str = include_str!("requests.py");
/// Requests of all clients.
const REQUESTS: usize = 120;

#[test]
fn a_thread_for_each_connection_answers_what_it_reads() {
    check("threads");
}

#[test]
fn a_pool_of_workers_answers_what_another_thread_reads() {
    check("pool");
}

#[test]
fn a_loop_over_all_connections_answers_in_one_thread() {
    check("loop");
}

/// The server's log of one request.
#[derive(Debug)]
struct Truth {
    reader: i32,
    writer: i32,
}

fn check(shape: &str) {
    if !can_record() {
        return;
    }
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return skip(Need::Python, "no python3");
    }
    let place = Place::new();
    place.write("requests.py", SERVERS);
    let what = ["--what", "syscalls,sched,tcp,net"];
    place
        .whyslow()
        .args(["-q", "record", "--no-import", "-o", "rec.wsl"])
        .args(what)
        .args(["--", "timeout", "60", "python3", "requests.py", shape])
        .assert()
        .success();
    let recorded = import_in_memory(&[place.join("rec.wsl.spool")]).expect("it is whole");
    let read =
        |name: &str| std::fs::read_to_string(place.join(name)).expect("the program wrote it");
    let port = read("port.txt");
    let mut truth: BTreeMap<String, Vec<Truth>> = BTreeMap::new();
    for line in read("served.txt").lines() {
        let words: Vec<i32> = line
            .split_whitespace()
            .skip(1)
            .map(|word| word.parse().expect("a number"))
            .collect();
        let &[client, reader, writer] = words.as_slice() else {
            panic!("{line}");
        };
        let list = truth.entry(format!("127.0.0.1:{client}")).or_default();
        list.push(Truth { reader, writer });
    }
    let server = format!("127.0.0.1:{}", port.trim());
    let (mut right, mut joined) = (0, 0);
    for (client, list) in &truth {
        let (ours, theirs) = of_connection(&recorded, &server, client);
        assert!(ours.len() <= list.len(), "{client}: {ours:?}");
        for ((row, truth), request) in ours.iter().zip(list).zip(&theirs) {
            let turns = turns_of(&recorded, row.id);
            let (first, last) = (turns.first(), turns.last());
            // Every recorded request must be correct.
            assert_eq!(row.tid, Some(truth.reader), "{row:?}");
            assert_eq!(first.map(|turn| turn.tid), Some(truth.reader), "{turns:?}");
            assert_eq!(last.map(|turn| turn.tid), Some(truth.writer), "{turns:?}");
            let is_known =
                |turn: &&RequestThreadRow| [truth.reader, truth.writer].contains(&turn.tid);
            assert!(turns.iter().all(is_known), "{turns:?}");
            right += 1;
            if let Some(id) = request.server_request {
                assert_eq!(id, row.id, "{request:?}");
                joined += 1;
            }
        }
    }
    assert!(right * 100 >= REQUESTS * 95, "{right} of {REQUESTS}");
    assert!(joined * 100 >= REQUESTS * 95, "{joined} of {REQUESTS}");
}

/// Threads that served a connection, and the requests on it, in order.
fn of_connection<'r>(
    recorded: &'r InMemory,
    server: &str,
    client: &str,
) -> (Vec<&'r RequestRow>, Vec<&'r RequestRow>) {
    let is =
        |sym: Option<Sym>, text: &str| sym.is_some_and(|sym| recorded.symbols.get(sym) == text);
    let of = |role: &str, local: &str, peer: &str| {
        let rows =
            recorded.rows.request.iter().filter(|row| {
                is(Some(row.role), role) && is(row.local, local) && is(row.peer, peer)
            });
        let mut rows: Vec<&RequestRow> = rows.collect();
        rows.sort_by_key(|row| (row.ts, row.id));
        rows
    };
    (of("server", server, client), of("client", client, server))
}

fn turns_of(recorded: &InMemory, request: i64) -> Vec<&RequestThreadRow> {
    let turns = recorded.rows.request_thread.iter();
    let mut turns: Vec<_> = turns.filter(|turn| turn.request == request).collect();
    turns.sort_by_key(|turn| (turn.ts, turn.id));
    turns
}
