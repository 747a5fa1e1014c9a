//! Wakeups by packets over loopback, with their senders.

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// A server that replies after 50 ms, ten times, alone in its network namespace.
const ANSWERS: &str = "
import os, socket, time
server = socket.create_server(('127.0.0.1', 39125))
if os.fork() == 0:
    open('/proc/self/comm', 'w').write('sender')
    client = socket.create_connection(('127.0.0.1', 39125))
    for number in range(10):
        client.sendall(b'x')
        assert client.recv(1) == b'y'
    os._exit(0)
open('/proc/self/comm', 'w').write('answers')
other, _ = server.accept()
for number in range(10):
    assert other.recv(1) == b'x'
    time.sleep(0.05)
    other.sendall(b'y')
os.wait()
";

/// Waits ended by packets of the server, and all waits of that length.
fn woken(place: &Place) -> (usize, usize) {
    let packets = rows(place, &["net", "log", "rec.wsl"]);
    let states = rows(place, &["states", "log", "rec.wsl", "--comm", "sender"]);
    let is_wait = |row: &&Value| {
        row["state"] == "sleeping" && row["dur_ns"].as_i64().is_some_and(|dur| dur > 45_000_000)
    };
    let waits: Vec<&Value> = states.iter().filter(is_wait).collect();
    let by_server = waits.iter().filter(|wait| {
        let packet = packets.iter().find(|packet| packet["id"] == wait["packet"]);
        packet.is_some_and(|packet| packet["kind"] == "queue" && packet["comm"] == "answers")
    });
    (by_server.count(), waits.len())
}

#[test]
fn who_waits_for_an_answer_is_woken_by_the_packet_of_the_server() {
    if !can_record() {
        return;
    }
    let script = "exec unshare --net /bin/sh -c 'ip link set lo up && exec python3 answers.py'";
    for topics in ["net,sched,irq", "net,sched"] {
        let place = Place::new();
        std::fs::write(place.join("answers.py"), ANSWERS).expect("a temporary folder takes it");
        let can = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .current_dir(place.path())
            .output();
        if !can.is_ok_and(|done| done.status.success()) {
            return skip(
                Need::Isolation,
                "no network namespace, or neither ip nor python3",
            );
        }
        record(&place, &["--what", topics], script);
        let (by_server, waits) = woken(&place);
        assert_eq!(waits, 10, "{topics}");
        // Without the end of softirqs, a wakeup in an interrupted softirq is not attributed to a
        // packet.
        let least = if topics.contains("irq") { 10 } else { 9 };
        assert!(by_server >= least, "{topics}: {by_server}");
    }
}
