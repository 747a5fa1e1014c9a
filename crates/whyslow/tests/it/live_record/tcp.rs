//! TCP connections, against the kernel's counters in a separate network namespace and what the
//! program reports to have sent.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// 23 connections, closed first by either side; 3 that this side resets, and 5 that are
/// refused.
const CONNECTIONS: &str = "
import json, socket, struct, threading
open('/proc/self/comm', 'w').write('connects')
def snmp():
    lines = [line.split()[1:] for line in open('/proc/self/net/snmp') if line.startswith('Tcp:')]
    return {name: int(value) for name, value in zip(*lines)}
server = socket.create_server(('127.0.0.1', 39123))
before = snmp()
def read(other):
    while other.recv(65536):
        pass
for number in range(26):
    client = socket.create_connection(('127.0.0.1', 39123))
    other, _ = server.accept()
    client.sendall(b'x' * (1000 + number))
    left = 1000 + number
    while left:
        left -= len(other.recv(left))
    if number >= 23:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        client.close()
        try:
            other.recv(1)
        except ConnectionResetError:
            pass
        other.close()
        continue
    first, second = (client, other) if number % 2 else (other, client)
    first.shutdown(socket.SHUT_WR)
    read(second)
    second.close()
    read(first)
    first.close()
for number in range(5):
    try:
        socket.create_connection(('127.0.0.1', 39124))
    except ConnectionRefusedError:
        pass
after = snmp()
json.dump({name: after[name] - before[name] for name in after}, open('counted.json', 'w'))
";

#[test]
fn connections_are_those_that_the_kernel_counts_and_end_as_the_program_ends_them() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.join("tcp.py"), CONNECTIONS).expect("a temporary folder takes it");
    let script = "exec unshare --net /bin/sh -c 'ip link set lo up && exec python3 tcp.py'";
    let can = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(place.path())
        .output();
    if !can.is_ok_and(|done| done.status.success()) {
        return skip(
            Need::Isolation,
            "no network namespace, or neither ip nor python3",
        );
    }
    record(&place, &["--what", "tcp,sched,syscalls"], script);
    let counted = std::fs::read(place.join("counted.json")).expect("the program wrote it");
    let counted: Value = serde_json::from_slice(&counted).expect("JSON");
    let all = rows(&place, &["tcp", "log", "rec.wsl", "-c", "connects"]);
    let is_ours = |row: &&Value| row["kind"] == "connect";
    let ours: Vec<&Value> = all.iter().filter(is_ours).collect();
    assert_eq!(ours.len() as i64, counted["ActiveOpens"], "{all:?}");
    assert_eq!(ours.len(), 31);
    let outcomes = |port: &str| {
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for row in ours.iter().filter(|row| row["peer"] == port) {
            let by = row["closed_by"].as_str().unwrap_or("nobody");
            let name = format!("{} {by}", row["outcome"].as_str().unwrap_or_default());
            *outcomes.entry(name).or_default() += 1;
        }
        outcomes.into_iter().collect::<Vec<_>>()
    };
    let expect = |list: &[(&str, usize)]| -> Vec<(String, usize)> {
        let owned = |(name, count): &(&str, usize)| ((*name).to_owned(), *count);
        list.iter().map(owned).collect()
    };
    let ended = [
        ("aborted nobody", 3),
        ("closed local", 11),
        ("closed peer", 12),
    ];
    assert_eq!(outcomes("127.0.0.1:39123"), expect(&ended));
    let refused = [("refused nobody", 5)];
    assert_eq!(outcomes("127.0.0.1:39124"), expect(&refused));
    assert_eq!(counted["AttemptFails"], 5, "{counted}");
    let whole = ours.iter().filter(|row| row["peer"] == "127.0.0.1:39123");
    for (number, row) in (0..).zip(whole) {
        let sent = row["bytes_sent"].as_i64().unwrap_or(-1);
        // SYN and FIN take one sequence number each.
        assert!((1000 + number..=1002 + number).contains(&sent), "{row}");
        let (lasted, connect) = (row["dur_ns"].as_i64(), row["connect_ns"].as_i64());
        assert!(lasted > connect && connect > Some(0), "{row}");
    }
}

#[test]
fn accepted_connections_are_those_that_the_kernel_counts() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.join("tcp.py"), CONNECTIONS).expect("a temporary folder takes it");
    let script = "exec unshare --net /bin/sh -c 'ip link set lo up && exec python3 tcp.py'";
    record(&place, &["--what", "tcp"], script);
    let Ok(counted) = std::fs::read(place.join("counted.json")) else {
        return skip(
            Need::Isolation,
            "no network namespace, or neither ip nor python3",
        );
    };
    let counted: Value = serde_json::from_slice(&counted).expect("JSON");
    let all = rows(&place, &["tcp", "log", "rec.wsl", "--op", "accept"]);
    let ours = all.iter().filter(|row| row["local"] == "127.0.0.1:39123");
    let ours: Vec<&Value> = ours.collect();
    assert_eq!(ours.len() as i64, counted["PassiveOpens"], "{all:?}");
    let reset = ours.iter().filter(|row| row["outcome"] == "reset").count();
    assert_eq!(reset, 3, "{ours:?}");
    for (number, row) in (0..).zip(&ours) {
        let received = row["bytes_received"].as_i64().unwrap_or(-1);
        assert!((1000 + number..=1001 + number).contains(&received), "{row}");
    }
}
