//! A server that does what the path requests, and logs what arrived.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Delays of path `/slow`: before the head, and before the body.
pub(crate) const WAIT: Duration = Duration::from_millis(40);
pub(crate) const RECEIVE: Duration = Duration::from_millis(30);
pub(crate) const HUGE_BYTES: usize = 8 << 20;

/// A request that arrived: time, and head followed by body.
pub(crate) type Arrival = (Instant, String);

pub(crate) struct Server {
    pub(crate) port: u16,
    log: Arc<Mutex<Vec<Arrival>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &log));
            }
        });
        Self { port, log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.log.lock().expect("no panic").clone()
    }
}

/// Serves a connection until its end; a client that disconnects is not an error.
fn serve(mut stream: TcpStream, log: &Mutex<Vec<Arrival>>) {
    let _ = stream.set_nodelay(true);
    while let Some(mut head) = head(&mut stream) {
        let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
        let Some(body) = body(&mut stream, &head) else {
            return;
        };
        head.push_str(&body);
        log.lock().expect("no panic").push((Instant::now(), head));
        if !matches!(answer(&mut stream, &path), Ok(true)) {
            return;
        }
    }
}

fn head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// Reads as many bytes as the head declares.
fn body(stream: &mut TcpStream, head: &str) -> Option<String> {
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// Whether the connection is kept open.
fn answer(stream: &mut TcpStream, path: &str) -> std::io::Result<bool> {
    let text = match path.split('?').next().unwrap_or_default() {
        "/missing" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "/broken" => "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
        "/redirect" => "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n",
        "/away" => {
            "HTTP/1.1 302 Found\r\nLocation: http://other.invalid/\r\nContent-Length: 0\r\n\r\n"
        }
        "/last" => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nlast",
        "/garbage" => "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "/truncated" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly",
        "/cut-chunk" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nonly",
        "/nothing" => "",
        "/chunked" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for _ in 0..20 {
                stream.write_all(b"400\r\n")?;
                stream.write_all(&[b'x'; 1024])?;
                stream.write_all(b"\r\n")?;
            }
            "0\r\n\r\n"
        }
        "/huge" => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {HUGE_BYTES}\r\n\r\n"
            )?;
            stream.write_all(&vec![b'x'; HUGE_BYTES])?;
            ""
        }
        "/slow" => {
            thread::sleep(WAIT);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")?;
            thread::sleep(RECEIVE);
            "ok"
        }
        "/silent" => {
            thread::sleep(Duration::from_mins(1));
            ""
        }
        "/half" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")?;
            thread::sleep(Duration::from_mins(1));
            ""
        }
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer-Timing: db;dur=5\r\n\r\nok",
    };
    stream.write_all(text.as_bytes())?;
    // `/gone` closes the connection without announcing it.
    let is_last = [
        "/last",
        "/gone",
        "/garbage",
        "/truncated",
        "/cut-chunk",
        "/nothing",
    ];
    Ok(!is_last.contains(&path))
}
