//! The recorder of `@live`: when a spool ends and the next one begins.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::{FollowError, Following, Options, Progress, Ready, Step};

use super::between::{BACKLOG, Between};
use super::follow::failure;
use super::plan::Plan;
use super::room::Room;

/// Recorded when no interval is asked for.
const LENGTH: Duration = Duration::from_secs(10);

/// An interval ends before its time when its spool has so many bytes: it may lie in memory.
const SPOOL_BYTES: u64 = 512 << 20;

pub(super) struct Recorder<'r> {
    room: &'r Room,
    between: &'r Between,
    stop: &'r Arc<AtomicBool>,
    sender: SyncSender<PathBuf>,
    turns: Turns,
}

/// When intervals end.
#[derive(Debug)]
struct Turns {
    interval: Duration,
    count: Option<u64>,
    /// Intervals that are over.
    over: u64,
    due: Duration,
    /// The next spool was asked for and does not begin yet.
    is_turning: bool,
    is_late: bool,
}

/// What the present moment is for intervals.
#[derive(Debug, Clone, Copy)]
struct Now {
    elapsed: Duration,
    is_full: bool,
    has_room: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Turn,
    End,
}

impl Turns {
    fn step(&mut self, now: Now) -> Then {
        if self.is_turning || now.elapsed < self.due && !now.is_full {
            return Then::GoOn;
        }
        if self.count == Some(self.over + 1) {
            return Then::End;
        }
        if !now.has_room {
            self.is_late = true;
            return Then::GoOn;
        }
        self.is_turning = true;
        Then::Turn
    }

    /// The next spool has begun.
    fn begin(&mut self, elapsed: Duration) {
        self.is_turning = false;
        self.over += 1;
        // Intervals follow each other on a grid, unless it cannot be kept.
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
        room: &'r Room,
        (between, stop): (&'r Between, &'r Arc<AtomicBool>),
        sender: SyncSender<PathBuf>,
    ) -> Self {
        let interval = plan.interval;
        let interval = interval.map(|ns| Duration::from_nanos(ns.max(0) as u64));
        Self {
            room,
            between,
            stop,
            sender,
            turns: Turns {
                interval: interval.unwrap_or(LENGTH),
                count: match interval {
                    None => Some(1),
                    Some(_) => plan.count.map(|count| count.max(1) as u64),
                },
                over: 0,
                due: interval.unwrap_or(LENGTH),
                is_turning: false,
                is_late: false,
            },
        }
    }

    /// Until all answers are given that were asked for, or somebody says stop.
    pub(super) fn record(mut self, plan: &Plan, talk: &TalkArgs) -> Result<(), Failure> {
        let mut options = Options::new(self.room.spool(0));
        options.topics.clone_from(&plan.topics);
        options.pids.clone_from(&plan.pids);
        options.only_pids = !plan.pids.is_empty();
        options.may_turn = true;
        let ready = |ready: &Ready<'_>| tell_ready(ready, plan, talk);
        whyslow_record::record(&options, ready, self.each(talk))?;
        self.hand_over(self.turns.over);
        Ok(())
    }

    /// The same with what another recorder records.
    pub(super) fn follow(
        mut self,
        followed: Following,
        plan: &Plan,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let spool = self.room.spool(0);
        let mut has_begun = talk.quiet;
        let mut each = self.each(talk);
        let followed = followed.run(&spool, |progress| {
            if !std::mem::replace(&mut has_begun, true) {
                talk::line(&how_long(plan));
            }
            each(progress)
        });
        drop(each);
        match followed {
            Ok(()) => self.hand_over(self.turns.over),
            // Its last spool is whole.
            Err(FollowError::Ended { has_spool: true }) => self.hand_over(self.turns.over),
            Err(_) => {}
        }
        followed.map_err(failure)
    }

    fn each(&mut self, talk: &TalkArgs) -> impl FnMut(&Progress) -> Step {
        let mut begun = None;
        let mut has_told = talk.quiet;
        move |progress| {
            // From the moment on that the programs run.
            let begun = *begun.get_or_insert_with(Instant::now);
            let step = self.step(progress, begun.elapsed());
            if self.turns.is_late && !has_told {
                has_told = true;
                talk::line("note: answers take longer than the interval, which is longer now");
            }
            step
        }
    }

    fn step(&mut self, progress: &Progress, elapsed: Duration) -> Step {
        if self.stop.load(Ordering::Relaxed) || self.between.is_over.load(Ordering::Relaxed) {
            return Step::End;
        }
        if progress.turns > self.turns.over {
            self.hand_over(self.turns.over);
            self.turns.begin(elapsed);
        }
        let then = self.turns.step(Now {
            elapsed,
            is_full: progress.spool_bytes >= SPOOL_BYTES,
            has_room: self.between.waiting.load(Ordering::Relaxed) < BACKLOG,
        });
        match then {
            Then::GoOn => Step::GoOn,
            Then::Turn => Step::Turn(self.room.spool(self.turns.over + 1)),
            Then::End => Step::End,
        }
    }

    /// A spool that is whole.
    fn hand_over(&self, number: u64) {
        self.between.waiting.fetch_add(1, Ordering::Relaxed);
        // Who wants no further answers does not take it.
        let _ = self.sender.send(self.room.spool(number));
    }
}

fn tell_ready(ready: &Ready<'_>, plan: &Plan, talk: &TalkArgs) {
    for off in ready.off {
        talk::line(&format!(
            "note: not recorded: {} ({}: {})",
            off.tells, off.program, off.reason
        ));
    }
    if talk.quiet {
        return;
    }
    talk::line(&how_long(plan));
}

fn how_long(plan: &Plan) -> String {
    match (plan.interval, plan.count) {
        (None, _) => format!(
            "recording for {}; Ctrl-C ends it early",
            whyslow_render::duration(LENGTH)
        ),
        (Some(_), None) => "Ctrl-C to stop".to_owned(),
        (Some(_), Some(_)) => "Ctrl-C ends it early".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn turns(count: Option<u64>) -> Turns {
        Turns {
            interval: 1_000 * MS,
            count,
            over: 0,
            due: 1_000 * MS,
            is_turning: false,
            is_late: false,
        }
    }

    fn at(ms: u32) -> Now {
        Now {
            elapsed: ms * MS,
            is_full: false,
            has_room: true,
        }
    }

    #[test]
    fn intervals_follow_each_other_on_a_grid() {
        let mut turns = turns(Some(3));
        assert_eq!(turns.step(at(999)), Then::GoOn);
        assert_eq!(turns.step(at(1_030)), Then::Turn);
        assert_eq!(turns.step(at(1_060)), Then::GoOn);
        turns.begin(1_080 * MS);
        assert_eq!(turns.step(at(1_999)), Then::GoOn);
        assert_eq!(turns.step(at(2_000)), Then::Turn);
        turns.begin(2_010 * MS);
        assert_eq!(turns.step(at(3_001)), Then::End);
    }

    #[test]
    fn an_interval_gets_longer_while_answers_wait() {
        let mut turns = turns(None);
        let no_room = |ms| Now {
            has_room: false,
            ..at(ms)
        };
        assert_eq!(turns.step(no_room(1_000)), Then::GoOn);
        assert!(turns.is_late);
        assert_eq!(turns.step(no_room(3_700)), Then::GoOn);
        assert_eq!(turns.step(at(3_900)), Then::Turn);
        turns.begin(3_950 * MS);
        assert!(!turns.is_late);
        assert_eq!(turns.due, 4_950 * MS);
    }

    #[test]
    fn a_spool_that_is_full_ends_its_interval() {
        let mut turns = turns(None);
        let full = Now {
            is_full: true,
            ..at(200)
        };
        assert_eq!(turns.step(full), Then::Turn);
        turns.begin(250 * MS);
        assert_eq!(turns.due, 2_000 * MS);
    }
}
