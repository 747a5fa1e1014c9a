//! The follower's side: finds recorders of its user, and writes spools of what one of them hands on.

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

/// A recorder looks many times a second, unless it takes a snapshot.
const ANSWER: Duration = Duration::from_secs(5);
/// For the begin of the first segment, and the end of the last.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between looks at what else there is to do.
const LOOK: Duration = Duration::from_millis(20);
const ABOUT_BYTES_MAX: usize = 4096;
const READ_BYTES: usize = 64 << 10;

/// Why nobody can be followed, or not any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// No recorder of this user has that process id.
    #[error("no recorder of this user runs as process {pid}")]
    Nobody {
        /// Process id that was given.
        pid: i32,
    },
    /// The recorder did not answer in time, or the connection broke.
    #[error("the recorder does not answer")]
    Mute(#[source] io::Error),
    /// It has left something in the present spool, or not.
    #[error("the recorder has ended")]
    Ended {
        /// Whether anything was written to the present spool, which can be imported then.
        has_spool: bool,
    },
    /// The recorder is of another version, or no recorder.
    #[error("the recorder says what is not understood")]
    Strange,
    /// The spool of the follower cannot be created or written.
    #[error("failed to write the spool `{}`", path.display())]
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
    /// Bytes that came and are not a whole frame.
    came: Vec<u8>,
}

/// Recorders of this user that can be followed.
pub fn running() -> Vec<Following> {
    let folder = marks::folder().filter(|folder| marks::check(folder).is_ok());
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    let names = entries.into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| follow(pid).ok()).collect()
}

/// The recorder that is this process.
pub fn follow(pid: i32) -> Result<Following, FollowError> {
    let nobody = || FollowError::Nobody { pid };
    let folder = marks::folder().ok_or_else(nobody)?;
    marks::check(&folder).map_err(|_| nobody())?;
    let socket = folder.join(pid.to_string());
    let stream = UnixStream::connect(socket).map_err(|_| nobody())?;
    Following::greet(pid, stream)
}

impl Following {
    pub(super) fn greet(pid: i32, mut stream: UnixStream) -> Result<Self, FollowError> {
        let set = stream
            .set_read_timeout(Some(ANSWER))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER)));
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
            .set_read_timeout(Some(LOOK))
            .map_err(FollowError::Mute)?;
        Ok(Self {
            pid,
            about,
            stream,
            came: Vec::new(),
        })
    }

    /// Process of the recorder.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What the recorder records.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Follows until `each`, which is asked many times a second, says to end: as
    /// [`crate::record`], into spools that begin now. If the recorder ends before, the present spool is
    /// whole nevertheless.
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
        self.ask(NEXT)?;
        let mut then = Then::GoOn;
        loop {
            let news = self.listen(&mut |block| {
                progress.spool_bytes += block.len() as u64;
                writer.write(block)
            })?;
            match (news, &mut then) {
                (News::Nothing, _) => {}
                (News::Segment, Then::Turn(spool)) => {
                    writer = Writer::create(spool)?;
                    began = Instant::now();
                    progress.spool_bytes = 0;
                    progress.turns += 1;
                    then = Then::GoOn;
                }
                (News::Segment, Then::End(_)) => return Ok(()),
                // Before the recorder says that it ends.
                (News::Segment, Then::GoOn) => then = Then::End(Instant::now()),
                (News::Last, _) => return Err(ENDED),
            }
            progress.elapsed = begun.elapsed();
            match &then {
                Then::Turn(_) => continue,
                Then::End(since) if since.elapsed() > PATIENCE => {
                    return Err(FollowError::Mute(io::ErrorKind::TimedOut.into()));
                }
                Then::End(_) => continue,
                Then::GoOn => {}
            }
            // A spool is what has a begin.
            if progress.spool_bytes == 0 {
                if began.elapsed() > PATIENCE {
                    return Err(FollowError::Mute(io::ErrorKind::TimedOut.into()));
                }
                continue;
            }
            match each(progress) {
                Step::GoOn => {}
                Step::Turn(next) => {
                    then = Then::Turn(next);
                    self.ask(NEXT)?;
                }
                Step::End => {
                    then = Then::End(Instant::now());
                    self.ask(END)?;
                }
            }
        }
    }

    fn ask(&mut self, what: u8) -> Result<(), FollowError> {
        let asked = self.stream.write_all(&[what]);
        asked.map_err(|_| ENDED)
    }

    /// Takes what came, up to the next word, or waits a moment for more.
    fn listen(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), FollowError>,
    ) -> Result<News, FollowError> {
        let news = self.take_frames(take)?;
        if news != News::Nothing {
            return Ok(news);
        }
        let have = self.came.len();
        self.came.resize(have + READ_BYTES, 0);
        let read = self.stream.read(&mut self.came[have..]);
        self.came.truncate(have + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(ENDED),
            Ok(_) => Ok(News::Nothing),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(News::Nothing),
                io::ErrorKind::ConnectionReset => Err(ENDED),
                _ => Err(FollowError::Mute(error)),
            },
        }
    }

    /// Frames that are whole, up to a word.
    fn take_frames(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), FollowError>,
    ) -> Result<News, FollowError> {
        let mut at = 0;
        let mut news = News::Nothing;
        while news == News::Nothing
            && let Some(head) = self.came[at..].first_chunk::<HEAD_BYTES>()
        {
            let (kind, length) = parse(*head);
            if length > BLOCK_BYTES + PAYLOAD_MAX as usize {
                return Err(FollowError::Strange);
            }
            let begin = at + HEAD_BYTES;
            let Some(rest) = self.came.get(begin..begin + length) else {
                break;
            };
            at = begin + length;
            match kind {
                BLOCK => take(rest)?,
                SEGMENT => news = News::Segment,
                LAST => news = News::Last,
                // A later version has more to say.
                _ => {}
            }
        }
        self.came.drain(..at);
        Ok(news)
    }
}

fn parse([kind, length @ ..]: [u8; HEAD_BYTES]) -> (u8, usize) {
    (kind, u32::from_le_bytes(length) as usize)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Nothing,
    Segment,
    Last,
}

/// What the next segment is for.
#[derive(Debug)]
enum Then {
    /// None was asked for.
    GoOn,
    Turn(PathBuf),
    End(Instant),
}

/// Blocks that come as they are to be written.
#[derive(Debug)]
struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Only the owner may read it.
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
