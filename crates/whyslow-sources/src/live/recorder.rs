//! The recorder of `@live`: decides when a spool ends and the next one starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::{FollowError, Following, Options, Progress, Ready, Step};

use super::folder::LiveFolder;
use super::follow::failure;
use super::handover::{BACKLOG, Handover};
use super::plan::Plan;

/// Recording time without an interval.
const LENGTH: Duration = Duration::from_secs(10);

/// An interval ends early when its spool reaches this size, since it may be in memory.
const SPOOL_BYTES: u64 = 512 << 20;

pub(super) struct Recorder<'r> {
    folder: &'r LiveFolder,
    handover: &'r Handover,
    stop: &'r Arc<AtomicBool>,
    sender: SyncSender<PathBuf>,
    schedule: Schedule,
}

/// Schedule of intervals.
#[derive(Debug)]
struct Schedule {
    interval: Duration,
    count: Option<u64>,
    /// Number of completed intervals.
    over: u64,
    due: Duration,
    /// The next spool was requested, but has not started yet.
    is_switching: bool,
    is_late: bool,
}

/// The current state of recording.
#[derive(Debug, Clone, Copy)]
struct State {
    elapsed: Duration,
    is_full: bool,
    has_room: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Continue,
    NextSpool,
    End,
}

impl Schedule {
    fn step(&mut self, now: State) -> Action {
        if self.is_switching || now.elapsed < self.due && !now.is_full {
            return Action::Continue;
        }
        if self.count == Some(self.over + 1) {
            return Action::End;
        }
        if !now.has_room {
            self.is_late = true;
            return Action::Continue;
        }
        self.is_switching = true;
        Action::NextSpool
    }

    /// The next spool has started.
    fn begin(&mut self, elapsed: Duration) {
        self.is_switching = false;
        self.over += 1;
        // Intervals are aligned to a grid, unless they fall behind.
        let next = self.due + self.interval;
        let is_kept = !std::mem::take(&mut self.is_late) && next > elapsed + self.interval / 2;
        self.due = if is_kept {
            next
        } else {
            elapsed + self.interval
        };
    }
}

impl<'r> Recorder<'r> {
    pub(super) fn new(
        plan: &Plan,
        folder: &'r LiveFolder,
        (handover, stop): (&'r Handover, &'r Arc<AtomicBool>),
        sender: SyncSender<PathBuf>,
    ) -> Self {
        let interval = plan.interval;
        let interval = interval.map(|ns| Duration::from_nanos(ns.max(0) as u64));
        Self {
            folder,
            handover,
            stop,
            sender,
            schedule: Schedule {
                interval: interval.unwrap_or(LENGTH),
                count: match interval {
                    None => Some(1),
                    Some(_) => plan.count.map(|count| count.max(1) as u64),
                },
                over: 0,
                due: interval.unwrap_or(LENGTH),
                is_switching: false,
                is_late: false,
            },
        }
    }

    /// Runs until all answers are given, or until interrupted.
    pub(super) fn record(mut self, plan: &Plan, talk: &TalkArgs) -> Result<(), Failure> {
        let mut options = Options::new(self.folder.spool(0));
        options.topics.clone_from(&plan.topics);
        options.pids.clone_from(&plan.pids);
        options.only_pids = !plan.pids.is_empty();
        options.may_turn = true;
        let ready = |ready: &Ready<'_>| print_ready(ready, plan, talk);
        whyslow_record::record(&options, ready, self.each(talk))?;
        self.hand_over(self.schedule.over);
        Ok(())
    }

    /// The same with the spools of another recorder.
    pub(super) fn follow(
        mut self,
        followed: Following,
        plan: &Plan,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let spool = self.folder.spool(0);
        let mut has_begun = talk.quiet;
        let mut each = self.each(talk);
        let followed = followed.run(&spool, |progress| {
            if !std::mem::replace(&mut has_begun, true) {
                talk::line(&end_hint(plan));
            }
            each(progress)
        });
        drop(each);
        match followed {
            Ok(()) => self.hand_over(self.schedule.over),
            // Its last spool is complete.
            Err(FollowError::Ended { has_spool: true }) => self.hand_over(self.schedule.over),
            Err(_) => {}
        }
        followed.map_err(failure)
    }

    fn each(&mut self, talk: &TalkArgs) -> impl FnMut(&Progress) -> Step {
        let mut begun = None;
        let mut is_reported = talk.quiet;
        move |progress| {
            // Count from the moment that the BPF programs run.
            let begun = *begun.get_or_insert_with(Instant::now);
            let step = self.step(progress, begun.elapsed());
            if self.schedule.is_late && !is_reported {
                is_reported = true;
                talk::line("note: answers take longer than the interval; extending the interval");
            }
            step
        }
    }

    fn step(&mut self, progress: &Progress, elapsed: Duration) -> Step {
        if self.stop.load(Ordering::Relaxed) || self.handover.is_over.load(Ordering::Relaxed) {
            return Step::End;
        }
        if progress.turns > self.schedule.over {
            self.hand_over(self.schedule.over);
            self.schedule.begin(elapsed);
        }
        let action = self.schedule.step(State {
            elapsed,
            is_full: progress.spool_bytes >= SPOOL_BYTES,
            has_room: self.handover.waiting.load(Ordering::Relaxed) < BACKLOG,
        });
        match action {
            Action::Continue => Step::GoOn,
            Action::NextSpool => Step::Turn(self.folder.spool(self.schedule.over + 1)),
            Action::End => Step::End,
        }
    }

    /// Passes a complete spool on.
    fn hand_over(&self, number: u64) {
        self.handover.waiting.fetch_add(1, Ordering::Relaxed);
        // The receiver is gone if no further answers are needed.
        let _ = self.sender.send(self.folder.spool(number));
    }
}

fn print_ready(ready: &Ready<'_>, plan: &Plan, talk: &TalkArgs) {
    for off in ready.off {
        talk::line(&format!(
            "note: not recorded: {} ({}: {})",
            off.provides, off.program, off.reason
        ));
    }
    if talk.quiet {
        return;
    }
    talk::line(&end_hint(plan));
}

fn end_hint(plan: &Plan) -> String {
    match (plan.interval, plan.count) {
        (None, _) => format!(
            "recording for {}; press Ctrl-C to stop early",
            whyslow_render::duration(LENGTH)
        ),
        (Some(_), None) => "press Ctrl-C to stop".to_owned(),
        (Some(_), Some(_)) => "press Ctrl-C to stop early".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn schedule(count: Option<u64>) -> Schedule {
        Schedule {
            interval: 1_000 * MS,
            count,
            over: 0,
            due: 1_000 * MS,
            is_switching: false,
            is_late: false,
        }
    }

    fn at(ms: u32) -> State {
        State {
            elapsed: ms * MS,
            is_full: false,
            has_room: true,
        }
    }

    #[test]
    fn intervals_follow_each_other_on_a_grid() {
        let mut schedule = schedule(Some(3));
        assert_eq!(schedule.step(at(999)), Action::Continue);
        assert_eq!(schedule.step(at(1_030)), Action::NextSpool);
        assert_eq!(schedule.step(at(1_060)), Action::Continue);
        schedule.begin(1_080 * MS);
        assert_eq!(schedule.step(at(1_999)), Action::Continue);
        assert_eq!(schedule.step(at(2_000)), Action::NextSpool);
        schedule.begin(2_010 * MS);
        assert_eq!(schedule.step(at(3_001)), Action::End);
    }

    #[test]
    fn an_interval_gets_longer_while_answers_wait() {
        let mut schedule = schedule(None);
        let no_room = |ms| State {
            has_room: false,
            ..at(ms)
        };
        assert_eq!(schedule.step(no_room(1_000)), Action::Continue);
        assert!(schedule.is_late);
        assert_eq!(schedule.step(no_room(3_700)), Action::Continue);
        assert_eq!(schedule.step(at(3_900)), Action::NextSpool);
        schedule.begin(3_950 * MS);
        assert!(!schedule.is_late);
        assert_eq!(schedule.due, 4_950 * MS);
    }

    #[test]
    fn a_spool_that_is_full_ends_its_interval() {
        let mut schedule = schedule(None);
        let full = State {
            is_full: true,
            ..at(200)
        };
        assert_eq!(schedule.step(full), Action::NextSpool);
        schedule.begin(250 * MS);
        assert_eq!(schedule.due, 2_000 * MS);
    }
}
