//! A running server, and a client that sends given requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Place, recorded};

/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_mins(2);

/// `whyslow serve`, until it is dropped.
pub(crate) struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Server {
    pub(crate) fn start(place: &Place, words: &[&str]) -> Self {
        Self::start_by(place, words, |_| ())
    }

    pub(crate) fn start_by(
        place: &Place,
        words: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = place.program();
        command.arg("serve").args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().expect("cargo built it");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line of text");
        let (port, token) = address(&line).unwrap_or_else(|| panic!("no address: {line:?}"));
        Self {
            child,
            _stdout: stdout,
            port,
            token,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection for handwritten requests.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// The response to these lines (without the empty last one).
    pub(crate) fn say(&self, lines: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let mut text = lines.join("\r\n").into_bytes();
        text.extend(b"\r\nConnection: close\r\n\r\n");
        text.extend(body);
        // The server may have closed the connection after an early refusal.
        let _ = stream.write_all(&text);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        parse(&bytes)
    }

    /// A path with the token and these additional headers.
    pub(crate) fn get_with(&self, path: &str, headers: &[&str]) -> Reply {
        let first = format!("GET {path} HTTP/1.1");
        let token = format!("Authorization: Bearer {}", self.token);
        let mut lines = vec![first.as_str(), "Host: 127.0.0.1", token.as_str()];
        lines.extend(headers);
        self.say(&lines, b"")
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    /// The document at a path below `/api/v1/`, which must exist.
    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(&format!("/api/v1/{path}"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Waits until there are charts, or a reason why there are none.
    pub(crate) fn await_charts(&self) {
        let is_building = || {
            let found = self.json("recordings");
            let recordings = found["recordings"].as_array().expect("a list").iter();
            let mut states = recordings.map(|recording| &recording["tiles"]["state"]);
            states.any(|state| state == "building")
        };
        while is_building() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// One server for all tests that run concurrently; the last one ends it, unlike a static.
    pub(crate) fn shared(place: &Mutex<Weak<Self>>) -> Arc<Self> {
        let mut known = place.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start(recorded(), &["t.wsl"]));
            *known = Arc::downgrade(&server);
            server
        })
    }

    /// Ends it as Ctrl-C does; returns the exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Percent-encoded text.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = std::fmt::Write::write_fmt(&mut encoded, format_args!("%{byte:02x}"));
        encoded
    })
}

/// Port and token of `http://127.0.0.1:PORT/#token=…`.
fn address(line: &str) -> Option<(u16, String)> {
    let rest = line.strip_prefix("http://127.0.0.1:")?;
    let (port, token) = rest.trim_end().split_once("/#token=")?;
    Some((port.parse().ok()?, token.to_owned()))
}

fn parse(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut body = bytes.get(end + 4..).unwrap_or_default().to_vec();
    let reply = Reply {
        status: status.unwrap_or(0),
        head,
        body: Vec::new(),
    };
    if reply.header("transfer-encoding") == Some("chunked") {
        body = whole(&body);
    }
    Reply { body, ..reply }
}

/// The chunks of a body.
fn whole(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let digits = String::from_utf8_lossy(&rest[..end]);
        let length = usize::from_str_radix(digits.trim(), 16).unwrap_or(0);
        let piece = rest.get(end + 2..end + 2 + length);
        let Some(piece) = piece.filter(|piece| !piece.is_empty()) else {
            break;
        };
        body.extend_from_slice(piece);
        rest = rest.get(end + 4 + length..).unwrap_or_default();
    }
    body
}
