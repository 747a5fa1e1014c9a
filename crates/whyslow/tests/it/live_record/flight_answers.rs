//! Why an HTTP request was slow a while ago, under a flight recorder: one command saves and
//! explains it, and what made the recorder save comes first.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::can_record;
use super::flight::{Ended, Recorder, wait_for};
use crate::common::Place;

/// `/slow` takes 1.3 s, everything else is answered at once.
const SERVER: &str = "
import http.server, os, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/slow':
            time.sleep(1.307)
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
with open('port.new', 'w') as port:
    port.write(str(server.server_address[1]))
os.rename('port.new', 'port')
server.serve_forever()
";
const FAST: usize = 40;
const SLOW_NS: i64 = 1_307_000_000;

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

fn get(port: u16, path: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it replies");
    assert!(reply.ends_with("ok"), "{reply}");
}

/// The report of `explain`, and its messages.
fn explained(place: &Place, args: &[&str]) -> (Value, String) {
    let output = place
        .whyslow()
        .arg("explain")
        .args(args)
        .arg("--json")
        .output();
    let output = output.expect("it starts");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    (report, messages)
}

fn is_slow_request(finding: &Value) -> bool {
    let target = &finding["target"];
    let ends = [&target["begin_ns"], &target["end_ns"]].map(|ns| ns.as_i64().unwrap_or(0));
    target["kind"] == "request" && ends[1] - ends[0] >= SLOW_NS
}

#[test]
fn one_command_explains_the_slow_request_of_a_while_ago() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let Some((server, port)) = server(&place) else {
        return skip(Need::Python, "no python3");
    };
    let pid = server.0.id().to_string();
    let recorder = Recorder::start(&place, &["--ring", "60s", "-p", &pid]);
    for _ in 0..FAST {
        get(port, "/");
    }
    get(port, "/slow");
    for _ in 0..FAST {
        get(port, "/");
    }
    sleep(Duration::from_secs(2));
    let (report, messages) = explained(&place, &["@flight"]);
    let saved = recorder.saved(&place, 1);
    assert!(
        messages.contains(&format!("saved {}", saved[0])),
        "{messages}"
    );
    assert!(is_slow_request(&report["findings"][0]), "{report:#}");
    assert_eq!(report["trigger"]["condition"], Value::Null);
    assert!(report["trigger"]["ts_ns"].is_i64(), "{report:#}");
    // It is the last recording now, and can be explained again without another save.
    let (again, messages) = explained(&place, &[]);
    assert_eq!(again["findings"], report["findings"]);
    assert!(!messages.contains("saved "), "{messages}");
    recorder.end();
}

#[test]
fn the_request_that_met_the_condition_is_explained_first() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let Some((server, port)) = server(&place) else {
        return skip(Need::Python, "no python3");
    };
    let pid = server.0.id().to_string();
    let options = ["--ring", "60s", "--after", "1s", "--cooldown", "1h"];
    let when = ["--when", "request>700ms", "-p", &pid];
    let recorder = Recorder::start(&place, &[&options[..], &when].concat());
    for _ in 0..FAST {
        get(port, "/");
    }
    get(port, "/slow");
    let saved = recorder.saved(&place, 1);
    let (report, _) = explained(&place, &[&saved[0]]);
    let first = &report["findings"][0];
    assert!(
        first["is_trigger"] == true && is_slow_request(first),
        "{report:#}"
    );
    let verdict = first["verdict"].as_str().expect("a text");
    assert!(
        verdict.starts_with("the trigger (request>700ms): request "),
        "{verdict}"
    );
    let trigger = &report["trigger"];
    assert_eq!(trigger["condition"], "request>700ms");
    assert_eq!(trigger["kind"], "request");
    assert_eq!(trigger["id"], first["target"]["id"]);
    assert_eq!(trigger["pid"].to_string(), pid);
    assert_eq!(trigger["missing"], Value::Null);
    let info = place.whyslow().args(["info", &saved[0]]).output();
    let info = String::from_utf8(info.expect("it starts").stdout).expect("UTF-8");
    assert!(
        info.contains("request>700ms: request answered by python3"),
        "{info}"
    );
    assert!(
        info.contains(trigger["id"].as_str().expect("an id")),
        "{info}"
    );
    // A later save names the recording of the condition.
    let (_, messages) = explained(&place, &[&format!("@flight:{}", recorder.pid())]);
    assert!(
        messages.contains("a condition was met earlier"),
        "{messages}"
    );
    assert!(messages.contains(&saved[0]), "{messages}");
    recorder.end();
}

#[test]
fn without_a_flight_recorder_there_is_a_hint() {
    let place = Place::new();
    let check = |word: &str, code: i32, parts: [&str; 2]| {
        let output = place.whyslow().args(["explain", word]).output();
        let output = output.expect("it starts");
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{messages}");
        assert!(
            parts.iter().all(|part| messages.contains(part)),
            "{messages}"
        );
    };
    let hint = "hint: start a flight recorder: sudo whyslow record --ring";
    check(
        "@flight",
        1,
        ["no flight recorder of this user is running", hint],
    );
    check("@flight:1", 1, ["process id 1", hint]);
    check("@flight:x", 2, ["`@flight:` requires a PID", "use @flight"]);
}
