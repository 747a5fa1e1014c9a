//! Load sent from the command line to a server that counts requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::Place;

/// Answers `ok` at once, or to `/slow` after this delay, which is longer than others wait for a CPU.
const SLOW: Duration = Duration::from_millis(600);

struct Server {
    port: u16,
    arrived: Arc<AtomicU64>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                thread::spawn(move || serve(stream, &count));
            }
        });
        Self { port, arrived }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::SeqCst)
    }

    fn wait_for(&self, requests: u64) {
        for _ in 0..1_000 {
            if self.arrived() >= requests {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{} of {requests} requests arrived", self.arrived());
    }
}

fn serve(stream: TcpStream, arrived: &AtomicU64) -> Option<()> {
    let mut answers = stream.try_clone().ok()?;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let first = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        arrived.fetch_add(1, Ordering::SeqCst);
        if first.contains(" /slow") {
            thread::sleep(SLOW);
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        answers.write_all(answer).ok()?;
    }
}

/// A run that is killed on drop.
fn start(place: &Place, arguments: &[&str]) -> Child {
    let program = assert_cmd::cargo::cargo_bin("whyslow");
    let mut command = std::process::Command::new(program);
    command
        .arg("load")
        .args(arguments)
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CACHE_HOME", place.join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn table<'a>(answer: &'a Value, name: &str) -> &'a Vec<Value> {
    let tables = answer["tables"].as_array().expect("tables");
    let found = tables.iter().find(|table| table["name"] == name);
    found.expect(name)["rows"].as_array().expect("rows")
}

#[test]
fn a_recording_of_load_has_each_request_that_arrived() {
    let (place, server) = (Place::new(), Server::start());
    let (fast, slow) = (server.url("/fast"), server.url("/slow"));
    let text = place.stdout(&[
        "load",
        &fast,
        &slow,
        "--threads",
        "3",
        "--each",
        "4",
        "-o",
        "kept.wsl",
        "--json",
    ]);
    assert_eq!(server.arrived(), 12);
    let text: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(table(&text, "requests").len(), 12);
    assert!(!place.join("kept.ndjson").exists(), "the lines have gone");
    let kept = place.stdout(&["requests", "list", "kept.wsl", "--json", "--limit", "0"]);
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let list = kept["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(list.len(), 12);
    let slow_ns = SLOW.as_nanos() as i64;
    for row in list {
        let is_slow = row["endpoint"] == "/slow";
        let dur_ns = row["dur_ns"].as_i64().expect("a length");
        assert_eq!(dur_ns >= slow_ns, is_slow, "{row}");
    }
    let refused = place
        .whyslow()
        .args(["load", &fast, "-o", "kept.wsl"])
        .assert();
    refused.code(2);
    assert_eq!(server.arrived(), 12, "nothing is sent in vain");
}

#[test]
fn what_a_killed_run_has_written_is_imported() {
    let (place, server) = (Place::new(), Server::start());
    let url = server.url("/slow");
    let mut run = start(
        &place,
        &[&url, "--for", "60s", "--threads", "4", "-o", "lines.ndjson"],
    );
    server.wait_for(40);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    let arrived = server.arrived();
    place.stdout(&["import", "lines.ndjson", "-o", "killed.wsl"]);
    let manifest = std::fs::read(place.join("killed.wsl/manifest.json")).expect("a recording");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let count = manifest["tables"]["request"]["rows"].as_u64();
    let count = count.expect("a number");
    // Rows are written several times per second; requests in flight had none yet.
    assert!(count > 0 && count <= arrived, "{count} of {arrived}");
}

#[test]
fn an_interrupted_run_ends_with_its_report() {
    let (place, server) = (Place::new(), Server::start());
    let url = server.url("/slow");
    let run = start(
        &place,
        &[
            &url,
            "--for",
            "60s",
            "--threads",
            "2",
            "-o",
            "cut.wsl",
            "--json",
        ],
    );
    server.wait_for(10);
    let pid = Pid::from_raw(run.id() as i32).expect("a number");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = run.wait_with_output().expect("it ends");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{talk}");
    let text: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = table(&text, "requests");
    assert_eq!(rows.len() as u64, server.arrived());
    let cut = rows.iter().filter(|row| row["outcome"] == "cut").count();
    assert!(cut <= 2, "one of each thread: {cut}");
    assert!(place.join("cut.wsl").exists());
}

#[test]
fn other_machines_are_loaded_only_if_that_is_meant() {
    let place = Place::new();
    // A documentation address (RFC 5737), which no host has.
    let arguments = [
        "load",
        "http://192.0.2.1/",
        "--rate",
        "1000/s",
        "--for",
        "1s",
    ];
    let refused = place.whyslow().args(arguments).assert().code(2);
    let talk = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(talk.contains("192.0.2.1") && talk.contains("-y"), "{talk}");
    let files = std::fs::read_dir(place.path()).expect("a folder");
    let left = files.flatten().filter(|file| {
        file.path()
            .extension()
            .is_some_and(|ending| ending == "ndjson")
    });
    assert_eq!(left.count(), 0, "nothing was begun");
}
