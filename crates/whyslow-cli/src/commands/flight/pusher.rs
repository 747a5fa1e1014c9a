//! What was saved is sent to a lake, by a process of its own, for as long as it takes.
//!
//! A recording that waits has a file beside it, `NAME.wsl.unpushed`, which goes when the lake has it:
//! so what waits is known to the next recorder, too, whatever ended this one. While the store is away
//! recordings stay where they are, within `--max-disk`.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whyslow_base::talk;
use whyslow_model::text::shown;

use super::disk::is_ours;
use super::place::Place;
use crate::cli::PushArgs;

const MARK: &str = ".unpushed";
/// After a push failed the next one waits for so long, and twice as long each time, …
const PAUSE: Duration = Duration::from_secs(1);
/// … but no longer than this.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// A thread that pushes one recording after another.
pub(super) struct Pusher {
    recordings: Sender<PathBuf>,
    thread: JoinHandle<usize>,
}

struct Work {
    /// What the process is told beside the recording.
    lake: String,
    words: Vec<String>,
    processes: Sender<i32>,
    waiting: VecDeque<PathBuf>,
}

impl Pusher {
    /// Begins with what waits from before.
    pub(super) fn start(place: &Place, args: &PushArgs, processes: Sender<i32>) -> Option<Self> {
        let lake = args.push.clone()?;
        let mut words = Vec::new();
        for (name, value) in &args.label {
            words.extend(["--label".to_owned(), format!("{name}={value}")]);
        }
        words.extend(["--cluster".to_owned(), args.cluster.clone()]);
        let work = Work {
            lake,
            words,
            processes,
            waiting: waiting(place).into(),
        };
        let count = work.waiting.len();
        if count > 0 {
            talk::line(&format!("{count} recordings wait to be pushed from before"));
        }
        let (recordings, taken) = mpsc::channel();
        let thread = thread::spawn(move || work.run(&taken));
        Some(Self { recordings, thread })
    }

    pub(super) fn push(&self, recording: &Path) {
        // The thread ends only after this end of the channel.
        let _ = self.recordings.send(recording.to_owned());
    }

    /// Tries what waits once more; how many still do.
    pub(super) fn finish(self) -> usize {
        drop(self.recordings);
        self.thread.join().unwrap_or(0)
    }
}

impl Work {
    fn run(mut self, taken: &Receiver<PathBuf>) -> usize {
        let mut pause = Duration::ZERO;
        let mut is_away = false;
        loop {
            let next = if self.waiting.is_empty() {
                taken.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                taken.recv_timeout(pause)
            };
            match next {
                Ok(recording) => {
                    self.waiting.push_back(recording);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let Some(recording) = self.waiting.front().cloned() else {
                continue;
            };
            match self.push(&recording) {
                Ok(()) => {
                    self.waiting.pop_front();
                    (pause, is_away) = (Duration::ZERO, false);
                }
                Err(why) => {
                    if !is_away {
                        let (recording, why) = (name(&recording), shown(&why, false));
                        talk::line(&format!(
                            "note: not pushed yet: {recording}: {why}; tried again and again, {} wait",
                            self.waiting.len()
                        ));
                    }
                    is_away = true;
                    pause = (pause * 2).clamp(PAUSE, PAUSE_MAX);
                }
            }
        }
        // The end: each once more, until one fails.
        while let Some(recording) = self.waiting.front().cloned() {
            if let Err(why) = self.push(&recording) {
                let folder = recording.parent().unwrap_or(Path::new("."));
                talk::line(&format!(
                    "note: {} recordings are not pushed: {}; the next `record --push` there sends them, or: whyslow fleet push {}/*.wsl {}",
                    self.waiting.len(),
                    shown(&why, false),
                    shown(&folder.display().to_string(), false),
                    shown(&self.lake, false)
                ));
                break;
            }
            self.waiting.pop_front();
        }
        self.waiting.len()
    }

    /// In a process of its own, which Ctrl-C does not reach.
    fn push(&self, recording: &Path) -> Result<(), String> {
        if !recording.exists() {
            // Somebody took it away.
            return unmark(recording).map_err(|error| error.to_string());
        }
        let child = Command::new("/proc/self/exe")
            .args(["-q", "fleet", "push"])
            .args(&self.words)
            .arg(recording)
            .arg(&self.lake)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("failed to start the push: {error}"))?;
        // Nobody listens any more when the recording has ended.
        let _ = self.processes.send(child.id() as i32);
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(reason(&said));
        }
        unmark(recording).map_err(|error| error.to_string())?;
        talk::line(&format!("pushed {}", name(recording)));
        Ok(())
    }
}

/// What a push says is wrong, and the last of what is behind it.
fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim);
    let error = lines().find_map(|line| line.strip_prefix("error: "));
    let cause = lines().rev().find_map(|line| line.strip_prefix("cause: "));
    match (error, cause) {
        (Some(error), Some(cause)) => format!("{error}: {cause}"),
        (Some(error), None) => error.to_owned(),
        (None, _) => said.trim().replace('\n', "; "),
    }
}

fn name(recording: &Path) -> String {
    shown(&recording.display().to_string(), false).into_owned()
}

fn mark_of(recording: &Path) -> PathBuf {
    let mut name = recording.as_os_str().to_owned();
    name.push(MARK);
    PathBuf::from(name)
}

/// Promises that it will be pushed.
pub(super) fn mark(recording: &Path, lake: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(mark_of(recording))?;
    file.write_all(lake.as_bytes())?;
    file.sync_all()
}

fn unmark(recording: &Path) -> io::Result<()> {
    match fs::remove_file(mark_of(recording)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether it was promised, and is not in the lake.
pub(super) fn is_waiting(recording: &Path) -> bool {
    fs::symlink_metadata(mark_of(recording)).is_ok()
}

/// Recordings of that name which were promised, the oldest first.
fn waiting(place: &Place) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = recordings(place)
        .into_iter()
        .filter(|recording| is_waiting(recording))
        .collect();
    found.sort();
    found
}

/// Recordings that were saved under that name: their names are in order of time.
pub(super) fn recordings(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(&place.folder).into_iter().flatten().flatten();
    let is_one = |name: &str| name.ends_with(".wsl") && is_ours(name, &place.stem);
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_one))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_says_what_is_wrong_in_one_line() {
        let said = "error: failed to write `x`\n  cause: Generic S3 error\n  cause: connection refused\n\nhint: later\n";
        assert_eq!(reason(said), "failed to write `x`: connection refused");
        assert_eq!(reason("error: no\n"), "no");
        assert_eq!(reason("a\nb\n"), "a; b");
    }
}
