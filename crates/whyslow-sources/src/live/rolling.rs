//! A rolling recording of the last minute of this machine.
//!
//! A new spool starts every few seconds. The spools of the last minute are imported together, as
//! chapters of one spool, so that events that cross their borders are complete. How often they are
//! imported, and how many of them, depends on the cost.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::Instant;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_ingest::ImportOptions;
use whyslow_model::Ns;
use whyslow_record::Topic;

use super::folder::LiveFolder;
use super::follow::to_follow;
use super::handover::{BACKLOG, Handover};
use super::import_budget::{ImportBudget, thread_time};
use super::plan::Plan;
use super::recorder::Recorder;
use super::recorder_choice::RecorderChoice;

/// Length of a spool.
const LENGTH: Ns = 3_000_000_000;
/// Number of spools in a minute.
const SPOOLS_MAX: usize = 20;
/// Limit of all spools, which may be in memory: on a busy machine they hold less than a minute.
const BYTES_MAX: u64 = 512 << 20;

/// Callbacks for recordings, which run on their own thread.
pub struct Shown<'s> {
    /// Called once at the start.
    pub begin: &'s (dyn Fn() + Sync),
    /// Called with each recording, which the callee has to delete.
    pub each: &'s mut (dyn FnMut(&Path) -> Result<(), Failure> + Send),
}

/// Records, or follows a recorder, and passes on the path of a recording of the last minute
/// whenever there is a new one, which the receiver has to delete. Runs until interrupted or until
/// the recorder ends.
pub fn roll(
    choice: RecorderChoice,
    folder: &LiveFolder,
    stop: &Arc<AtomicBool>,
    talk: &TalkArgs,
    shown: Shown<'_>,
) -> Result<(), Failure> {
    let plan = Plan {
        interval: Some(LENGTH),
        ..Plan::of(choice, Topic::DEFAULT)
    };
    let followed = to_follow(&plan, talk)?;
    let handover = Handover::default();
    let (sender, receiver) = sync_channel(BACKLOG);
    let (collected, spools) = channel();
    // Slow imports show in the frequency of updates: no note needed.
    let silent = TalkArgs {
        quiet: true,
        ..talk.clone()
    };
    let (recorded, shown) = thread::scope(|scope| {
        let rolling = Rolling {
            folder,
            spools: VecDeque::new(),
            budget: ImportBudget::default(),
            due: Instant::now(),
            number: 0,
        };
        let handover = &handover;
        // Recording continues during an import: nothing may block.
        scope.spawn(move || {
            for spool in receiver {
                handover.waiting.fetch_sub(1, Ordering::Relaxed);
                if collected.send(spool).is_err() {
                    return;
                }
            }
        });
        let shown = scope.spawn(move || {
            let done = rolling.run(&spools, shown);
            handover.is_over.store(true, Ordering::Relaxed);
            done
        });
        let recorder = Recorder::new(&plan, folder, (handover, stop), sender);
        let recorded = match followed {
            Some(followed) => recorder.follow(followed, &plan, &silent),
            None => recorder.record(&plan, &silent),
        };
        (recorded, shown.join())
    });
    let shown = shown.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    recorded.and(shown)
}

struct Rolling<'r> {
    folder: &'r LiveFolder,
    /// With their sizes, oldest first.
    spools: VecDeque<(PathBuf, u64)>,
    budget: ImportBudget,
    /// Earliest time of the next import.
    due: Instant,
    number: u64,
}

impl Rolling<'_> {
    fn run(mut self, spools: &Receiver<PathBuf>, shown: Shown<'_>) -> Result<(), Failure> {
        (shown.begin)();
        while let Ok(spool) = spools.recv() {
            self.take(spool)?;
            while let Ok(spool) = spools.try_recv() {
                self.take(spool)?;
            }
            let begun = Instant::now();
            if begun >= self.due {
                let before = thread_time();
                let (recording, bytes) = self.import()?;
                (shown.each)(&recording)?;
                let cost = thread_time().saturating_sub(before);
                self.due = begun + self.budget.spend(bytes, cost);
            }
        }
        Ok(())
    }

    fn take(&mut self, spool: PathBuf) -> Result<(), Failure> {
        let bytes = files(&spool)?
            .iter()
            .filter_map(|file| file.metadata().ok())
            .map(|about| about.len())
            .sum();
        self.spools.push_back((spool, bytes));
        while self.are_too_many() {
            let Some((oldest, _)) = self.spools.pop_front() else {
                break;
            };
            fs::remove_dir_all(&oldest).map_err(|error| Failure::writing(&oldest, error))?;
        }
        Ok(())
    }

    fn are_too_many(&self) -> bool {
        let bytes: u64 = self.spools.iter().map(|(_, bytes)| bytes).sum();
        self.spools.len() > SPOOLS_MAX || self.spools.len() > 1 && bytes > BYTES_MAX
    }

    /// Imports the newest spools as one recording, as many as the budget allows. Returns the recording
    /// and the size of the spools.
    fn import(&mut self) -> Result<(PathBuf, u64), Failure> {
        let newest_first = self.spools.iter().rev().map(|(_, bytes)| *bytes);
        let count = self.budget.affordable(newest_first);
        let older = self.spools.len() - count;
        self.number += 1;
        let together = self.folder.together(self.number);
        let failed = |error| Failure::writing(&together, error);
        fs::create_dir(&together).map_err(failed)?;
        let mut bytes = 0;
        for (number, (spool, size)) in self.spools.iter().skip(older).enumerate() {
            bytes += size;
            for file in files(spool)? {
                let name = format!("{number:04}-{}", file.file_name().to_string_lossy());
                fs::hard_link(file.path(), together.join(name)).map_err(failed)?;
            }
        }
        let recording = self.folder.recording(self.number);
        let options = ImportOptions::new(&recording);
        let sources = std::slice::from_ref(&together);
        let imported = whyslow_ingest::import(sources, &options, &mut |_| {});
        fs::remove_dir_all(&together).map_err(failed)?;
        imported?;
        Ok((recording, bytes))
    }
}

fn files(spool: &Path) -> Result<Vec<fs::DirEntry>, Failure> {
    let entries = fs::read_dir(spool).and_then(Iterator::collect);
    entries.map_err(|error| Failure::reading(spool, error))
}
