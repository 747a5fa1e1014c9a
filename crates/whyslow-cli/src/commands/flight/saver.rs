//! Saves kept data as recordings while recording continues.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use whyslow_base::talk;
use whyslow_model::text::shown;
use whyslow_record::{SaveReply, SaveRequest, Window};

use super::disk::Disk;
use super::place::Place;
use super::pusher::{self, Pusher};
use crate::cli::PushArgs;

/// A recording takes about as much space as its spool, and both exist for a while.
const DISK_FACTOR: u64 = 2;
/// Saving has low priority, but not the lowest: the machine is often busy when a window is worth saving, and
/// other windows are passed over meanwhile.
const NICENESS: i32 = 5;

/// A thread that saves one window after another.
pub(super) struct Saver {
    windows: SyncSender<Window>,
    /// Processes started by the saver.
    processes: Receiver<i32>,
    /// Windows that arrived while another was being saved.
    passed_over: u64,
    thread: JoinHandle<Saved>,
}

/// Counts of saved and dropped windows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Saved {
    pub(super) recordings: u64,
    /// Dropped for lack of space or time.
    pub(super) dropped: u64,
    /// Not yet in the lake.
    pub(super) waiting: usize,
}

struct Work {
    place: Place,
    disk_max: u64,
    keep_spool: bool,
    processes: Sender<i32>,
    push: PushArgs,
}

impl Saver {
    pub(super) fn start(place: Place, disk_max: u64, keep_spool: bool, push: PushArgs) -> Self {
        // One window is being saved and none is queued: the memory limit has no room for a third.
        let (windows, taken) = mpsc::sync_channel::<Window>(0);
        let (process_sender, processes) = mpsc::channel();
        let pusher = Pusher::start(&place, &push, process_sender.clone());
        let work = Work {
            place,
            disk_max,
            keep_spool,
            processes: process_sender,
            push,
        };
        let thread = thread::spawn(move || {
            // For this thread and its children; saving also works without it.
            let _ = rustix::process::nice(NICENESS);
            let mut done = Saved::default();
            let mut triggered = None;
            for mut window in taken {
                let requests = std::mem::take(&mut window.requests);
                match work.save(&window) {
                    Ok(name) => {
                        done.recordings += 1;
                        print_saved(&window, &name);
                        let recording = std::path::absolute(&name).unwrap_or_else(|_| name.clone());
                        let saved = SaveReply::Saved {
                            recording: recording.clone(),
                            triggered: triggered.clone(),
                        };
                        reply(requests, &saved);
                        if let Some(term) = &window.trigger.term {
                            triggered =
                                Some((recording, format!("{term}: {}", window.trigger.what)));
                        }
                        if let Some(pusher) = &pusher {
                            pusher.push(&name);
                        }
                    }
                    Err(why) => {
                        done.dropped += 1;
                        talk::line(&format!("note: not saved: {why}"));
                        reply(requests, &SaveReply::Failed(why));
                    }
                }
            }
            done.waiting = pusher.map_or(0, Pusher::finish);
            done
        });
        Self {
            windows,
            processes,
            passed_over: 0,
            thread,
        }
    }

    pub(super) fn save(&mut self, window: Window) {
        if let Err(TrySendError::Full(window)) = self.windows.try_send(window) {
            let is_awaited = !window.requests.is_empty();
            reply(window.requests, &SaveReply::Busy);
            // A process that waits tries again.
            if !is_awaited || window.trigger.term.is_some() {
                self.passed_over += 1;
                talk::line("note: not saved: an earlier window is still being written");
            }
        }
    }

    /// Saves the window that ends the recording, after an earlier one.
    pub(super) fn save_last(&mut self, window: Window) {
        if self.windows.send(window).is_err() {
            self.passed_over += 1;
        }
    }

    /// A process of the saver, whose activity is not recorded.
    pub(super) fn new_process(&mut self) -> Option<i32> {
        self.processes.try_recv().ok()
    }

    /// Waits until pending windows are saved, and pushed if possible.
    pub(super) fn finish(self) -> Saved {
        drop(self.windows);
        let mut done = self.thread.join().unwrap_or_default();
        done.dropped += self.passed_over;
        done
    }
}

/// Replies to the processes that wait; those that no longer do are ignored.
fn reply(requests: Vec<SaveRequest>, with: &SaveReply) {
    for request in requests {
        let _ = request.reply(with);
    }
}

fn print_saved(window: &Window, name: &Path) {
    talk::line(&format!(
        "saved {}: {:.1} s",
        shown(&name.display().to_string(), false),
        window.length().as_secs_f64()
    ));
    if let Some(requested) = window.cut() {
        talk::line(&format!(
            "note: shorter than {:.1} s because the memory for kept data was full (increase --ring-memory)",
            requested.as_secs_f64()
        ));
    }
}

impl Work {
    fn save(&self, window: &Window) -> Result<PathBuf, String> {
        let failed = |what: &str, path: &Path, error: std::io::Error| {
            format!("cannot {what} `{}`: {error}", path.display())
        };
        let bytes = window.bytes().saturating_mul(DISK_FACTOR);
        let room = || -> Result<Option<String>, String> {
            let disk = Disk::of(&self.place);
            let disk = disk.map_err(|error| failed("read", &self.place.folder, error))?;
            Ok(disk.refuses(bytes, self.disk_max))
        };
        while let Some(why) = room()? {
            if !self.make_room() {
                return Err(why);
            }
        }
        let (recording, spool) = self.new_name();
        window
            .write(&spool)
            .map_err(|error| failed("write", &spool, error))?;
        self.import(&spool, &recording)?;
        if let Some(lake) = &self.push.push {
            pusher::mark(&recording, lake).map_err(|error| failed("mark", &recording, error))?;
        }
        if !self.keep_spool {
            fs::remove_dir_all(&spool).map_err(|error| failed("delete", &spool, error))?;
        }
        Ok(recording)
    }

    /// Deletes the oldest pushed recording; returns false if there is none.
    fn make_room(&self) -> bool {
        if self.push.push.is_none() {
            return false;
        }
        let mut recordings = pusher::recordings(&self.place).into_iter();
        let Some(oldest) = recordings.find(|recording| !pusher::is_waiting(recording)) else {
            return false;
        };
        let is_gone = fs::remove_dir_all(&oldest).is_ok();
        if is_gone {
            let name = oldest.display().to_string();
            talk::line(&format!(
                "deleted {} (already pushed) to free disk space",
                shown(&name, false)
            ));
        }
        is_gone
    }

    /// An unused name with the current time, and that of its spool.
    fn new_name(&self) -> (PathBuf, PathBuf) {
        let Place { folder, stem } = &self.place;
        let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        let mut number = 1;
        loop {
            let more = if number > 1 {
                format!("-{number}")
            } else {
                String::new()
            };
            let recording = folder.join(format!("{stem}-{now}{more}.wsl"));
            let spool = folder.join(format!("{stem}-{now}{more}.wsl.spool"));
            if !recording.exists() && !spool.exists() {
                return (recording, spool);
            }
            number += 1;
        }
    }

    /// Imports in a separate process: its memory does not count against the limit, and Ctrl-C does
    /// not reach it, so saved data is kept.
    fn import(&self, spool: &Path, recording: &Path) -> Result<(), String> {
        let hint = format!("import it: whyslow import {}", spool.display());
        let mut child = Command::new("/proc/self/exe")
            .args(["-q", "import"])
            .arg(spool)
            .arg("-o")
            .arg(recording)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start the import: {error}; {hint}"))?;
        // The receiver is gone once the recording has ended.
        let _ = self.processes.send(child.id() as i32);
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the import exited with {status}; {hint}")),
            Err(error) => Err(format!("cannot wait for the import: {error}; {hint}")),
        }
    }
}
