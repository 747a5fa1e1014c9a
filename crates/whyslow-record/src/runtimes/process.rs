//! A process that may run an interpreter: which one, the addresses of its threads, and the stacks
//! read so far.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::budget::{PROCESS_BYTES_MAX, Share};
use super::image::Tids;
use super::memory::{self, Log, Memory, ProcessMemory};
use super::texts::Names;
use super::{Frame, Stack, Thread, python, ruby};

/// Attempts to read a thread that moves meanwhile.
const TRIES: usize = 4;
/// Interval of checks: a process without an interpreter may run one later, and one with it may have
/// called exec.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// A check takes at most this fraction of the time, whatever files the process has mapped.
const CHECK_SHARE: u32 = 50;
/// Minimum age of the thread list before an unknown thread makes it be read again.
const LIST_AGAIN: Duration = Duration::from_millis(20);
/// Maximum age of the thread list.
const LIST_HOLDS: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Process {
    checked: Instant,
    /// Duration of the last check.
    took: Duration,
    runtime: Option<Runtime>,
    pub(super) names: Names,
    pub(super) tids: Tids,
    pub(super) threads: HashMap<u64, Known>,
    /// Memory of the stacks and logs of `threads`.
    threads_bytes: usize,
    /// Memory accounted in the shared budget.
    pub(super) counted: usize,
    /// Addresses of threads, from the last list.
    places: HashMap<i32, Thread>,
    listed: Option<Instant>,
}

/// A thread as last read.
#[derive(Debug, Default)]
pub(super) struct Known {
    log: Log,
    pub(super) tid: i32,
    pub(super) stack: Stack,
    pub(super) is_met: bool,
}

#[derive(Debug)]
pub(super) enum Runtime {
    Python(python::Python),
    Ruby(ruby::Ruby),
}

/// Result of a walk.
pub(super) enum Walked {
    Stack(Stack),
    /// It moved.
    Torn,
    Unreadable,
}

impl Process {
    pub(super) fn scan(pid: i32) -> Self {
        let begun = Instant::now();
        let memory = ProcessMemory(pid);
        let python = || python::Python::find(pid, &memory).map(Runtime::Python);
        let ruby = || ruby::Ruby::find(pid, &memory).map(Runtime::Ruby);
        let found = python().or_else(ruby);
        Self {
            took: begun.elapsed(),
            ..Self::with(found)
        }
    }

    pub(super) fn with(runtime: Option<Runtime>) -> Self {
        Self {
            checked: Instant::now(),
            took: Duration::ZERO,
            runtime,
            names: Names::default(),
            tids: Tids::default(),
            threads: HashMap::new(),
            threads_bytes: 0,
            counted: 0,
            places: HashMap::new(),
            listed: None,
        }
    }

    /// Memory of all of it.
    pub(super) fn kept(&self) -> usize {
        let tables = self.runtime.as_ref().map_or(0, Runtime::bytes);
        let threads = self.threads.len() * size_of::<(u64, Known)>() + self.threads_bytes;
        self.names.bytes + tables + threads + self.places.len() * size_of::<(i32, Thread)>()
    }

    pub(super) fn count(&mut self, share: &mut Share) {
        let kept = self.kept();
        share.change(std::mem::replace(&mut self.counted, kept), kept);
    }

    /// Drops what was read; addresses of variables stay known.
    pub(super) fn forget(&mut self) {
        self.names = Names::default();
        self.threads = HashMap::new();
        self.threads_bytes = 0;
        match &mut self.runtime {
            Some(Runtime::Python(python)) => python.forget(),
            Some(Runtime::Ruby(ruby)) => ruby.forget(),
            None => {}
        }
    }

    pub(super) fn evaluates(&self, address: u64) -> bool {
        let code = match &self.runtime {
            Some(Runtime::Python(python)) => &python.code,
            Some(Runtime::Ruby(ruby)) => &ruby.code,
            None => return false,
        };
        code.iter().any(|range| range.contains(&address))
    }

    /// Address of the thread; `None` if it is no interpreter thread.
    pub(super) fn place(&mut self, pid: i32, tid: i32, memory: &dyn Memory) -> Option<Thread> {
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
            self.threads_bytes = self.threads.values().map(Known::bytes).sum();
        }
        self.places.get(&tid).copied()
    }

    fn list(&self, memory: &dyn Memory) -> Option<Vec<Thread>> {
        match self.runtime.as_ref()? {
            Runtime::Python(python) => python.threads(memory),
            Runtime::Ruby(ruby) => ruby.threads(memory),
        }
    }

    /// Reads a thread's stack, unless it has not moved; returns the thread's address.
    pub(super) fn read(&mut self, memory: &dyn Memory, thread: Thread) -> Result<u64, Walked> {
        if self.kept() > PROCESS_BYTES_MAX {
            self.forget();
        }
        let mut known = self.threads.remove(&thread.address).unwrap_or_default();
        self.threads_bytes -= known.bytes();
        known.is_met = true;
        let read = self.read_anew(memory, &thread, &mut known);
        self.threads_bytes += known.bytes();
        self.threads.insert(thread.address, known);
        read.map(|()| thread.address)
    }

    fn read_anew(
        &mut self,
        memory: &dyn Memory,
        thread: &Thread,
        known: &mut Known,
    ) -> Result<(), Walked> {
        let Some(runtime) = &mut self.runtime else {
            return Err(Walked::Unreadable);
        };
        let mut scratch = Vec::new();
        if !known.log.is_empty() && known.log.holds(memory, &mut scratch) {
            return Ok(());
        }
        for _ in 0..TRIES {
            let reader = (memory, &mut self.names, &mut scratch);
            match known.walk(runtime, thread, reader) {
                Walked::Stack(stack) => {
                    known.stack = stack;
                    return Ok(());
                }
                Walked::Torn => {}
                Walked::Unreadable => return Err(Walked::Unreadable),
            }
            // Each attempt may have added as much.
            if self.names.bytes + runtime.bytes() > PROCESS_BYTES_MAX {
                break;
            }
        }
        Err(Walked::Torn)
    }

    /// Only if there is reason to: the process stays known while the interpreter can be read.
    pub(super) fn rescan(&mut self, pid: i32) {
        let answers = match &self.runtime {
            Some(Runtime::Python(python)) => python.is_there(&ProcessMemory(pid)),
            Some(Runtime::Ruby(ruby)) => ruby.is_there(&ProcessMemory(pid)),
            None => false,
        };
        if !answers && self.checked.elapsed() >= CHECK_INTERVAL.max(self.took * CHECK_SHARE) {
            *self = Self {
                counted: self.counted,
                ..Self::scan(pid)
            };
        }
    }

    /// Reads each thread; returns how many moved, and how many could not be read. Thread ids are
    /// checked up once a thread without one is met.
    pub(super) fn walk(
        &mut self,
        memory: &dyn Memory,
        mut number: impl FnMut(&mut Self),
    ) -> Option<(u64, u64)> {
        self.runtime.as_ref()?;
        let (mut torn, mut unreadable) = (0, 0);
        let mut has_tids = false;
        self.threads
            .values_mut()
            .for_each(|known| known.is_met = false);
        // An inconsistent list contains no valid threads; the next round comes soon.
        let threads = self.list(memory).unwrap_or_else(|| {
            torn += 1;
            Vec::new()
        });
        for thread in threads {
            let mut tid = self.tid(memory, &thread);
            if tid.is_none() && !std::mem::replace(&mut has_tids, true) {
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
        self.threads_bytes = self.threads.values().map(Known::bytes).sum();
        Some((torn, unreadable))
    }

    fn tid(&self, memory: &dyn Memory, thread: &Thread) -> Option<i32> {
        // Offset of the thread id in thread libraries: glibc on x86-64 and on ARM, musl.
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

impl Runtime {
    /// Memory of its tables.
    fn bytes(&self) -> usize {
        match self {
            Self::Python(python) => python.bytes,
            Self::Ruby(ruby) => ruby.bytes,
        }
    }
}

impl Known {
    /// Memory of its stack and log.
    fn bytes(&self) -> usize {
        self.log.kept() + self.stack.frames.capacity() * size_of::<Frame>()
    }

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
