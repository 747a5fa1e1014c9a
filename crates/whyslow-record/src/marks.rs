//! Marks: a user records a note such as a deployment or a configuration change at the current time,
//! and every active recording of that user stores it.
//!
//! A recorder listens on a socket named after its process id, in a directory that only its user can
//! enter. A client sends its monotonic clock and a text, and receives `ok`; or it requests to
//! follow the recording ([`crate::following`]), or to save it ([`crate::saving`]).

use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock;
use crate::saving::{SAVE, SaveRequest};

/// Maximum size of a mark, in bytes.
pub const MARK_BYTES_MAX: usize = 4096;
/// Maximum age of a mark's timestamp: older records are already passed on.
const MARK_AGE_MAX_NS: u64 = 100_000_000;
/// Time in which a client must send its request.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for a recorder to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent clients.
const CLIENTS_MAX: usize = 16;
const CLOCK_BYTES: usize = 8;
const OK: &[u8] = b"ok\n";
/// What a follower sends instead of a clock: no clock has this value.
pub(crate) const FOLLOW: &[u8; 16] = b"\xff\xff\xff\xff\xff\xff\xff\xfffollow 1";
/// Overrides the directory, to separate recorders from others of the same user.
const FOLDER: &str = "WHYSLOW_RUN_DIR";

/// Directory of the sockets of this user's recorders.
pub(crate) fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
    if let Some(folder) = named {
        return Some(folder.into());
    }
    if rustix::process::geteuid().is_root() {
        return Some("/run/whyslow".into());
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty())?;
    Some(Path::new(&folder).join("whyslow"))
}

/// The directory must belong to this user, and be closed to others.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(folder)?;
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if about.is_dir() && is_own && about.mode() & 0o777 == 0o700 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// A mark sent by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) ts: u64,
    pub(crate) pid: i32,
    pub(crate) text: String,
}

/// A client that wants to follow.
#[derive(Debug)]
pub(crate) struct NewFollower {
    pub(crate) stream: UnixStream,
    pub(crate) pid: i32,
}

/// Requests since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) marks: Vec<Mark>,
    pub(crate) followers: Vec<NewFollower>,
    pub(crate) saves: Vec<SaveRequest>,
}

/// Receives marks without ever blocking.
#[derive(Debug)]
pub(crate) struct Listener {
    path: PathBuf,
    socket: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    pid: i32,
    received: Vec<u8>,
    since: Instant,
}

impl Listener {
    pub(crate) fn open() -> io::Result<Self> {
        let folder = folder().ok_or(io::ErrorKind::NotFound)?;
        Self::open_in(&folder)
    }

    fn open_in(folder: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => check(folder)?,
        }
        let path = folder.join(std::process::id().to_string());
        // Left by a killed process that had the same process id.
        let _ = fs::remove_file(&path);
        let socket = UnixListener::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            path,
            socket,
            clients: Vec::new(),
        })
    }

    /// The requests that have arrived.
    pub(crate) fn poll(&mut self, now: u64) -> Received {
        while self.clients.len() < CLIENTS_MAX
            && let Ok((stream, _)) = self.socket.accept()
        {
            self.clients.extend(Client::new(stream));
        }
        let mut received = Received::default();
        for mut client in std::mem::take(&mut self.clients) {
            match client.receive() {
                ReadState::More if client.since.elapsed() < READ_TIMEOUT => {
                    self.clients.push(client);
                }
                ReadState::More | ReadState::Nothing => {}
                ReadState::All => received.marks.extend(client.mark(now)),
                ReadState::Save => {
                    let request = SaveRequest::new(client.stream, client.pid);
                    received.saves.push(request);
                }
                ReadState::Follow => received.followers.push(NewFollower {
                    stream: client.stream,
                    pid: client.pid,
                }),
            }
        }
        received
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

enum ReadState {
    More,
    All,
    Save,
    Follow,
    Nothing,
}

impl Client {
    /// Accepts only this user and root.
    fn new(stream: UnixStream) -> Option<Self> {
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        let is_allowed = peer.uid == rustix::process::geteuid() || peer.uid.is_root();
        if !is_allowed || stream.set_nonblocking(true).is_err() {
            return None;
        }
        Some(Self {
            stream,
            pid: peer.pid.as_raw_nonzero().get(),
            received: Vec::new(),
            since: Instant::now(),
        })
    }

    fn receive(&mut self) -> ReadState {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return ReadState::All,
                Ok(count) => self.received.extend(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadState::More,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return ReadState::Nothing,
            }
            if self.received.as_slice() == FOLLOW {
                return ReadState::Follow;
            }
            if self.received.as_slice() == SAVE {
                return ReadState::Save;
            }
            if self.received.len() > CLOCK_BYTES + MARK_BYTES_MAX {
                return ReadState::Nothing;
            }
        }
    }

    /// Parses the request and acknowledges it.
    fn mark(&mut self, now: u64) -> Option<Mark> {
        let (ts, text) = self.received.split_first_chunk::<CLOCK_BYTES>()?;
        let ts = u64::from_le_bytes(*ts);
        if text.is_empty() {
            return None;
        }
        let _ = self.stream.write_all(OK);
        // A timestamp of another clock, or one too old, is replaced.
        let is_near = ts <= now && now - ts < MARK_AGE_MAX_NS;
        Some(Mark {
            ts: if is_near { ts } else { now },
            pid: self.pid,
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// Sends a mark to all recorders of this user; returns how many acknowledged it.
pub fn mark(text: &str) -> io::Result<usize> {
    match folder() {
        Some(folder) => mark_in(&folder, text),
        None => Ok(0),
    }
}

fn mark_in(folder: &Path, text: &str) -> io::Result<usize> {
    let now = clock::monotonic();
    match check(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        checked => checked?,
    }
    let mut sent = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match UnixStream::connect(&path) {
            Ok(stream) => sent.extend(send_mark(stream, now, text)),
            // Its recorder was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            Err(_) => {}
        }
    }
    Ok(sent.iter_mut().filter_map(acknowledged).count())
}

/// All marks are sent before waiting for a reply.
fn send_mark(mut stream: UnixStream, now: u64, text: &str) -> Option<UnixStream> {
    stream.set_write_timeout(Some(READ_TIMEOUT)).ok()?;
    stream.write_all(&now.to_le_bytes()).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    stream.shutdown(std::net::Shutdown::Write).ok()?;
    Some(stream)
}

fn acknowledged(stream: &mut UnixStream) -> Option<()> {
    stream.set_read_timeout(Some(REPLY_TIMEOUT)).ok()?;
    let mut reply = [0; OK.len()];
    stream.read_exact(&mut reply).ok()?;
    (reply == *OK).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whyslow");
        (folder, path)
    }

    /// Marks that arrive within some seconds.
    fn wait(listener: &mut Listener) -> Vec<Mark> {
        let begun = Instant::now();
        loop {
            let marks = listener.poll(clock::monotonic()).marks;
            if !marks.is_empty() || begun.elapsed() > REPLY_TIMEOUT {
                return marks;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_mark_is_heard_and_who_said_it() {
        let (_folder, path) = place();
        assert_eq!(mark_in(&path, "too early").unwrap(), 0);
        let mut listener = Listener::open_in(&path).unwrap();
        // Left by a killed recorder.
        drop(UnixListener::bind(path.join("1")).unwrap());
        let client = std::thread::spawn({
            let path = path.clone();
            move || mark_in(&path, "version 2\x1b[2J").unwrap()
        });
        let marks = wait(&mut listener);
        assert_eq!(client.join().unwrap(), 1);
        let [mark] = marks.as_slice() else {
            panic!("{marks:?}");
        };
        assert_eq!(mark.text, "version 2\x1b[2J");
        assert_eq!(mark.pid, std::process::id() as i32);
        assert!(!path.join("1").exists());
        drop(listener);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_eq!(mark_in(&path, "too late").unwrap(), 0);
    }

    #[test]
    fn a_request_to_save_is_passed_on_and_gets_a_reply() {
        let (_folder, path) = place();
        let mut listener = Listener::open_in(&path).unwrap();
        let socket = path.join(std::process::id().to_string());
        let mut client = UnixStream::connect(&socket).unwrap();
        client.write_all(SAVE).unwrap();
        let received = listener.poll(clock::monotonic());
        assert!(received.marks.is_empty() && received.followers.is_empty());
        let [request] = <[SaveRequest; 1]>::try_from(received.saves).unwrap();
        assert_eq!(request.pid(), std::process::id() as i32);
        request.reply(&crate::saving::SaveReply::Busy).unwrap();
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).unwrap();
        assert_eq!(reply, b"B");
    }

    #[test]
    fn who_says_nothing_or_too_much_is_not_waited_for() {
        let (_folder, path) = place();
        let mut listener = Listener::open_in(&path).unwrap();
        let socket = path.join(std::process::id().to_string());
        let silent: Vec<_> = (0..40)
            .map_while(|_| UnixStream::connect(&socket).ok())
            .collect();
        assert!(listener.poll(1).marks.is_empty());
        assert!(listener.clients.len() <= CLIENTS_MAX);
        drop(silent);
        assert!(listener.poll(1).marks.is_empty());
        while !listener.clients.is_empty() {
            assert!(listener.poll(1).marks.is_empty());
        }
        let mut loud = UnixStream::connect(&socket).unwrap();
        let _ = loud.write_all(&[b'x'; CLOCK_BYTES + MARK_BYTES_MAX + 1]);
        drop(loud);
        assert!(listener.poll(1).marks.is_empty());
        let mut short = UnixStream::connect(&socket).unwrap();
        short.write_all(b"1234567").unwrap();
        drop(short);
        assert!(listener.poll(1).marks.is_empty());
    }

    #[test]
    fn a_folder_of_others_is_not_used() {
        let (folder, path) = place();
        fs::create_dir(&path).unwrap();
        let mut open = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o755);
        fs::set_permissions(&path, open).unwrap();
        assert!(Listener::open_in(&path).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(Listener::open_in(&link).is_err());
        assert!(mark_in(&link, "x").is_err());
    }
}
