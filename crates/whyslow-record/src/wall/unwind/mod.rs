//! Unwinds user stacks from outside the process: from registers, a copy of the stack, and the
//! compiler's call frame information (`.eh_frame`); without the latter, by frame pointers.
//!
//! Reading the memory of a process can block while that changes its mappings, so separate threads
//! do it, and nothing waits for them. A reader that hangs blocks nothing else: the others continue,
//! and the stacks of that process wait until the first returns.

mod ends;
mod memory;
mod program;
mod queue;
mod tables;

use std::fs;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use memory::Memory;
use program::Programs;
use queue::Queue;
use tables::Tables;

use super::managed::Walkers;

/// Maximum number of reader threads.
const READERS_MAX: usize = 4;
/// A reader that takes longer for one stack hangs.
const HANGS: Duration = Duration::from_millis(30);
/// Processes that called exec since a reader was free; beyond the limit it drops everything.
const EXECED_MAX: usize = 4096;

/// The required registers of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wall) struct Registers {
    pub(in crate::wall) ip: u64,
    pub(in crate::wall) sp: u64,
    /// Not shown by `/proc`.
    pub(in crate::wall) bp: Option<u64>,
    pub(in crate::wall) lr: u64,
}

/// A stack to unwind.
#[derive(Debug)]
pub(in crate::wall) struct Job {
    pub(in crate::wall) id: u64,
    pub(in crate::wall) pid: i32,
    pub(in crate::wall) tid: i32,
    pub(in crate::wall) registers: Registers,
    pub(in crate::wall) stack: Stack,
}

#[derive(Debug)]
pub(in crate::wall) enum Stack {
    /// To be read; valid if the thread has not run since.
    There(Since),
    /// A copy from the stack pointer on, of a thread that was running.
    Copy(Vec<u8>, Since),
}

/// Counters that show whether a thread has run.
#[derive(Debug, Clone, Copy)]
pub(in crate::wall) struct Since {
    /// Number of times that it got a CPU; 0 if not counted.
    pub(in crate::wall) runs: u64,
    /// Number of times that it left one.
    pub(in crate::wall) switches: u64,
}

/// Result of unwinding a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wall) enum End {
    /// Complete.
    Whole,
    /// Truncated.
    Cut,
    /// The thread ran while it was read: the frames are invalid.
    Torn,
    /// It could not be read, or not in time, or is no longer needed.
    Unread,
}

#[derive(Debug, Clone)]
pub(in crate::wall) struct Walked {
    pub(in crate::wall) id: u64,
    /// Innermost first; see [`super::managed`] for those that are not addresses.
    pub(in crate::wall) frames: Vec<u64>,
    pub(in crate::wall) end: End,
}

/// Threads that unwind stacks. They end when this is dropped, unless they hang.
pub(in crate::wall) struct Pool {
    shared: Arc<Shared>,
    walked: Sender<Walked>,
    /// Creates walkers for a reader, so that none waits for one that hangs.
    walkers: Box<dyn Fn() -> Walkers + Send + Sync>,
}

struct Shared {
    state: Mutex<State>,
    comes: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Queue,
    /// Per reader: its current process, and since when.
    at: Vec<Option<(i32, Instant)>>,
    /// Per reader: processes that called exec since it was free.
    execed: Vec<Execed>,
    is_over: bool,
}

#[derive(Default)]
struct Execed {
    pids: Vec<i32>,
    are_more: bool,
}

impl State {
    fn is_busy(&self, pid: i32) -> bool {
        self.at.iter().flatten().any(|(busy, _)| *busy == pid)
    }

    fn hangs(&self, pid: i32) -> bool {
        let mut at = self.at.iter().flatten();
        at.any(|(busy, since)| *busy == pid && since.elapsed() >= HANGS)
    }

    fn take(&mut self) -> Option<Job> {
        let at = &self.at;
        let is_busy = |pid| at.iter().flatten().any(|(busy, _)| *busy == pid);
        self.jobs.take(is_busy)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    pub(in crate::wall) fn start(
        walked: Sender<Walked>,
        walkers: impl Fn() -> Walkers + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            comes: Condvar::new(),
        });
        let pool = Self {
            shared,
            walked,
            walkers: Box::new(walkers),
        };
        pool.add_reader();
        pool
    }

    fn add_reader(&self) {
        let number = {
            let mut state = self.shared.lock();
            state.at.push(None);
            state.execed.push(Execed::default());
            state.at.len() - 1
        };
        let (shared, walked) = (Arc::clone(&self.shared), self.walked.clone());
        let reader = Reader {
            programs: Programs::default(),
            tables: Tables::default(),
            walkers: (self.walkers)(),
        };
        let named = thread::Builder::new().name("stacks".into());
        // Without a further thread, the others do its work.
        let _ = named.spawn(move || read(number, &shared, &walked, reader));
    }

    /// Queues a stack; false if the queue is full, or if a copy would wait for a reader that hangs.
    pub(in crate::wall) fn submit(&self, job: Job) -> bool {
        let mut state = self.shared.lock();
        if matches!(job.stack, Stack::Copy(..)) && state.hangs(job.pid) {
            return false;
        }
        let is_taken = state.jobs.push(job);
        let gone = state.jobs.take_gone();
        drop(state);
        self.shared.comes.notify_one();
        for id in gone {
            let _ = self.walked.send(Walked::unread(id));
        }
        is_taken
    }

    /// The process called exec: cached data is invalid.
    pub(in crate::wall) fn forget(&self, pid: i32) {
        let mut state = self.shared.lock();
        for of in &mut state.execed {
            of.are_more |= of.pids.len() >= EXECED_MAX;
            if !of.are_more {
                of.pids.push(pid);
            }
        }
    }

    /// Adds a reader if all of them hang.
    pub(in crate::wall) fn tend(&self) {
        let state = self.shared.lock();
        let hangs =
            |at: &Option<(i32, Instant)>| at.is_some_and(|(_, since)| since.elapsed() >= HANGS);
        let has_work = || state.jobs.has_any(|pid| state.is_busy(pid));
        let is_stuck = state.at.iter().all(hangs) && has_work();
        let may_add = state.at.len() < READERS_MAX;
        drop(state);
        if is_stuck && may_add {
            self.add_reader();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.comes.notify_all();
    }
}

impl Walked {
    fn unread(id: u64) -> Self {
        Self {
            id,
            frames: Vec::new(),
            end: End::Unread,
        }
    }
}

fn read(number: usize, shared: &Shared, walked: &Sender<Walked>, mut reader: Reader) {
    loop {
        let mut state = shared.lock();
        state.at[number] = None;
        let job = loop {
            if state.is_over {
                return;
            }
            if let Some(job) = state.take() {
                break job;
            }
            let waited = shared.comes.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        };
        let execed = std::mem::take(&mut state.execed[number]);
        state.at[number] = Some((job.pid, Instant::now()));
        let gone = state.jobs.take_gone();
        drop(state);
        // The process that this reader left may have more jobs.
        shared.comes.notify_one();
        if execed.are_more {
            reader.programs = Programs::default();
        }
        execed
            .pids
            .iter()
            .for_each(|pid| reader.programs.forget(*pid));
        let (frames, end) = reader.walk(&job);
        let id = job.id;
        let gone = gone.into_iter().map(Walked::unread);
        for walked_one in gone.chain([Walked { id, frames, end }]) {
            if walked.send(walked_one).is_err() {
                return;
            }
        }
    }
}

struct Reader {
    programs: Programs,
    tables: Tables,
    walkers: Walkers,
}

impl Reader {
    fn walk(&mut self, job: &Job) -> (Vec<u64>, End) {
        let program = self.programs.of(job.pid);
        let registers = &job.registers;
        match &job.stack {
            Stack::Copy(bytes, since) => {
                let mut memory = Memory::copied(registers.sp, bytes);
                let (frames, end) = program.walk(registers, &mut memory, &mut self.tables);
                let went_on = || since.has_run(job.pid, job.tid) != Some(false);
                let frames = self.walkers.merge((job.pid, job.tid), frames, went_on);
                (frames, end)
            }
            Stack::There(since) => {
                let mut memory = Memory::of(job.pid, registers.sp);
                if !memory.is_there() {
                    return (Vec::new(), End::Unread);
                }
                let (frames, end) = program.walk(registers, &mut memory, &mut self.tables);
                // Whether it ran meanwhile is checked below.
                let went_on = || false;
                let frames = self.walkers.merge((job.pid, job.tid), frames, went_on);
                match since.has_run(job.pid, job.tid) {
                    Some(false) => (frames, end),
                    Some(true) => (Vec::new(), End::Torn),
                    None => (Vec::new(), End::Unread),
                }
            }
        }
    }
}

impl Since {
    /// Whether the thread got a CPU; `None` if it is gone.
    fn has_run(&self, pid: i32, tid: i32) -> Option<bool> {
        let folder = format!("/proc/{pid}/task/{tid}");
        if self.runs > 0 {
            let now = runs(&fs::read(format!("{folder}/schedstat")).ok()?);
            return Some(now != Some(self.runs));
        }
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse::<u64>().ok()
        };
        let switches = number("voluntary_ctxt_switches")? + number("nonvoluntary_ctxt_switches")?;
        let runs = status.lines().any(|line| line.starts_with("State:\tR"));
        Some(switches != self.switches || runs)
    }
}

/// Number of times that a thread got a CPU: the last field of `schedstat`.
pub(in crate::wall) fn runs(schedstat: &[u8]) -> Option<u64> {
    number(schedstat, 2)
}

/// CPU time in ns: the first field.
pub(in crate::wall) fn ran(schedstat: &[u8]) -> Option<u64> {
    number(schedstat, 0)
}

fn number(schedstat: &[u8], place: usize) -> Option<u64> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests;
