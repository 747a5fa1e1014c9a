//! Condition `request` of the flight recorder: of many requests to a server that was already
//! running, the late one is saved, and no others.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use whyslow_testkit::{Need, skip};

use super::flight::{Ended, Recorder, recordings, wait_for};
use super::{can_record, rows};
use crate::common::Place;

/// Answers each byte with one: at once, late, or not at all.
const SERVER: &str = "
import os, socket, threading, time

def serve(connection):
    while True:
        query = connection.recv(1)
        if not query:
            return
        if query == b'l':
            time.sleep(1.307)
        if query != b'n':
            connection.sendall(query)

listener = socket.create_server(('127.0.0.1', 0), backlog=64)
with open('port.new', 'w') as port:
    port.write(str(listener.getsockname()[1]))
os.rename('port.new', 'port')
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
";
/// On connections made before and during the recording.
const FAST: usize = 3000;

fn server(place: &Place) -> Option<(Ended, u16)> {
    place.write("server.py", SERVER);
    let mut command = Command::new("python3");
    command.arg("server.py").current_dir(place.path());
    let child = Ended(command.stdin(Stdio::null()).spawn().ok()?);
    let port = place.join("port");
    wait_for("the server", || port.exists());
    let port = fs::read_to_string(port).expect("it was written");
    Some((child, port.parse().expect("a number")))
}

struct Client(TcpStream);

impl Client {
    fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.set_nodelay(true).expect("TCP");
        Self(stream)
    }

    fn send(&mut self, query: u8) {
        self.0.write_all(&[query]).expect("it is open");
    }

    fn get(&mut self) {
        self.0.read_exact(&mut [0]).expect("it answers");
    }

    fn exchange(&mut self, query: u8) {
        self.send(query);
        self.get();
    }
}

#[test]
fn the_late_request_of_many_is_saved_once() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let Some((server, port)) = server(&place) else {
        return skip(Need::Python, "no python3");
    };
    let mut old = Client::new(port);
    old.exchange(b'x');
    let pid = server.0.id().to_string();
    let options = ["--ring", "8s", "--after", "1s", "--cooldown", "1s"];
    let what = ["--what", "syscalls", "--when", "request>700ms", "-p", &pid];
    let recorder = Recorder::start(&place, &[&options[..], &what].concat());
    let mut new = Client::new(port);
    for _ in 0..FAST {
        old.exchange(b'x');
        new.exchange(b'x');
    }
    // No request is sent: an idle connection is not a request, however long it lasts.
    sleep(Duration::from_millis(1500));
    old.exchange(b'x');
    new.exchange(b'x');
    assert!(
        !recorder.said().contains("request>700ms: "),
        "{}",
        recorder.said()
    );
    old.exchange(b'l');
    for _ in 0..FAST {
        new.exchange(b'x');
    }
    let saved = recorder.saved(&place, 1);
    sleep(Duration::from_secs(2));
    assert_eq!(recordings(&place), saved);
    let trigger = format!("request>700ms: request answered by python3 {pid}/");
    assert!(recorder.said().contains(&trigger), "{}", recorder.said());
    let found = rows(&place, &["requests", "top", &saved[0]]);
    let long: Vec<i64> = found
        .iter()
        .filter_map(|row| row["dur_ns"].as_i64())
        .filter(|ns| *ns >= 700_000_000)
        .collect();
    let [long] = long.as_slice() else {
        panic!("{found:#?}");
    };
    assert!(*long >= 1_307_000_000, "{long}");
    // A request that is never answered counts after half of the ring.
    old.send(b'n');
    let both = recorder.saved(&place, 2);
    let said = recorder.end();
    assert!(
        said.contains(&format!("request read by python3 {pid}/")),
        "{said}"
    );
    assert!(said.contains("has had no response for 4."), "{said}");
    assert!(said.contains("saved 2 times"), "{said}");
    assert_eq!(both.len(), 2);
    drop(old);
}

#[test]
fn what_can_never_tell_of_requests_is_refused() {
    let place = Place::new();
    let check = |options: &[&str], message: &str, hint: &str| {
        let when = ["record", "--ring", "8s", "--when", "request>1s"];
        let output = place.whyslow().args(when).args(options).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.contains(hint), "{said}");
    };
    let (message, hint) = ("which is not recorded", "--what block,syscalls");
    check(&["--what", "block"], message, hint);
    let (message, hint) = ("needs all reads and writes", "remove --min");
    check(&["--min", "1ms"], message, hint);
    check(&["--light"], message, hint);
}
