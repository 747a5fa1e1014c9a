//! Stacks of interpreters, read from outside: what the functions of a program are called whose
//! native stack shows only the interpreter.
//!
//! The process is neither stopped nor changed, and need not have been started in any way. Pointers
//! and lengths come from memory that somebody else writes meanwhile, maybe with intent: each read is
//! bounded, each chain has a limit, and a stack counts only if all that was read of it reads the same
//! once more (see [`memory`]). What does not is counted as torn, never shown.

mod any_image;
#[cfg(test)]
mod hostile_tests;
mod image;
#[cfg(test)]
mod live_tests;
mod memory;
mod python;
mod ruby;
mod texts;
mod walker;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

pub use any_image::walk_image;
use image::Tids;
use memory::{Log, Memory, ProcessMemory};
#[cfg(test)]
pub(crate) use texts::Function;
pub(crate) use texts::Names;

/// Deeper stacks are cut, and say so.
const FRAMES_MAX: usize = 512;
/// A thread that moves while it is read is read so often.
const TRIES: usize = 4;
/// A process that runs no interpreter may run one later; one that did may have begun another program.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Processes that are known at once.
const PROCESSES_MAX: usize = 1024;

/// A function and its line, 0 if that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// In [`Names`].
    pub(crate) function: u32,
    pub(crate) line: u32,
}

/// A thread's stack, the innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stack {
    pub(crate) frames: Vec<Frame>,
    pub(crate) is_cut: bool,
    /// It held the interpreter's lock. Rows of samples have no place for it yet.
    pub(crate) is_holder: bool,
}

/// The interpreters of all processes that are looked at.
#[derive(Debug, Default)]
pub(crate) struct Runtimes {
    processes: HashMap<i32, Process>,
    /// Stacks that moved while they were read.
    pub(crate) torn: u64,
    /// Stacks whose memory could not be read or made no sense.
    pub(crate) unreadable: u64,
}

#[derive(Debug)]
struct Process {
    looked: Instant,
    runtime: Option<Runtime>,
    names: Names,
    tids: Tids,
    threads: HashMap<u64, Known>,
    /// Where threads are known by, as the list last said.
    places: HashMap<i32, Thread>,
    listed: Option<Instant>,
}

/// Threads come and go; one that is asked for and not known has it read anew, but not more often.
const LIST_AGAIN: Duration = Duration::from_millis(20);
/// Whoever stays in the list is believed to be there so long.
const LIST_HOLDS: Duration = Duration::from_millis(200);

/// What stands for stacks that are not known: how many there are is told where all stacks are.
const MOVED: &str = "(moved while it was read)";
const UNREADABLE: &str = "(could not be read)";

/// A stack, and how much of the native one goes on top of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merged<'r> {
    /// So many of the innermost native frames are the runtime's or the library's work for the
    /// innermost function; those after them are the interpreter, and left out.
    pub(crate) native: usize,
    /// The stack, or why there is none, as it is shown in its place.
    pub(crate) found: Result<&'r Stack, &'static str>,
    pub(crate) names: &'r Names,
}

/// A thread as it was last read.
#[derive(Debug, Default)]
struct Known {
    log: Log,
    tid: i32,
    stack: Stack,
    is_met: bool,
}

#[derive(Debug)]
enum Runtime {
    Python(python::Python),
    Ruby(ruby::Ruby),
}

/// A thread of an interpreter: where it is known by, and its number in its own namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    address: u64,
    /// Number of the thread, or …
    tid: Option<i32>,
    /// … what the thread library knows it by.
    handle: u64,
    is_holder: bool,
}

/// What a walk found.
enum Walked {
    Stack(Stack),
    /// It moved.
    Torn,
    Unreadable,
}

impl Runtimes {
    /// Stacks of the process's threads, by the numbers that this machine has for them; nothing if it
    /// runs no interpreter that is known.
    #[cfg_attr(not(test), expect(dead_code))] // who samples asks for one thread at a time
    pub(crate) fn round(&mut self, pid: i32) -> Option<(&Names, Vec<(i32, &Stack)>)> {
        self.room_for(pid);
        let process = self
            .processes
            .entry(pid)
            .or_insert_with(|| Process::look(pid));
        process.look_again(pid);
        let memory = ProcessMemory(pid);
        let (torn, unreadable) = process.walk(&memory, |process| {
            process.tids = Tids::of(pid);
        })?;
        self.torn += torn;
        self.unreadable += unreadable;
        let threads = process.threads.values();
        let stacks = threads.filter(|known| known.is_met && !known.stack.frames.is_empty());
        let mut stacks: Vec<_> = stacks.map(|known| (known.tid, &known.stack)).collect();
        stacks.sort_unstable_by_key(|(tid, _)| *tid);
        Some((&process.names, stacks))
    }

    /// The stack of one thread, by this machine's numbers. `native` are the addresses of its program,
    /// innermost first. Nothing if it runs no code of an interpreter.
    pub(crate) fn thread(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Merged<'_>> {
        self.room_for(pid);
        let process = self.processes.entry(pid);
        let process = process.or_insert_with(|| Process::look(pid));
        process.look_again(pid);
        let memory = ProcessMemory(pid);
        let thread = process.place(pid, tid, &memory)?;
        let read = process.read(&memory, thread);
        let process = self.processes.get(&pid)?;
        let loop_at = native.iter().position(|at| process.evaluates(*at));
        let found = match read {
            Ok(address) => Ok(&process.threads.get(&address)?.stack),
            Err(walked) => {
                // Without the interpreter's loop there may be no stack to read.
                loop_at?;
                let is_torn = matches!(walked, Walked::Torn);
                let count = if is_torn {
                    &mut self.torn
                } else {
                    &mut self.unreadable
                };
                *count += 1;
                Err(if is_torn { MOVED } else { UNREADABLE })
            }
        };
        (!found.is_ok_and(|stack| stack.frames.is_empty())).then_some(Merged {
            native: loop_at.unwrap_or(native.len()),
            found,
            names: &process.names,
        })
    }

    fn room_for(&mut self, pid: i32) {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            self.processes.clear();
        }
    }
}

impl Process {
    fn look(pid: i32) -> Self {
        let memory = ProcessMemory(pid);
        let python = || python::Python::find(pid, &memory).map(Runtime::Python);
        let ruby = || ruby::Ruby::find(pid, &memory).map(Runtime::Ruby);
        Self::with(python().or_else(ruby))
    }

    fn with(runtime: Option<Runtime>) -> Self {
        Self {
            looked: Instant::now(),
            runtime,
            names: Names::default(),
            tids: Tids::default(),
            threads: HashMap::new(),
            places: HashMap::new(),
            listed: None,
        }
    }

    fn evaluates(&self, address: u64) -> bool {
        let code = match &self.runtime {
            Some(Runtime::Python(python)) => &python.code,
            Some(Runtime::Ruby(ruby)) => &ruby.code,
            None => return false,
        };
        code.iter().any(|range| range.contains(&address))
    }

    /// Where the thread is known by; nothing if it is none of the interpreter's.
    fn place(&mut self, pid: i32, tid: i32, memory: &dyn Memory) -> Option<Thread> {
        let age = self.listed.map_or(Duration::MAX, |listed| listed.elapsed());
        let is_known = self.places.contains_key(&tid);
        if age >= LIST_HOLDS || !is_known && age >= LIST_AGAIN {
            self.listed = Some(Instant::now());
            let threads = self.list(memory).unwrap_or_default();
            let tids = |process: &Self| -> Vec<Option<i32>> {
                let threads = threads.iter();
                threads.map(|thread| process.tid(memory, thread)).collect()
            };
            let mut found = tids(self);
            if found.contains(&None) {
                self.tids = Tids::of(pid);
                found = tids(self);
            }
            let places = found.into_iter().zip(&threads);
            self.places = places
                .filter_map(|(tid, thread)| Some((tid?, *thread)))
                .collect();
            let addresses: HashSet<u64> = threads.iter().map(|thread| thread.address).collect();
            self.threads
                .retain(|address, _| addresses.contains(address));
        }
        self.places.get(&tid).copied()
    }

    fn list(&self, memory: &dyn Memory) -> Option<Vec<Thread>> {
        match self.runtime.as_ref()? {
            Runtime::Python(python) => python.threads(memory),
            Runtime::Ruby(ruby) => ruby.threads(memory),
        }
    }

    /// Reads a thread's stack, unless it stands where it stood; by its address it is known then.
    fn read(&mut self, memory: &dyn Memory, thread: Thread) -> Result<u64, Walked> {
        let Some(runtime) = &mut self.runtime else {
            return Err(Walked::Unreadable);
        };
        let known = self.threads.entry(thread.address).or_default();
        known.is_met = true;
        let mut scratch = Vec::new();
        if !known.log.is_empty() && known.log.holds(memory, &mut scratch) {
            return Ok(thread.address);
        }
        for _ in 0..TRIES {
            let reader = (memory, &mut self.names, &mut scratch);
            match known.walk(runtime, &thread, reader) {
                Walked::Stack(stack) => {
                    known.stack = stack;
                    return Ok(thread.address);
                }
                Walked::Torn => {}
                Walked::Unreadable => return Err(Walked::Unreadable),
            }
        }
        Err(Walked::Torn)
    }

    /// Only if there is reason to: what is known stays where the interpreter answers.
    fn look_again(&mut self, pid: i32) {
        let answers = match &self.runtime {
            Some(Runtime::Python(python)) => python.is_there(&ProcessMemory(pid)),
            Some(Runtime::Ruby(ruby)) => ruby.is_there(&ProcessMemory(pid)),
            None => false,
        };
        if !answers && self.looked.elapsed() >= LOOK_AGAIN {
            *self = Self::look(pid);
        }
    }

    /// Reads each thread, and tells how many moved and how many could not be read. Numbers of
    /// threads are asked for when one is met that has none yet.
    fn walk(
        &mut self,
        memory: &dyn Memory,
        mut number: impl FnMut(&mut Self),
    ) -> Option<(u64, u64)> {
        self.runtime.as_ref()?;
        let (mut torn, mut unreadable) = (0, 0);
        let mut asked = false;
        self.threads
            .values_mut()
            .for_each(|known| known.is_met = false);
        // A list that is of two moments has no threads to trust; the next round comes soon.
        let threads = self.list(memory).unwrap_or_else(|| {
            torn += 1;
            Vec::new()
        });
        for thread in threads {
            let mut tid = self.tid(memory, &thread);
            if tid.is_none() && !std::mem::replace(&mut asked, true) {
                number(self);
                tid = self.tid(memory, &thread);
            }
            match (tid, self.read(memory, thread)) {
                (Some(tid), Ok(address)) => {
                    if let Some(known) = self.threads.get_mut(&address) {
                        known.tid = tid;
                        known.stack.is_holder = thread.is_holder;
                    }
                }
                (Some(_), Err(Walked::Torn)) => torn += 1,
                _ => unreadable += 1,
            }
        }
        self.threads
            .retain(|_, known| known.is_met && !known.log.is_empty());
        Some((torn, unreadable))
    }

    fn tid(&self, memory: &dyn Memory, thread: &Thread) -> Option<i32> {
        // Where thread libraries keep the number: glibc on x86-64 and on ARM, musl.
        const PLACES: [u64; 3] = [0x2d0, 0xd0, 0x30];
        if let Some(tid) = thread.tid {
            return self.tids.outer(tid);
        }
        let mut places = PLACES.iter();
        places.find_map(|place| {
            let tid = memory::half_of(memory, thread.handle.checked_add(*place)?)?;
            self.tids.outer(i32::try_from(tid).ok()?)
        })
    }
}

impl Known {
    fn walk(
        &mut self,
        runtime: &mut Runtime,
        thread: &Thread,
        (memory, names, scratch): (&dyn Memory, &mut Names, &mut Vec<u8>),
    ) -> Walked {
        self.log.clear();
        let stack = match runtime {
            Runtime::Python(python) => python.stack(memory, thread.address, (&mut self.log, names)),
            Runtime::Ruby(ruby) => ruby.stack(memory, thread.address, (&mut self.log, names)),
        };
        let holds = self.log.holds(memory, scratch);
        match stack {
            Some(stack) if holds => Walked::Stack(stack),
            stack => {
                self.log.clear();
                if stack.is_some() || !holds {
                    Walked::Torn
                } else {
                    Walked::Unreadable
                }
            }
        }
    }
}
