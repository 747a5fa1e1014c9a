//! Saves what a flight recorder keeps, at the request of another process of the same user, and
//! reports where it was saved.
//!
//! The client connects to the recorder's socket ([`crate::marks`]) and sends [`SAVE`]. The recorder
//! replies once the recording is complete, and closes the connection: a byte for the kind, then
//! fields separated by NUL.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::marks;

/// What a client sends instead of a clock: no clock has this value.
pub(crate) const SAVE: &[u8; 14] = b"\xff\xff\xff\xff\xff\xff\xff\xffsave 1";
/// Read timeout, after which the client checks whether to continue.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Paths have at most 4 KiB each.
const REPLY_BYTES_MAX: u64 = 64 << 10;

const SAVED: u8 = b'S';
const BUSY: u8 = b'B';
const FAILED: u8 = b'F';

/// What a flight recorder replies to a request to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveReply {
    /// It is saved.
    Saved {
        /// Absolute path of the recording.
        recording: PathBuf,
        /// The last recording that a condition made this recorder save, and what met it.
        triggered: Option<(PathBuf, String)>,
    },
    /// An earlier recording is still being written.
    Busy,
    /// It was not saved, for this reason.
    Failed(String),
}

impl SaveReply {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Saved {
                recording,
                triggered,
            } => {
                bytes.push(SAVED);
                bytes.extend(recording.as_os_str().as_bytes());
                if let Some((path, what)) = triggered {
                    bytes.push(0);
                    bytes.extend(path.as_os_str().as_bytes());
                    bytes.push(0);
                    bytes.extend(what.bytes().filter(|byte| *byte != 0));
                }
            }
            Self::Busy => bytes.push(BUSY),
            Self::Failed(why) => {
                bytes.push(FAILED);
                bytes.extend(why.as_bytes());
            }
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        Some(match *kind {
            SAVED => {
                let mut fields = rest.split(|byte| *byte == 0);
                let recording = fields.next().filter(|bytes| !bytes.is_empty()).map(path)?;
                let triggered = fields.next().zip(fields.next());
                Self::Saved {
                    recording,
                    triggered: triggered
                        .map(|(at, what)| (path(at), String::from_utf8_lossy(what).into_owned())),
                }
            }
            BUSY => Self::Busy,
            FAILED => Self::Failed(String::from_utf8_lossy(rest).into_owned()),
            _ => return None,
        })
    }
}

/// A process that waits for a save. Dropped without a reply, it learns that nothing was saved.
#[derive(Debug)]
pub struct SaveRequest {
    stream: UnixStream,
    pid: i32,
}

impl SaveRequest {
    pub(crate) fn new(stream: UnixStream, pid: i32) -> Self {
        Self { stream, pid }
    }

    /// Process that sent it.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Replies; an error means that the process no longer waits.
    pub fn reply(mut self, reply: &SaveReply) -> io::Result<()> {
        // Small enough for the socket buffer: this does not block.
        self.stream.write_all(&reply.encode())
    }
}

/// Why a flight recorder did not save.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// No recorder of this user has that process id.
    #[error("no flight recorder of this user has process id {pid}")]
    NotFound {
        /// The requested process id.
        pid: i32,
    },
    /// The connection broke.
    #[error("cannot reach the flight recorder of process {pid}")]
    Unreachable {
        /// Its process id.
        pid: i32,
        /// Error of the operating system.
        source: io::Error,
    },
    /// It stopped, or cannot save.
    #[error("the flight recorder of process {pid} ended the connection without saving")]
    Ended {
        /// Its process id.
        pid: i32,
    },
    /// The caller stopped waiting.
    #[error("stopped waiting for the flight recorder of process {pid}")]
    Cancelled {
        /// Its process id.
        pid: i32,
    },
}

/// Makes the flight recorder with this process id save what it keeps, and waits for the recording,
/// as long as `goes_on` returns true.
pub fn save(pid: i32, goes_on: &mut dyn FnMut() -> bool) -> Result<SaveReply, SaveError> {
    let not_found = || SaveError::NotFound { pid };
    let folder = marks::folder().ok_or_else(not_found)?;
    marks::check(&folder).map_err(|_| not_found())?;
    let stream = UnixStream::connect(folder.join(pid.to_string())).map_err(|_| not_found())?;
    save_by(pid, stream, goes_on)
}

fn save_by(
    pid: i32,
    mut stream: UnixStream,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<SaveReply, SaveError> {
    let unreachable = |source| SaveError::Unreachable { pid, source };
    let set = stream
        .set_read_timeout(Some(POLL_INTERVAL))
        .and_then(|()| stream.set_write_timeout(Some(WRITE_TIMEOUT)));
    set.and_then(|()| stream.write_all(SAVE))
        .map_err(unreachable)?;
    let mut received = Vec::new();
    loop {
        let left = REPLY_BYTES_MAX.saturating_sub(received.len() as u64);
        match (&stream).take(left).read_to_end(&mut received) {
            Ok(_) => break,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                if !goes_on() {
                    return Err(SaveError::Cancelled { pid });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(unreachable(error)),
        }
    }
    SaveReply::parse(&received).ok_or(SaveError::Ended { pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_understood() {
        let triggered = Some(("/var/a b.wsl".into(), "open>1s: openat by x 7/7".to_owned()));
        for reply in [
            SaveReply::Saved {
                recording: "/var/lib/flight.wsl".into(),
                triggered: None,
            },
            SaveReply::Saved {
                recording: "/var/lib/flight.wsl".into(),
                triggered,
            },
            SaveReply::Busy,
            SaveReply::Failed("the disk is full".into()),
        ] {
            assert_eq!(SaveReply::parse(&reply.encode()), Some(reply));
        }
        for bytes in [&b""[..], b"S", b"X/var/lib"] {
            assert_eq!(SaveReply::parse(bytes), None);
        }
    }

    #[test]
    fn a_client_waits_until_there_is_a_reply_or_the_recorder_ends() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let mut rounds = 0;
        let mut server = Some(SaveRequest::new(theirs, 7));
        let reply = save_by(7, ours, &mut || {
            rounds += 1;
            if rounds == 2 {
                let request = server.take().expect("one");
                assert_eq!(request.pid(), 7);
                request.reply(&SaveReply::Busy).expect("a client");
            }
            true
        });
        assert_eq!(reply.expect("a reply"), SaveReply::Busy);
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let mut server = Some(theirs);
        let ended = save_by(7, ours, &mut || {
            server = None;
            true
        });
        assert!(
            matches!(ended, Err(SaveError::Ended { pid: 7 })),
            "{ended:?}"
        );
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let stopped = save_by(7, ours, &mut || false);
        assert!(
            matches!(stopped, Err(SaveError::Cancelled { .. })),
            "{stopped:?}"
        );
    }
}
