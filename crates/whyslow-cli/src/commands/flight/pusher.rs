//! Pushes saved recordings to a lake in a separate process, and retries until it succeeds.
//!
//! A pending recording has a marker file, `NAME.wsl.unpushed`, next to it, which is removed once
//! the lake has the recording. The next recorder thus finds pending recordings, however this one
//! ended. While the store is unreachable, recordings stay on disk, within `--max-disk`.

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
/// Delay after a failed push; it doubles with each further failure …
const PAUSE: Duration = Duration::from_secs(1);
/// … up to this.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// A thread that pushes one recording after another.
pub(super) struct Pusher {
    recordings: Sender<PathBuf>,
    thread: JoinHandle<usize>,
}

struct Work {
    lake: String,
    /// Further arguments of the push.
    args: Vec<String>,
    processes: Sender<i32>,
    waiting: VecDeque<PathBuf>,
}

impl Pusher {
    /// Starts with recordings that are pending from earlier runs.
    pub(super) fn start(place: &Place, args: &PushArgs, processes: Sender<i32>) -> Option<Self> {
        let lake = args.push.clone()?;
        let mut push_args = Vec::new();
        for (name, value) in &args.label {
            push_args.extend(["--label".to_owned(), format!("{name}={value}")]);
        }
        push_args.extend(["--cluster".to_owned(), args.cluster.clone()]);
        let work = Work {
            lake,
            args: push_args,
            processes,
            waiting: waiting(place).into(),
        };
        let count = work.waiting.len();
        if count > 0 {
            talk::line(&format!(
                "{count} recordings of earlier runs are waiting to be pushed"
            ));
        }
        let (recordings, taken) = mpsc::channel();
        let thread = thread::spawn(move || work.run(&taken));
        Some(Self { recordings, thread })
    }

    pub(super) fn push(&self, recording: &Path) {
        // The thread outlives this end of the channel.
        let _ = self.recordings.send(recording.to_owned());
    }

    /// Tries pending recordings once more; returns how many are still pending.
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
                            "note: cannot push {recording} yet: {why}; retrying, {} recordings are waiting",
                            self.waiting.len()
                        ));
                    }
                    is_away = true;
                    pause = (pause * 2).clamp(PAUSE, PAUSE_MAX);
                }
            }
        }
        // At the end: each once more, until one fails.
        while let Some(recording) = self.waiting.front().cloned() {
            if let Err(why) = self.push(&recording) {
                let folder = recording.parent().unwrap_or(Path::new("."));
                talk::line(&format!(
                    "note: {} recordings were not pushed: {}; the next `record --push` retries, or: whyslow fleet push {}/*.wsl {}",
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

    /// Runs in a separate process group, which Ctrl-C does not reach.
    fn push(&self, recording: &Path) -> Result<(), String> {
        if !recording.exists() {
            // It was deleted meanwhile.
            return unmark(recording).map_err(|error| error.to_string());
        }
        let child = Command::new("/proc/self/exe")
            .args(["-q", "fleet", "push"])
            .args(&self.args)
            .arg(recording)
            .arg(&self.lake)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start the push: {error}"))?;
        // The receiver is gone once the recording has ended.
        let _ = self.processes.send(child.id() as i32);
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(reason(&stderr));
        }
        unmark(recording).map_err(|error| error.to_string())?;
        talk::line(&format!("pushed {}", name(recording)));
        Ok(())
    }
}

/// The error that a push reports, and its last cause.
fn reason(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim);
    let error = lines().find_map(|line| line.strip_prefix("error: "));
    let cause = lines().rev().find_map(|line| line.strip_prefix("cause: "));
    match (error, cause) {
        (Some(error), Some(cause)) => format!("{error}: {cause}"),
        (Some(error), None) => error.to_owned(),
        (None, _) => stderr.trim().replace('\n', "; "),
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

/// Marks a recording as pending.
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

/// Whether a recording is pending.
pub(super) fn is_waiting(recording: &Path) -> bool {
    fs::symlink_metadata(mark_of(recording)).is_ok()
}

/// Pending recordings of that name, oldest first.
fn waiting(place: &Place) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = recordings(place)
        .into_iter()
        .filter(|recording| is_waiting(recording))
        .collect();
    found.sort();
    found
}

/// Recordings saved under that name; their names sort by time.
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
        let stderr = "error: cannot write `x`\n  cause: Generic S3 error\n  cause: connection refused\n\nhint: later\n";
        assert_eq!(reason(stderr), "cannot write `x`: connection refused");
        assert_eq!(reason("error: no\n"), "no");
        assert_eq!(reason("a\nb\n"), "a; b");
    }
}
