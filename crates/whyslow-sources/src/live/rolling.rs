//! The last minute of this machine, again and again as one recording.
//!
//! Spools follow each other every few seconds. Those of the last minute lie in one folder then, as the
//! chapters of one spool, and are imported together: what crosses their borders is whole. How often that
//! is done depends on what it costs.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_ingest::ImportOptions;
use whyslow_model::Ns;
use whyslow_record::Topic;

use super::between::{BACKLOG, Between};
use super::follow::to_follow;
use super::plan::Plan;
use super::recorder::Recorder;
use super::room::Room;
use super::whom::Whom;

/// Of a spool.
const LENGTH: Ns = 3_000_000_000;
/// So many are a minute.
const SPOOLS_MAX: usize = 20;
/// They may lie in memory: of a busy machine it is less than a minute.
const BYTES_MAX: u64 = 512 << 20;
/// Importing goes on for such a part of the time at most.
const SHARE: u32 = 5;
/// A minute of which an import takes longer is cut shorter: who looks wants to see what is new.
const IMPORT_MAX: Duration = Duration::from_secs(6);
const SPOOLS_MIN: usize = 2;

/// What becomes of recordings, on a thread of its own.
pub struct Shown<'s> {
    /// At first.
    pub begin: &'s (dyn Fn() + Sync),
    /// Called with each recording, which is removed by whoever takes it.
    pub each: &'s mut (dyn FnMut(&Path) -> Result<(), Failure> + Send),
}

/// Records, or follows who does, and hands on the place of a recording of the last minute whenever there
/// is a new one; it belongs to who gets it. Until somebody says stop, or nobody records any more.
pub fn roll(
    whom: Whom,
    room: &Room,
    stop: &Arc<AtomicBool>,
    talk: &TalkArgs,
    shown: Shown<'_>,
) -> Result<(), Failure> {
    let plan = Plan {
        interval: Some(LENGTH),
        ..Plan::of(whom, Topic::DEFAULT)
    };
    let followed = to_follow(&plan, talk)?;
    let between = Between::default();
    let (sender, receiver) = sync_channel(BACKLOG);
    let (collected, spools) = channel();
    // That importing takes long is told by how often it is done.
    let silent = TalkArgs {
        quiet: true,
        ..talk.clone()
    };
    let (recorded, shown) = thread::scope(|scope| {
        let rolling = Rolling {
            room,
            spools: VecDeque::new(),
            spools_max: SPOOLS_MAX,
            due: Instant::now(),
            number: 0,
        };
        let between = &between;
        // Recording goes on whatever importing takes: nothing has to wait.
        scope.spawn(move || {
            for spool in receiver {
                between.waiting.fetch_sub(1, Ordering::Relaxed);
                if collected.send(spool).is_err() {
                    return;
                }
            }
        });
        let shown = scope.spawn(move || {
            let done = rolling.run(&spools, shown);
            between.is_over.store(true, Ordering::Relaxed);
            done
        });
        let recorder = Recorder::new(&plan, room, (between, stop), sender);
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
    room: &'r Room,
    /// With their bytes, the oldest first.
    spools: VecDeque<(PathBuf, u64)>,
    spools_max: usize,
    /// When the next recording may be made.
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
                (shown.each)(&self.import()?)?;
                let cost = begun.elapsed();
                self.due = begun + cost * SHARE;
                self.spools_max = affordable(self.spools.len(), cost);
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
        self.spools.len() > self.spools_max || self.spools.len() > 1 && bytes > BYTES_MAX
    }

    /// One recording of all.
    fn import(&mut self) -> Result<PathBuf, Failure> {
        self.number += 1;
        let together = self.room.together(self.number);
        let failed = |error| Failure::writing(&together, error);
        fs::create_dir(&together).map_err(failed)?;
        for (number, (spool, _)) in self.spools.iter().enumerate() {
            for file in files(spool)? {
                let name = format!("{number:04}-{}", file.file_name().to_string_lossy());
                fs::hard_link(file.path(), together.join(name)).map_err(failed)?;
            }
        }
        let recording = self.room.recording(self.number);
        let options = ImportOptions::new(&recording);
        let sources = std::slice::from_ref(&together);
        let imported = whyslow_ingest::import(sources, &options, &mut |_| {});
        fs::remove_dir_all(&together).map_err(failed)?;
        imported?;
        Ok(recording)
    }
}

/// How many spools can be imported in time, if so many cost that.
fn affordable(spools: usize, cost: Duration) -> usize {
    let each = cost.as_secs_f64() / spools.max(1) as f64;
    let count = IMPORT_MAX.as_secs_f64() / each.max(f64::MIN_POSITIVE);
    (count as usize).clamp(SPOOLS_MIN, SPOOLS_MAX)
}

fn files(spool: &Path) -> Result<Vec<fs::DirEntry>, Failure> {
    let entries = fs::read_dir(spool).and_then(Iterator::collect);
    entries.map_err(|error| Failure::reading(spool, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_too_much_is_cut_shorter() {
        let check = |spools, seconds, want| {
            let cost = Duration::from_secs_f64(seconds);
            assert_eq!(affordable(spools, cost), want, "{spools} {seconds}");
        };
        check(1, 0.0, SPOOLS_MAX);
        check(1, 0.2, SPOOLS_MAX);
        check(20, 6.0, 20);
        check(20, 12.0, 10);
        check(4, 100.0, SPOOLS_MIN);
        check(0, 1.0, 6);
    }
}
