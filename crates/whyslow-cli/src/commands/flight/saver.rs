//! Makes recordings of what was kept, beside the recording that goes on.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use whyslow_base::talk;
use whyslow_model::text::shown;
use whyslow_record::Window;

use super::disk::Disk;
use super::place::Place;
use super::pusher::{self, Pusher};
use crate::cli::PushArgs;

/// A recording takes about as much as its spool, and both are there for a while.
const DISK_FACTOR: u64 = 2;
/// Who saves is to be in nobody's way.
const NICENESS: i32 = 10;

/// A thread that saves one window after another.
pub(super) struct Saver {
    windows: SyncSender<Window>,
    /// Processes that it started.
    processes: Receiver<i32>,
    /// Windows that came while one was being saved.
    passed_over: u64,
    thread: JoinHandle<Saved>,
}

/// What became of all that was to be saved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Saved {
    pub(super) recordings: u64,
    /// For which there was no room, or no time.
    pub(super) dropped: u64,
    /// That the lake does not have yet.
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
        // One is being saved, none waits: memory for a third is not foreseen.
        let (windows, taken) = mpsc::sync_channel::<Window>(0);
        let (tell, processes) = mpsc::channel();
        let pusher = Pusher::start(&place, &push, tell.clone());
        let work = Work {
            place,
            disk_max,
            keep_spool,
            processes: tell,
            push,
        };
        let thread = thread::spawn(move || {
            // Of this thread and what it starts; without it saving is only less polite.
            let _ = rustix::process::nice(NICENESS);
            let mut done = Saved::default();
            for window in taken {
                match work.save(&window) {
                    Ok(name) => {
                        done.recordings += 1;
                        tell_saved(&window, &name);
                        if let Some(pusher) = &pusher {
                            pusher.push(&name);
                        }
                    }
                    Err(why) => {
                        done.dropped += 1;
                        talk::line(&format!("note: not saved: {why}"));
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
        if let Err(TrySendError::Full(_)) = self.windows.try_send(window) {
            self.passed_over += 1;
            talk::line("note: not saved: those before it are still being written");
        }
    }

    /// A process that does nothing that should be recorded as somebody's.
    pub(super) fn new_process(&mut self) -> Option<i32> {
        self.processes.try_recv().ok()
    }

    /// Waits for what is being saved, and for what can be pushed.
    pub(super) fn finish(self) -> Saved {
        drop(self.windows);
        let mut done = self.thread.join().unwrap_or_default();
        done.dropped += self.passed_over;
        done
    }
}

fn tell_saved(window: &Window, name: &Path) {
    talk::line(&format!(
        "saved {}: {:.1} s",
        shown(&name.display().to_string(), false),
        window.length().as_secs_f64()
    ));
    if let Some(wanted) = window.cut() {
        talk::line(&format!(
            "note: that is less than {:.1} s because memory did not suffice: --ring-memory makes it more",
            wanted.as_secs_f64()
        ));
    }
}

impl Work {
    fn save(&self, window: &Window) -> Result<PathBuf, String> {
        let failed = |what: &str, path: &Path, error: std::io::Error| {
            format!("failed to {what} `{}`: {error}", path.display())
        };
        let bytes = window.bytes().saturating_mul(DISK_FACTOR);
        let room = || -> Result<Option<String>, String> {
            let disk = Disk::of(&self.place);
            let disk = disk.map_err(|error| failed("look at", &self.place.folder, error))?;
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

    /// Deletes the oldest recording that a lake has: false if there is none.
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
                "deleted {}, which was pushed, to make room",
                shown(&name, false)
            ));
        }
        is_gone
    }

    /// A name after the time that nothing has, and that of its spool.
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

    /// In a process of its own, whose memory is no part of this one's, and which Ctrl-C does not
    /// reach: what was saved is to be kept.
    fn import(&self, spool: &Path, recording: &Path) -> Result<(), String> {
        let hint = format!(
            "whyslow import {} turns it into a recording",
            spool.display()
        );
        let mut child = Command::new("/proc/self/exe")
            .args(["-q", "import"])
            .arg(spool)
            .arg("-o")
            .arg(recording)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("failed to start the import: {error}; {hint}"))?;
        // Nobody listens any more when the recording has ended.
        let _ = self.processes.send(child.id() as i32);
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the import ended with {status}; {hint}")),
            Err(error) => Err(format!("the import went astray: {error}; {hint}")),
        }
    }
}
