//! One window of a recording in memory: the rows that a walk needs, indexed by thread, CPU, device
//! or lock.
//!
//! A walk only ever narrows its window, so it needs nothing outside of this one, however long the
//! recording is.

mod bios;
pub(crate) mod columns;
mod connections;
mod interner;
mod load;
mod rare;
mod thread_table;

use bios::Bios;
pub(crate) use connections::{Connections, Exchange, Turn};
pub(crate) use interner::{Interner, TextId};
pub(crate) use thread_table::ThreadTable;

use std::ops::Range;

use rustc_hash::FxHashMap;
use whyslow_model::{Ns, Window};

/// Thread id that is unique in the recording.
pub(crate) type Utid = i32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Waiting for a CPU; `preempted` if another thread took its CPU.
    Runnable {
        preempted: bool,
    },
    Sleeping,
    Uninterruptible,
    Stopped,
    /// A kernel worker without work.
    Idle,
    Dead,
    Unknown,
}

/// One state of a thread. If it had not ended, `end` is the end of the recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) state: State,
    pub(crate) is_open: bool,
    pub(crate) cpu: Option<i32>,
    pub(crate) wakeup: Option<i64>,
    pub(crate) waker: Option<Utid>,
    pub(crate) context: Context,
    pub(crate) cause: Cause,
}

/// Context that a wakeup came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Context {
    Task,
    Irq,
    Softirq,
    Timer,
    #[default]
    Unknown,
}

/// What led to a wakeup, by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Cause {
    /// The completion of a request.
    Request(i64),
    /// A kernel worker that passed on the completion of a request.
    Worker(i64),
    /// A packet that a thread of this machine sent.
    Packet(i64),
    /// A packet from another machine.
    Received(i64),
    #[default]
    None,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) ts: Ns,
    pub(crate) cpu: Option<i32>,
    pub(crate) vector: Option<i32>,
    /// The thread on that CPU, whether or not it is the waker.
    pub(crate) running: Option<Utid>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) id: i64,
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) is_open: bool,
    pub(crate) name: TextId,
    pub(crate) path: Option<TextId>,
    pub(crate) fd_class: Option<TextId>,
    pub(crate) ret: Option<i64>,
    pub(crate) errno: Option<i32>,
    /// Flags, operation or command.
    pub(crate) flags: Option<i64>,
    pub(crate) fd: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) id: i64,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) is_open: bool,
    pub(crate) issue: Option<Ns>,
    pub(crate) dev: i64,
    pub(crate) dev_name: TextId,
    pub(crate) bytes: i64,
    pub(crate) op: TextId,
    pub(crate) utid: Option<Utid>,
    /// The owner is known only from the issue, which is often done by a kernel worker.
    pub(crate) is_owner_guessed: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LockWait {
    pub(crate) id: i64,
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) lock: TextId,
    pub(crate) callsite: Option<i64>,
}

/// A program's lock wait that its runtime reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuntimeWait {
    pub(crate) id: i64,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// None if it is not known.
    pub(crate) holder: Option<Utid>,
    /// Whether the holder is more than a guess.
    pub(crate) is_sure: bool,
    /// Class of the lock.
    pub(crate) object: Option<TextId>,
}

/// An off-CPU stack of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) id: i64,
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) callsite: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Handler {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) kind: TextId,
    pub(crate) name: Option<TextId>,
}

/// Kernel work that other threads wait for, or a wait that the kernel imposes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) id: i64,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) kind: TextId,
    pub(crate) dev: Option<i64>,
    pub(crate) dev_name: Option<TextId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reclaim {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) kind: TextId,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) ts: Ns,
    pub(crate) action: TextId,
    pub(crate) name: TextId,
    pub(crate) pid: i32,
    pub(crate) sender: Option<Utid>,
}

/// A DNS query of a program with its own resolver that got no reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered {
    pub(crate) begin: Ns,
    /// When the program gave it up.
    pub(crate) end: Ns,
    pub(crate) upid: i32,
    pub(crate) server: TextId,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) ts: Ns,
    pub(crate) utid: Option<Utid>,
    pub(crate) source: Option<TextId>,
    pub(crate) destination: Option<TextId>,
}

/// A futex call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Futex {
    pub(crate) utid: Utid,
    pub(crate) upid: Option<i32>,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) address: TextId,
    /// Value that a wait expects at the address.
    pub(crate) value: Option<i64>,
}

/// Bytes that a thread wrote to a file through the page cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) utid: Utid,
    pub(crate) bytes: i64,
    pub(crate) path: TextId,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) cpu: Option<i32>,
}

/// Events that were recorded, whether or not any happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recorded {
    pub(crate) sched: bool,
    pub(crate) calls: bool,
    pub(crate) requests: bool,
    pub(crate) locks: bool,
    pub(crate) stacks: bool,
    pub(crate) work: bool,
    /// Hard and soft interrupts.
    pub(crate) handlers: bool,
}

#[derive(Debug, Default)]
pub(crate) struct WindowSlice {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) recording_end: Ns,
    pub(crate) interner: Interner,
    pub(crate) thread_table: ThreadTable,
    pub(crate) recorded: Recorded,
    segments: Vec<Segment>,
    segments_of: FxHashMap<Utid, Range<usize>>,
    /// Running segments, by CPU and start.
    ran: Vec<u32>,
    ran_on: FxHashMap<i32, Range<usize>>,
    calls: Vec<Call>,
    calls_of: FxHashMap<Utid, Range<usize>>,
    wakes: FxHashMap<i64, Wake>,
    pub(crate) requests: Vec<Request>,
    bios: Bios,
    shares: FxHashMap<i64, Vec<(Option<Utid>, i64)>>,
    request_of: FxHashMap<i64, usize>,
    /// Requests by device and completion.
    done: Vec<u32>,
    done_on: FxHashMap<i64, Range<usize>>,
    locks: Vec<LockWait>,
    locks_of: FxHashMap<Utid, Vec<u32>>,
    waits_for: FxHashMap<TextId, Vec<u32>>,
    runtime_waits: FxHashMap<Utid, Vec<RuntimeWait>>,
    stacks: Vec<Stack>,
    stacks_of: FxHashMap<Utid, Range<usize>>,
    handlers: Vec<Handler>,
    handlers_on: FxHashMap<i32, Range<usize>>,
    /// Kernel work by thread.
    work_of: FxHashMap<Utid, Vec<Work>>,
    pub(crate) has_work: bool,
    reclaims_of: FxHashMap<Utid, Vec<Reclaim>>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) unanswered: Vec<Unanswered>,
    packets: FxHashMap<i64, Packet>,
    pub(crate) connections: Connections,
    /// Retransmitted segments, in order.
    pub(crate) resent: Vec<Packet>,
    futex_waits: FxHashMap<Utid, Vec<Futex>>,
    /// Calls that release a lock, by process and address.
    futex_wakes: FxHashMap<(Option<i32>, TextId), Vec<Futex>>,
    vain_futex_wakes: FxHashMap<(Option<i32>, TextId), Vec<Futex>>,
    /// Sync calls, in order of start.
    syncs: Vec<u32>,
    /// Calls that lock and unlock a file, by path, in order of start.
    file_locks: FxHashMap<TextId, Vec<u32>>,
    /// Calls that create a file, by path, in order of start: of files that existed when another call
    /// was to create them.
    creations: FxHashMap<TextId, Vec<u32>>,
    /// Writes to the files that freeze cgroups, in order of start.
    freezes: Vec<u32>,
    /// Calls that freeze and thaw file systems, in order of start.
    fs_freezes: Vec<u32>,
    pub(crate) losses: Vec<Loss>,
    /// Writes to files before and in the window.
    pub(crate) writes: Vec<Write>,
    /// Mount points by device, the longest first.
    pub(crate) mounts: Vec<(i64, String)>,
    /// Disk of each partition.
    pub(crate) disks: FxHashMap<i64, i64>,
    /// Kernel functions of each stack, innermost first.
    frames: FxHashMap<i64, Vec<TextId>>,
}

/// The intervals that overlap `[begin, end)`, of intervals that are ordered and do not overlap.
fn touching<T>(rows: &[T], (begin, end): (Ns, Ns), span: impl Fn(&T) -> (Ns, Ns)) -> &[T] {
    let first = rows.partition_point(|row| span(row).1 <= begin);
    let rows = &rows[first..];
    let count = rows.partition_point(|row| span(row).0 < end);
    &rows[..count]
}

impl WindowSlice {
    pub(crate) fn window(&self) -> Window {
        Window::new(self.begin, self.end)
    }

    /// States of a thread that overlap the range, in order.
    pub(crate) fn states(&self, utid: Utid, range: (Ns, Ns)) -> &[Segment] {
        let all = self.segments_of.get(&utid).cloned();
        let rows = all.map_or(&[][..], |all| &self.segments[all]);
        touching(rows, range, |row| (row.begin, row.end))
    }

    /// Times of the events of each CPU, in no order: switches, interrupts, wakeups by it, and system
    /// calls of the thread on it.
    pub(crate) fn times_on_cpus(&self) -> impl Iterator<Item = (i32, Ns)> {
        let handlers = self.handlers_on.iter().flat_map(move |(cpu, rows)| {
            let rows = self.handlers[rows.clone()].iter();
            rows.flat_map(move |row| [(*cpu, row.begin), (*cpu, row.end)])
        });
        let wakes = self.wakes.values();
        let wakes = wakes.filter_map(|wake| Some((wake.cpu?, wake.ts)));
        let switches = self.ran.iter().flat_map(move |row| {
            let segment = &self.segments[*row as usize];
            let calls = self.calls(segment.utid, (segment.begin, segment.end));
            let calls = calls.iter().flat_map(|call| [call.begin, call.end]);
            let calls = calls.filter(move |ts| segment.begin <= *ts && *ts <= segment.end);
            let times = calls.chain([segment.begin, segment.end]);
            times.filter_map(move |ts| Some((segment.cpu?, ts)))
        });
        handlers.chain(wakes).chain(switches)
    }

    /// Running segments of a CPU, in order.
    pub(crate) fn ran_on(&self, cpu: i32, range: (Ns, Ns)) -> impl Iterator<Item = &Segment> {
        let all = self.ran_on.get(&cpu).cloned();
        let rows = all.map_or(&[][..], |all| &self.ran[all]);
        let span = |row: &u32| {
            let segment = &self.segments[*row as usize];
            (segment.begin, segment.end)
        };
        touching(rows, range, span)
            .iter()
            .map(|row| &self.segments[*row as usize])
    }

    /// All calls, by thread.
    pub(crate) fn all_calls(&self) -> &[Call] {
        &self.calls
    }

    /// The call with this id.
    pub(crate) fn call(&self, id: i64) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// The call that a thread is in.
    pub(crate) fn call_at(&self, utid: Utid, ts: Ns) -> Option<&Call> {
        self.calls(utid, (ts, ts + 1)).last()
    }

    /// Calls of a thread that overlap the range, in order; they do not nest.
    pub(crate) fn calls(&self, utid: Utid, range: (Ns, Ns)) -> &[Call] {
        let all = self.calls_of.get(&utid).cloned();
        let rows = all.map_or(&[][..], |all| &self.calls[all]);
        touching(rows, range, |row| (row.begin, row.end))
    }

    pub(crate) fn wake(&self, id: i64) -> Option<&Wake> {
        self.wakes.get(&id)
    }

    pub(crate) fn packet(&self, id: i64) -> Option<&Packet> {
        self.packets.get(&id)
    }

    /// Kernel work in a thread, or waits that the kernel imposed on it.
    pub(crate) fn work_of(&self, utid: Utid) -> &[Work] {
        self.work_of.get(&utid).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn reclaims_of(&self, utid: Utid) -> &[Reclaim] {
        self.reclaims_of.get(&utid).map_or(&[], Vec::as_slice)
    }

    /// Threads that had to reclaim memory.
    pub(crate) fn reclaiming(&self) -> impl Iterator<Item = Utid> {
        self.reclaims_of.keys().copied()
    }

    /// Futex waits of a thread.
    pub(crate) fn futex_waits(&self, utid: Utid) -> &[Futex] {
        self.futex_waits.get(&utid).map_or(&[], Vec::as_slice)
    }

    /// Calls that released a futex on which no thread slept, in order.
    pub(crate) fn vain_futex_wakes(&self, upid: Option<i32>, address: TextId) -> &[Futex] {
        self.vain_futex_wakes
            .get(&(upid, address))
            .map_or(&[], Vec::as_slice)
    }

    /// Calls that released a futex and woke a thread, in order.
    pub(crate) fn futex_wakes(&self, upid: Option<i32>, address: TextId) -> &[Futex] {
        self.futex_wakes
            .get(&(upid, address))
            .map_or(&[], Vec::as_slice)
    }

    /// Sync calls, in order of start.
    pub(crate) fn syncs(&self) -> impl Iterator<Item = &Call> {
        self.syncs.iter().map(|row| &self.calls[*row as usize])
    }

    /// Calls that lock and unlock a file, in order of start.
    pub(crate) fn file_locks(&self, path: TextId) -> impl Iterator<Item = &Call> {
        let rows = self.file_locks.get(&path).into_iter().flatten();
        rows.map(|row| &self.calls[*row as usize])
    }

    /// Calls that create this file, in order of start; none unless one found that it existed.
    pub(crate) fn creations(&self, path: TextId) -> impl Iterator<Item = &Call> {
        let rows = self.creations.get(&path).into_iter().flatten();
        rows.map(|row| &self.calls[*row as usize])
    }

    /// Writes to the files that freeze cgroups, in order of start.
    pub(crate) fn freezes(&self) -> impl Iterator<Item = &Call> {
        self.freezes.iter().map(|row| &self.calls[*row as usize])
    }

    /// Calls that freeze and thaw file systems, in order of start.
    pub(crate) fn fs_freezes(&self) -> impl Iterator<Item = &Call> {
        self.fs_freezes.iter().map(|row| &self.calls[*row as usize])
    }

    pub(crate) fn request(&self, id: i64) -> Option<&Request> {
        let place = self.request_of.get(&id);
        let request = place.map(|place| &self.requests[*place]);
        request.or_else(|| self.bios.get(id))
    }

    /// Threads and sector counts of a request that holds sectors of several threads.
    pub(crate) fn shares_of(&self, id: i64) -> &[(Option<Utid>, i64)] {
        self.shares.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Requests of a device in order of completion, from the first that completes after `begin`.
    pub(crate) fn done_after(&self, dev: i64, begin: Ns) -> impl Iterator<Item = &Request> {
        let all = self.done_on.get(&dev).cloned();
        let rows = all.map_or(&[][..], |all| &self.done[all]);
        let first = rows.partition_point(|row| self.requests[*row as usize].end <= begin);
        rows[first..]
            .iter()
            .map(|row| &self.requests[*row as usize])
    }

    /// Kernel lock waits of a thread.
    pub(crate) fn lock_waits(&self, utid: Utid) -> impl Iterator<Item = &LockWait> {
        let rows = self.locks_of.get(&utid).into_iter().flatten();
        rows.map(|row| &self.locks[*row as usize])
    }

    /// Waits of all threads for one lock, in order of start.
    pub(crate) fn waits_for(&self, lock: TextId) -> impl Iterator<Item = &LockWait> {
        let rows = self.waits_for.get(&lock).into_iter().flatten();
        rows.map(|row| &self.locks[*row as usize])
    }

    /// The lock wait that the runtime reported for a thread at a time.
    pub(crate) fn runtime_wait(&self, utid: Utid, at: Ns) -> Option<&RuntimeWait> {
        let waits = self.runtime_waits.get(&utid)?;
        let mut around = waits.iter().filter(|wait| wait.begin <= at);
        around.rfind(|wait| at < wait.end)
    }

    /// The off-CPU stack of a thread with the longest overlap.
    pub(crate) fn stack_at(&self, utid: Utid, range: (Ns, Ns)) -> Option<&Stack> {
        let all = self.stacks_of.get(&utid).cloned()?;
        let rows = touching(&self.stacks[all], range, |row| (row.begin, row.end));
        rows.iter()
            .max_by_key(|row| row.end.min(range.1) - row.begin.max(range.0))
    }

    /// Kernel functions of a stack, innermost first.
    pub(crate) fn functions(&self, callsite: Option<i64>) -> &[TextId] {
        let frames = callsite.and_then(|callsite| self.frames.get(&callsite));
        frames.map_or(&[], Vec::as_slice)
    }

    /// Interrupt handlers on a CPU that overlap the range; nested ones come after those around
    /// them.
    pub(crate) fn handlers(
        &self,
        cpu: i32,
        (begin, end): (Ns, Ns),
    ) -> impl Iterator<Item = &Handler> {
        let all = self.handlers_on.get(&cpu).cloned();
        let rows = all.map_or(&[][..], |all| &self.handlers[all]);
        // Handlers nest, so their ends are not in order; none takes longer than this.
        const LONGEST: Ns = 50_000_000;
        let first = rows.partition_point(|row| row.begin < begin - LONGEST);
        let rows = rows[first..].iter().take_while(move |row| row.begin < end);
        rows.filter(move |row| row.end > begin)
    }

    /// Whether events were lost in the range, on this CPU or on an unknown one.
    pub(crate) fn is_lossy(&self, cpu: Option<i32>, (begin, end): (Ns, Ns)) -> bool {
        self.losses.iter().any(|loss| {
            let is_there = loss.cpu.is_none() || cpu.is_none() || loss.cpu == cpu;
            is_there && loss.begin < end && loss.end > begin
        })
    }

    pub(crate) fn text(&self, id: TextId) -> &str {
        self.interner.text(id)
    }

    /// Whether a file is on another device, as far as mounts are known. File systems mounted during
    /// the recording are not known: their files seem to be on the root file system.
    pub(crate) fn is_elsewhere(&self, path: TextId, dev: i64) -> bool {
        let disk = self.disk_of(dev);
        let is_mounted = self
            .mounts
            .iter()
            .any(|(dev, _)| self.disk_of(*dev) == disk);
        let root = self.mounts.iter().find(|(_, mount)| mount == "/");
        let root = root.map(|(dev, _)| self.disk_of(*dev));
        let on = self.device_of(path);
        on.is_some_and(|on| on != disk && (is_mounted || Some(on) != root))
    }

    /// Device of the file system that a path is on, as far as mounts are known.
    fn device_of(&self, path: TextId) -> Option<i64> {
        let path = self.text(path);
        let is_below = |mount: &str| {
            mount == "/"
                || path
                    .strip_prefix(mount)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mount = self.mounts.iter().find(|(_, mount)| is_below(mount))?;
        Some(self.disk_of(mount.0))
    }

    /// The disk that a device is a partition of.
    pub(crate) fn disk_of(&self, dev: i64) -> i64 {
        self.disks.get(&dev).copied().unwrap_or(dev)
    }

    /// CPU time of each thread in the range.
    pub(crate) fn time_on_cpu(&self, (begin, end): (Ns, Ns)) -> FxHashMap<Utid, Ns> {
        let mut found: FxHashMap<Utid, Ns> = FxHashMap::default();
        for cpu in self.ran_on.keys() {
            for segment in self.ran_on(*cpu, (begin, end)) {
                let time = segment.end.min(end) - segment.begin.max(begin);
                *found.entry(segment.utid).or_default() += time;
            }
        }
        found
    }

    pub(crate) fn has_rows_of(&self, utid: Utid) -> bool {
        self.segments_of.contains_key(&utid)
    }
}
