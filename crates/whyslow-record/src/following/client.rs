//! Client of the follow protocol: finds recorders of this user, and writes the received segments as
//! spools.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use whyslow_model::spool::{BLOCK_BYTES, FILE_SUFFIX, PAYLOAD_MAX};

use super::{ABOUT, About, BLOCK, END, HEAD_BYTES, LAST, NEXT, SEGMENT};
use crate::marks;
use crate::session::{Progress, Step};

/// A recorder polls many times a second, except during a snapshot.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// For the start of the first segment, and the end of the last one.
const SEGMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Read timeout, after which `each` is called.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const ABOUT_BYTES_MAX: usize = 4096;
const READ_BYTES: usize = 64 << 10;

/// Why a recorder cannot be followed, or following ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// No recorder of this user has that process id.
    #[error("cannot follow process {pid}: no recorder of this user has this process id")]
    NotFound {
        /// The requested process id.
        pid: i32,
    },
    /// The recorder did not reply in time, or the connection broke.
    #[error("cannot follow the recorder: it does not reply")]
    Mute(#[source] io::Error),
    /// The recorder ended.
    #[error("the recorder stopped")]
    Ended {
        /// Whether anything was written to the current spool; if so, it can be imported.
        has_spool: bool,
    },
    /// The recorder is of another version, or the process is no recorder.
    #[error("cannot follow the recorder: it uses an unknown protocol version")]
    Strange,
    /// The spool of the follower cannot be created or written.
    #[error("cannot write the spool `{}`", path.display())]
    Spool {
        /// The spool, or a file in it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

const ENDED: FollowError = FollowError::Ended { has_spool: false };

/// A recorder that can be followed.
#[derive(Debug)]
pub struct Following {
    pid: i32,
    about: About,
    stream: UnixStream,
    /// Received bytes that are not a complete frame yet.
    received: Vec<u8>,
}

/// Recorders of this user that can be followed.
pub fn running() -> Vec<Following> {
    let folder = marks::folder().filter(|folder| marks::check(folder).is_ok());
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    let names = entries.into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| follow(pid).ok()).collect()
}

/// Connects to the recorder with this process id.
pub fn follow(pid: i32) -> Result<Following, FollowError> {
    let not_found = || FollowError::NotFound { pid };
    let folder = marks::folder().ok_or_else(not_found)?;
    marks::check(&folder).map_err(|_| not_found())?;
    let socket = folder.join(pid.to_string());
    let stream = UnixStream::connect(socket).map_err(|_| not_found())?;
    Following::greet(pid, stream)
}

impl Following {
    pub(super) fn greet(pid: i32, mut stream: UnixStream) -> Result<Self, FollowError> {
        let set = stream
            .set_read_timeout(Some(REPLY_TIMEOUT))
            .and_then(|()| stream.set_write_timeout(Some(REPLY_TIMEOUT)));
        set.and_then(|()| stream.write_all(marks::FOLLOW))
            .map_err(FollowError::Mute)?;
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).map_err(FollowError::Mute)?;
        let (kind, length) = parse(head);
        if kind != ABOUT || length > ABOUT_BYTES_MAX {
            return Err(FollowError::Strange);
        }
        let mut text = vec![0; length];
        stream.read_exact(&mut text).map_err(FollowError::Mute)?;
        let about = About::parse(&String::from_utf8_lossy(&text)).ok_or(FollowError::Strange)?;
        stream
            .set_read_timeout(Some(POLL_INTERVAL))
            .map_err(FollowError::Mute)?;
        Ok(Self {
            pid,
            about,
            stream,
            received: Vec::new(),
        })
    }

    /// Process id of the recorder.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What the recorder records.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Follows until `each`, which is called many times a second, returns [`Step::End`]; like
    /// [`crate::record`], into spools that start now. If the recorder stops first, the current
    /// spool is complete nevertheless.
    pub fn run(
        mut self,
        spool: &Path,
        mut each: impl FnMut(&Progress) -> Step,
    ) -> Result<(), FollowError> {
        let mut progress = Progress::default();
        let followed = self.run_until(spool, &mut progress, &mut each);
        followed.map_err(|error| match error {
            FollowError::Ended { .. } => FollowError::Ended {
                has_spool: progress.spool_bytes > 0,
            },
            error => error,
        })
    }

    fn run_until(
        &mut self,
        spool: &Path,
        progress: &mut Progress,
        each: &mut impl FnMut(&Progress) -> Step,
    ) -> Result<(), FollowError> {
        let begun = Instant::now();
        let mut began = begun;
        let mut writer = Writer::create(spool)?;
        self.request(NEXT)?;
        let mut then = Then::GoOn;
        loop {
            let event = self.listen(&mut |block| {
                progress.spool_bytes += block.len() as u64;
                writer.write(block)
            })?;
            match (event, &mut then) {
                (Event::Nothing, _) => {}
                (Event::Segment, Then::Turn(spool)) => {
                    writer = Writer::create(spool)?;
                    began = Instant::now();
                    progress.spool_bytes = 0;
                    progress.turns += 1;
                    then = Then::GoOn;
                }
                (Event::Segment, Then::End(_)) => return Ok(()),
                // Sent before the recorder reports its end.
                (Event::Segment, Then::GoOn) => then = Then::End(Instant::now()),
                (Event::Last, _) => return Err(ENDED),
            }
            progress.elapsed = begun.elapsed();
            match &then {
                Then::Turn(_) => continue,
                Then::End(since) if since.elapsed() > SEGMENT_TIMEOUT => {
                    return Err(FollowError::Mute(io::ErrorKind::TimedOut.into()));
                }
                Then::End(_) => continue,
                Then::GoOn => {}
            }
            // Only a spool with a start is valid.
            if progress.spool_bytes == 0 {
                if began.elapsed() > SEGMENT_TIMEOUT {
                    return Err(FollowError::Mute(io::ErrorKind::TimedOut.into()));
                }
                continue;
            }
            match each(progress) {
                Step::GoOn => {}
                Step::Turn(next) => {
                    then = Then::Turn(next);
                    self.request(NEXT)?;
                }
                Step::End => {
                    then = Then::End(Instant::now());
                    self.request(END)?;
                }
            }
        }
    }

    fn request(&mut self, what: u8) -> Result<(), FollowError> {
        let sent = self.stream.write_all(&[what]);
        sent.map_err(|_| ENDED)
    }

    /// Processes received data up to the next control frame, or waits briefly for more.
    fn listen(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), FollowError>,
    ) -> Result<Event, FollowError> {
        let event = self.take_frames(take)?;
        if event != Event::Nothing {
            return Ok(event);
        }
        let have = self.received.len();
        self.received.resize(have + READ_BYTES, 0);
        let read = self.stream.read(&mut self.received[have..]);
        self.received.truncate(have + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(ENDED),
            Ok(_) => Ok(Event::Nothing),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(Event::Nothing),
                io::ErrorKind::ConnectionReset => Err(ENDED),
                _ => Err(FollowError::Mute(error)),
            },
        }
    }

    /// Processes complete frames, up to a control frame.
    fn take_frames(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), FollowError>,
    ) -> Result<Event, FollowError> {
        let mut at = 0;
        let mut event = Event::Nothing;
        while event == Event::Nothing
            && let Some(head) = self.received[at..].first_chunk::<HEAD_BYTES>()
        {
            let (kind, length) = parse(*head);
            if length > BLOCK_BYTES + PAYLOAD_MAX as usize {
                return Err(FollowError::Strange);
            }
            let begin = at + HEAD_BYTES;
            let Some(rest) = self.received.get(begin..begin + length) else {
                break;
            };
            at = begin + length;
            match kind {
                BLOCK => take(rest)?,
                SEGMENT => event = Event::Segment,
                LAST => event = Event::Last,
                // A later version may send other frames.
                _ => {}
            }
        }
        self.received.drain(..at);
        Ok(event)
    }
}

fn parse([kind, length @ ..]: [u8; HEAD_BYTES]) -> (u8, usize) {
    (kind, u32::from_le_bytes(length) as usize)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    Segment,
    Last,
}

/// What the next segment is for.
#[derive(Debug)]
enum Then {
    /// No further segment was requested.
    GoOn,
    Turn(PathBuf),
    End(Instant),
}

/// Writes received blocks unchanged.
#[derive(Debug)]
struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Readable only by the owner.
    fn create(folder: &Path) -> Result<Self, FollowError> {
        let path = folder.join(format!("000001{FILE_SUFFIX}"));
        let made = fs::DirBuilder::new().mode(0o700).create(folder);
        let file = made.and_then(|()| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
        });
        match file {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(FollowError::Spool { path, source }),
        }
    }

    fn write(&mut self, block: &[u8]) -> Result<(), FollowError> {
        let written = self.file.write_all(block);
        written.map_err(|source| FollowError::Spool {
            path: self.path.clone(),
            source,
        })
    }
}
