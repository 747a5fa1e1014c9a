//! Turns samples into rows: what a thread did during an interval, with its stack.
//!
//! A sample stands for the time since the previous one. If the thread was off-CPU at both and has
//! not run in between, nothing can have changed: that is one row, over any number of samples. The
//! stack of a running thread is the one taken by a tick of its CPU nearest to the sample.
//!
//! The sampler itself preempts a thread. So a thread that waits for a CPU counts as running if it
//! was on CPU for most of the time since the previous sample, according to the scheduler.

use std::collections::{HashMap, VecDeque};

use whyslow_model::spool::{COMPAT, Encoder, Kind, Switch, WallEnd, WallRecord};

use super::thread_sample::{Away, Doing, Run, ThreadSample};
use super::unwind::{End, Walked};

/// Maximum length of a row, so that rows are also written for recordings that are cut off or kept
/// only for a while.
const ROW_MAX_NS: u64 = 2_000_000_000;
/// Maximum time that a round waits for its stacks.
const WAIT_MAX_NS: u64 = 500_000_000;
/// Maximum number of waiting rounds; beyond it the first is written as it is.
const ROUNDS_MAX: usize = 256;
/// A stack not used after this many rounds is dropped: it came too late for a round that no longer
/// waited, and its thread had moved on. A round may be in the channel for as long as that has room.
const UNUSED_ROUNDS_MAX: u64 = 2 * super::ROUNDS_MAX as u64;

/// Samples of all threads, one after another.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) begun: u64,
    pub(super) ended: u64,
    /// With the job number of the stack.
    pub(super) samples: Vec<(ThreadSample, Option<u64>)>,
    /// Number of rounds that were due before it, and skipped.
    pub(super) missed: u64,
}

/// A stack, and the context of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stack {
    kernel: Vec<u64>,
    user: Vec<u64>,
    end: WallEnd,
    nr: i32,
    is_compat: bool,
    cpu: Option<u16>,
}

/// A thread, with its open row.
#[derive(Debug)]
struct Thread {
    pid: i32,
    round: u64,
    switches: u64,
    /// CPU time so far, in ns.
    ran: u64,
    since: u64,
    last: u64,
    state: u32,
    credits: u32,
    stack: Stack,
    /// Job number of its stack, if the round could not wait for it.
    job: Option<u64>,
    /// The symbols of its stack were requested for the current spool.
    is_seen: bool,
}

impl Thread {
    /// Its stack came late: it is valid, because the reader found that the thread had not run.
    fn settle(&mut self, walked: &mut HashMap<u64, Walked>) {
        let late = self.job.and_then(|job| walked.remove(&job));
        if late.is_some() {
            (self.stack.user, self.stack.end) = user(late, true);
            self.job = None;
            self.is_seen = false;
        }
    }

    fn see(&mut self, names: &mut dyn Names) {
        let is_running = self.state == WallRecord::ON_CPU;
        let addresses = (self.stack.kernel.as_slice(), self.stack.user.as_slice());
        names.see(self.pid, self.last, addresses, is_running);
        self.is_seen = true;
    }
}

/// A running thread, with its stack once that is unwound.
#[derive(Debug)]
struct Ran {
    run: Run,
    job: Option<u64>,
}

/// Receives the addresses that need symbols.
pub(super) trait Names {
    fn see(&mut self, pid: i32, ts: u64, stack: (&[u64], &[u64]), is_running: bool);
}

#[derive(Debug)]
pub(super) struct Rows {
    interval: u64,
    threads: HashMap<i32, Thread>,
    rounds: VecDeque<Round>,
    /// By thread, in time order.
    ran: HashMap<i32, VecDeque<Ran>>,
    walked: HashMap<u64, Walked>,
    /// Job numbers of `walked`, and the number of rounds when they arrived.
    came: VecDeque<(u64, u64)>,
    added: u64,
    number: u64,
    /// Start of the spool: nothing before is written.
    floor: u64,
    /// Time up to which rows are written.
    until: u64,
}

impl Rows {
    pub(super) fn new(interval: u64) -> Self {
        Self {
            interval,
            threads: HashMap::new(),
            rounds: VecDeque::new(),
            ran: HashMap::new(),
            walked: HashMap::new(),
            came: VecDeque::new(),
            added: 0,
            number: 0,
            floor: 0,
            until: 0,
        }
    }

    pub(super) fn add(&mut self, round: Round) {
        self.added += 1;
        self.rounds.push_back(round);
    }

    pub(super) fn ran(&mut self, run: Run, job: Option<u64>) {
        let of = self.ran.entry(run.tid).or_default();
        of.push_back(Ran { run, job });
    }

    pub(super) fn walked(&mut self, walked: Walked) {
        self.came.push_back((walked.id, self.added));
        self.walked.insert(walked.id, walked);
    }

    pub(super) fn has_rounds(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Addresses and text numbers that are not written yet.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        let threads = self.threads.values().map(|thread| &thread.stack);
        let stacks = threads.flat_map(|stack| stack.kernel.iter().chain(&stack.user));
        let walked = self.walked.values().flat_map(|walked| &walked.frames);
        stacks.chain(walked).copied()
    }

    /// Later rows are not before this time.
    pub(super) fn limit(&self) -> u64 {
        self.until
    }

    /// Writes the rows of the complete rounds. `until`: everything that ran before is known.
    pub(super) fn write(&mut self, until: u64, now: u64, names: &mut dyn Names, to: &mut Encoder) {
        while let Some(round) = self.rounds.front() {
            let is_late = now.saturating_sub(round.ended) >= WAIT_MAX_NS;
            let is_whole = self.has_all(round, until);
            if !is_whole && !is_late && self.rounds.len() <= ROUNDS_MAX {
                break;
            }
            if let Some(round) = self.rounds.pop_front() {
                self.round(round, names, to);
            }
        }
    }

    /// Ends the spool: open rows are cut, and waiting rounds are written as they are.
    pub(super) fn cut(&mut self, floor: u64, names: &mut dyn Names, to: &mut Encoder) {
        while let Some(round) = self.rounds.pop_front() {
            self.round(round, names, to);
        }
        for (tid, thread) in &mut self.threads {
            thread.settle(&mut self.walked);
            put(*tid, thread, (self.floor, names), to);
            thread.since = thread.last;
            thread.credits = 0;
            // The next spool knows nothing of it.
            thread.is_seen = false;
        }
        self.floor = self.floor.max(floor);
        self.until = self.until.max(floor);
    }

    fn has_all(&self, round: &Round, until: u64) -> bool {
        let is_there = |job: Option<u64>| job.is_none_or(|job| self.walked.contains_key(&job));
        let is_known = round.ended.saturating_add(self.interval) <= until;
        let mut samples = round.samples.iter();
        samples.all(|(sample, job)| {
            let has_near = || {
                let near = self.nearest(sample);
                is_known && near.is_none_or(|ran| is_there(ran.job))
            };
            match sample.doing {
                Doing::Runs | Doing::MayRun => has_near(),
                Doing::Away(..) => is_there(*job) && (!sample.is_preempted() || has_near()),
            }
        })
    }

    /// The tick nearest to the sample.
    fn nearest(&self, sample: &ThreadSample) -> Option<&Ran> {
        let ran = self.ran.get(&sample.tid)?.iter();
        let near = ran.filter(|ran| ran.run.ts.abs_diff(sample.ts) <= self.interval);
        near.min_by_key(|ran| ran.run.ts.abs_diff(sample.ts))
    }

    fn round(&mut self, round: Round, names: &mut dyn Names, to: &mut Encoder) {
        self.number += 1;
        for (sample, job) in round.samples {
            let ran_most = self.ran_most(&sample);
            let stack = self.stack(&sample, job, ran_most);
            self.sample(&sample, (stack, ran_most), names, to);
        }
        let (number, floor, walked) = (self.number, self.floor, &mut self.walked);
        self.threads.retain(|tid, thread| {
            let is_there = thread.round == number;
            if !is_there {
                thread.settle(walked);
                put(*tid, thread, (floor, names), to);
            }
            is_there
        });
        let old = round.begun.saturating_sub(2 * self.interval);
        self.ran.retain(|_, of| {
            while let Some(ran) = of.pop_front_if(|ran| ran.run.ts < old) {
                ran.job.and_then(|job| self.walked.remove(&job));
            }
            !of.is_empty()
        });
        let is_old = |(_, added): &mut (u64, u64)| *added + UNUSED_ROUNDS_MAX < number;
        while let Some((job, _)) = self.came.pop_front_if(is_old) {
            self.walked.remove(&job);
        }
        self.until = self.until.max(round.begun);
        to.begin(Kind::Round, round.ended.max(self.floor), (0, 0))
            .u64(round.begun)
            .u32(number as u32)
            .u32(u32::try_from(round.missed).unwrap_or(u32::MAX))
            .end();
    }

    /// Whether it was on CPU for most of the time since the previous sample, if that is known.
    fn ran_most(&self, sample: &ThreadSample) -> bool {
        let known = self.threads.get(&sample.tid);
        known.is_some_and(|thread| {
            let ran = sample.ran.saturating_sub(thread.ran);
            let all = sample.ts.saturating_sub(thread.last);
            thread.pid == sample.pid && thread.ran > 0 && 2 * ran >= all
        })
    }

    /// `None` if the stack is that of the previous sample; with the job that may still deliver the
    /// rest.
    fn stack(
        &mut self,
        sample: &ThreadSample,
        job: Option<u64>,
        ran_most: bool,
    ) -> Option<(Stack, Option<u64>)> {
        if ran_most
            && sample.is_preempted()
            && let Some(stack) = self.running(sample)
        {
            return Some((stack, None));
        }
        match &sample.doing {
            Doing::Away(_, Away::Same) => None,
            Doing::Away(_, Away::OffCpu(place)) => {
                let walked = job.and_then(|job| self.walked.remove(&job));
                let late = job.filter(|_| walked.is_none());
                let (user, end) = user(walked, place.registers.is_some());
                let stack = Stack {
                    kernel: place.kernel.clone(),
                    user,
                    end,
                    nr: place.nr,
                    is_compat: place.is_compat,
                    cpu: None,
                };
                Some((stack, late))
            }
            Doing::Runs | Doing::MayRun => {
                let stack = self.running(sample).unwrap_or_else(|| Stack {
                    kernel: Vec::new(),
                    user: Vec::new(),
                    end: WallEnd::Unread,
                    nr: -1,
                    is_compat: false,
                    cpu: None,
                });
                Some((stack, None))
            }
        }
    }

    /// Its place at the nearest tick of its CPU, if that is near enough.
    fn running(&self, sample: &ThreadSample) -> Option<Stack> {
        let Ran { run, job } = self.nearest(sample)?;
        // It may be the nearest of the next sample, too.
        let walked = job.and_then(|job| self.walked.get(&job).cloned());
        let (user, end) = user(walked, run.registers.ip != 0);
        Some(Stack {
            kernel: run.kernel.clone(),
            user,
            end,
            nr: run.nr,
            is_compat: run.is_compat,
            cpu: Some(run.cpu),
        })
    }

    fn sample(
        &mut self,
        sample: &ThreadSample,
        (stack, ran_most): (Option<(Stack, Option<u64>)>, bool),
        names: &mut dyn Names,
        to: &mut Encoder,
    ) {
        let state = match sample.doing {
            Doing::Runs => WallRecord::ON_CPU,
            Doing::MayRun if ran_most => WallRecord::ON_CPU,
            _ if ran_most && sample.is_preempted() => WallRecord::ON_CPU,
            // A thread that no tick met did not run, or only briefly.
            Doing::MayRun if stack.as_ref().is_some_and(|(stack, _)| stack.cpu.is_none()) => {
                Switch::PREEMPTED
            }
            Doing::MayRun => WallRecord::ON_CPU,
            Doing::Away(0, _) => Switch::PREEMPTED,
            Doing::Away(state, _) => state,
        };
        let known = self.threads.get_mut(&sample.tid);
        // A reused thread id starts counting anew.
        let known =
            known.filter(|thread| thread.pid == sample.pid && thread.switches <= sample.switches);
        if let Some(thread) = known {
            thread.settle(&mut self.walked);
            let may_run = matches!(sample.doing, Doing::Runs | Doing::MayRun);
            let has_run = thread.switches != sample.switches || may_run;
            let is_same = !has_run && thread.state == state && stack.is_none();
            let is_long = sample.ts.saturating_sub(thread.since) >= ROW_MAX_NS;
            thread.round = self.number;
            thread.switches = sample.switches;
            thread.ran = sample.ran;
            if is_same && !is_long {
                thread.last = sample.ts;
                thread.credits += 1;
                if !thread.is_seen {
                    thread.see(names);
                }
                return;
            }
            put(sample.tid, thread, (self.floor, names), to);
            thread.since = thread.last;
            thread.last = sample.ts;
            thread.state = state;
            thread.credits = 1;
            if let Some((stack, job)) = stack {
                (thread.stack, thread.job) = (stack, job);
            }
            thread.see(names);
        } else if let Some((stack, job)) = stack {
            let mut thread = Thread {
                pid: sample.pid,
                round: self.number,
                switches: sample.switches,
                ran: sample.ran,
                since: sample.ts.saturating_sub(self.interval).max(self.floor),
                last: sample.ts,
                state,
                credits: 1,
                stack,
                job,
                is_seen: false,
            };
            thread.see(names);
            if let Some(mut gone) = self.threads.insert(sample.tid, thread) {
                gone.settle(&mut self.walked);
                put(sample.tid, &mut gone, (self.floor, names), to);
            }
        }
    }
}

fn user(walked: Option<Walked>, has_any: bool) -> (Vec<u64>, WallEnd) {
    match walked {
        Some(walked) => {
            let end = match walked.end {
                End::Whole => WallEnd::Whole,
                End::Cut => WallEnd::Cut,
                End::Torn => WallEnd::Torn,
                End::Unread => WallEnd::Unread,
            };
            (walked.frames, end)
        }
        _ if has_any => (Vec::new(), WallEnd::Unread),
        _ => (Vec::new(), WallEnd::None),
    }
}

fn put(tid: i32, thread: &mut Thread, (floor, names): (u64, &mut dyn Names), to: &mut Encoder) {
    if thread.credits == 0 {
        return;
    }
    if !thread.is_seen {
        thread.see(names);
    }
    let stack = &thread.stack;
    let flags = if stack.is_compat { COMPAT } else { 0 };
    let place = (stack.cpu.unwrap_or(0), flags);
    let record = to.begin_on(Kind::Wall, thread.last.max(floor), (thread.pid, tid), place);
    record
        .u64(thread.since)
        .u32(thread.state)
        .u32(thread.credits)
        .u32(stack.nr as u32)
        .u16(stack.end as u16)
        .u16(u16::from(stack.cpu.is_some()))
        .u16(stack.kernel.len() as u16)
        .u16(stack.user.len() as u16)
        .u32(0);
    for address in stack.kernel.iter().chain(&stack.user) {
        record.u64(*address);
    }
    record.end();
}

#[cfg(test)]
mod tests;
