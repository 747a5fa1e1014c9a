//! Reads the stacks of interpreters from outside, which yields function names where the native
//! stack shows only the interpreter.
//!
//! The process is neither stopped nor changed, and needs no preparation. Pointers and lengths come
//! from memory that the process writes meanwhile, possibly with malicious intent: each read is
//! bounded, each chain has a limit, and a stack is valid only if everything that was read of it
//! reads the same again (see [`memory`]). Other stacks are counted as torn, and never shown.

mod any_image;
mod budget;
#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod hostile_tests;
mod image;
#[cfg(test)]
mod live_tests;
mod memory;
mod process;
mod python;
mod ruby;
mod texts;
mod walker;

use std::collections::HashMap;
use std::sync::Arc;

pub use any_image::walk_image;
pub(crate) use budget::Budget;
use budget::Share;
use image::Tids;
use memory::ProcessMemory;
use process::{Process, Walked};
#[cfg(test)]
pub(crate) use texts::Function;
pub(crate) use texts::Names;

/// Maximum depth; deeper stacks are truncated, and marked.
const FRAMES_MAX: usize = 512;
/// Maximum number of processes known at once.
const PROCESSES_MAX: usize = 1024;

/// A function and its line, 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Index into [`Names`].
    pub(crate) function: u32,
    pub(crate) line: u32,
}

/// A thread's stack, innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stack {
    pub(crate) frames: Vec<Frame>,
    pub(crate) is_cut: bool,
    /// It held the interpreter lock. Not part of the sample rows yet.
    pub(crate) is_holder: bool,
}

/// The interpreters of all sampled processes, as known to one thread of the recorder.
#[derive(Debug, Default)]
pub(crate) struct Runtimes {
    processes: HashMap<i32, Process>,
    share: Share,
}

/// Placeholders for unknown stacks; `left_out` reports their number.
const MOVED: &str = "(stack changed while read)";
const UNREADABLE: &str = "(stack unreadable)";

/// A stack, and how much of the native stack belongs on top of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merged<'r> {
    /// Number of the innermost native frames that the runtime or a library runs for the innermost
    /// function; the ones after them are the interpreter, and left out.
    pub(crate) native: usize,
    /// The stack, or the placeholder to show in its place.
    pub(crate) found: Result<&'r Stack, &'static str>,
    pub(crate) names: &'r Names,
}

/// A thread of an interpreter: its address, and its id in its own PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    address: u64,
    /// The thread id, or …
    tid: Option<i32>,
    /// … the handle of the thread library.
    handle: u64,
    is_holder: bool,
}

impl Runtimes {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self {
            processes: HashMap::new(),
            share: Share::of(budget),
        }
    }

    /// Stacks of the process's threads, by host thread ids; `None` if it runs no known interpreter.
    #[cfg_attr(not(test), expect(dead_code))] // the sampler requests one thread at a time
    pub(crate) fn round(&mut self, pid: i32) -> Option<(&Names, Vec<(i32, &Stack)>)> {
        self.evict_for(pid);
        let process = self
            .processes
            .entry(pid)
            .or_insert_with(|| Process::scan(pid));
        process.rescan(pid);
        let memory = ProcessMemory(pid);
        let (torn, unreadable) = process.walk(&memory, |process| {
            process.tids = Tids::of(pid);
        })?;
        process.count(&mut self.share);
        self.share.budget.count_torn(torn);
        self.share.budget.count_unreadable(unreadable);
        let threads = process.threads.values();
        let stacks = threads.filter(|known| known.is_met && !known.stack.frames.is_empty());
        let mut stacks: Vec<_> = stacks.map(|known| (known.tid, &known.stack)).collect();
        stacks.sort_unstable_by_key(|(tid, _)| *tid);
        Some((&process.names, stacks))
    }

    /// The stack of one thread, by host ids. `native` are the addresses of its native frames,
    /// innermost first. `None` if it runs no code of an interpreter.
    pub(crate) fn thread(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Merged<'_>> {
        self.evict_for(pid);
        let process = self.processes.entry(pid);
        let process = process.or_insert_with(|| Process::scan(pid));
        process.rescan(pid);
        let memory = ProcessMemory(pid);
        let thread = process.place(pid, tid, &memory)?;
        let read = process.read(&memory, thread);
        process.count(&mut self.share);
        let process = self.processes.get(&pid)?;
        let loop_at = native.iter().position(|at| process.evaluates(*at));
        let found = match read {
            Ok(address) => Ok(&process.threads.get(&address)?.stack),
            Err(walked) => {
                // Without the interpreter's loop there may be no stack to read.
                loop_at?;
                let budget = &self.share.budget;
                Err(if matches!(walked, Walked::Torn) {
                    budget.count_torn(1);
                    MOVED
                } else {
                    budget.count_unreadable(1);
                    UNREADABLE
                })
            }
        };
        (!found.is_ok_and(|stack| stack.frames.is_empty())).then_some(Merged {
            native: loop_at.unwrap_or(native.len()),
            found,
            names: &process.names,
        })
    }

    fn evict_for(&mut self, pid: i32) {
        if self.share.must_give_up() {
            for process in self.processes.values_mut() {
                process.forget();
                process.counted = 0;
            }
        }
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            let counted = self.processes.values().map(|process| process.counted);
            self.share.change(counted.sum(), 0);
            self.processes.clear();
        }
    }
}
