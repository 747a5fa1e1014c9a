//! Attribution of kernel work to the threads that caused it, and how devices serve requests.

use std::cell::{OnceCell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::blame_target::BlameTarget;
use crate::report::Grade;
use crate::stalls::Stalls;
use crate::window_slice::{Call, Request, Utid, WindowSlice};

/// A commit is attributed to a call that started at most this long before it.
const TRIGGER_NS: Ns = 60_000_000_000;

/// Data written before that is no longer in the cache of a device …
const CACHED_NS: Ns = 2_000_000_000;
/// … and less than this is no cause of a slow flush.
const FLUSHED_MIN: i64 = 1 << 20;

/// Minimum share of the written bytes for dirty pages to be attributed to one process.
const DIRTIER_MIN: f64 = 0.5;

/// The thread that wrote most to a device, and the share of its process or program.
type Dirtier = Option<(Utid, f64)>;

/// Which process used the memory that threads had to reclaim.
#[derive(Debug, Clone, Copy)]
enum MemoryUser {
    /// Only one process had to.
    Only,
    /// The main writer of the process that wrote most.
    Writer(Utid),
    Unknown,
}

/// Whose writes are added up.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Writer<'m> {
    /// A process (recording-unique id).
    Process(Option<i32>),
    /// All runs of a program that a process started.
    Program(i32, &'m str),
}

/// The thread with most bytes of the writer with most, and the share of that writer.
fn largest<'m>(
    by_thread: &FxHashMap<Utid, i64>,
    total: i64,
    writer: impl Fn(Utid) -> Writer<'m>,
) -> Dirtier {
    let mut writers: FxHashMap<Writer<'m>, (i64, (i64, Utid))> = FxHashMap::default();
    for (utid, bytes) in by_thread {
        let (sum, most) = writers.entry(writer(*utid)).or_insert((0, (*bytes, *utid)));
        *sum += bytes;
        let is_more = *bytes > most.0 || *bytes == most.0 && *utid < most.1;
        if is_more {
            *most = (*bytes, *utid);
        }
    }
    let (_, (sum, (_, utid))) = writers
        .into_iter()
        .max_by(|(a, (of_a, _)), (b, (of_b, _))| of_a.cmp(of_b).then_with(|| b.cmp(a)))?;
    Some((utid, sum as f64 / total.max(1) as f64))
}

pub(crate) struct Attribution<'m> {
    slice: &'m WindowSlice,
    /// Whether a device serves one request at a time.
    serial: RefCell<FxHashMap<i64, bool>>,
    /// Service time of a request by device, operation and size class, without other requests in
    /// flight.
    alone: RefCell<FxHashMap<(i64, crate::window_slice::TextId, u32), Ns>>,
    /// Threads whose data a flush wrote, by request.
    flushed: RefCell<FxHashMap<i64, Option<Utid>>>,
    /// What [`Self::dirtiers`] found, by device: it reads all writes of the slice.
    dirtied: RefCell<FxHashMap<Option<i64>, Dirtier>>,
    memory_users: OnceCell<MemoryUser>,
    /// Results by kernel thread and time.
    known: RefCell<FxHashMap<(Utid, Ns), (BlameTarget, Grade)>>,
    pub(crate) stalls: Stalls,
}

impl<'m> Attribution<'m> {
    pub(crate) fn new(slice: &'m WindowSlice) -> Self {
        Self {
            slice,
            serial: RefCell::default(),
            alone: RefCell::default(),
            flushed: RefCell::default(),
            dirtied: RefCell::default(),
            memory_users: OnceCell::new(),
            known: RefCell::default(),
            stalls: Stalls::default(),
        }
    }

    /// The thread that a request submitted by `utid` is attributed to.
    pub(crate) fn of(&self, utid: Utid, request: &Request, waiter: Utid) -> (BlameTarget, Grade) {
        let thread_table = &self.slice.thread_table;
        if !thread_table.is_kernel(utid) {
            return (BlameTarget::Thread(utid), Grade::A);
        }
        // A worker submits throttled reads, and only the waiting thread needs these blocks.
        if self.slice.text(request.op) == "read" && thread_table.comm(utid).starts_with("kworker") {
            return (BlameTarget::Thread(waiter), Grade::B);
        }
        self.of_kernel(utid, request.begin, Some(request.dev))
    }

    /// Whether a request is a flush of another process. The kernel issues one flush for all threads
    /// that wait for one at that time, so its submitter is a victim like the others.
    pub(crate) fn is_shared_flush(&self, request: &Request, waiter: Utid) -> bool {
        let thread_table = &self.slice.thread_table;
        let is_others = request.utid.is_some_and(|utid| {
            !thread_table.is_kernel(utid) && !thread_table.same_process(utid, waiter)
        });
        is_others && self.is_flush(request)
    }

    fn is_flush(&self, request: &Request) -> bool {
        self.slice.text(request.op) == "flush"
    }

    /// What a flush is attributed to: the process that wrote most of the data in the cache of the
    /// device, else the device.
    pub(crate) fn of_flush(&self, request: &Request, waiter: Utid) -> (BlameTarget, Grade) {
        let known = self.flushed.borrow().get(&request.id).copied();
        let writer = known.unwrap_or_else(|| {
            let found = self.written_before(request);
            self.flushed.borrow_mut().insert(request.id, found);
            found
        });
        match writer {
            Some(writer) if self.slice.thread_table.same_process(writer, waiter) => {
                (BlameTarget::Thread(waiter), Grade::B)
            }
            Some(writer) => (BlameTarget::Thread(writer), Grade::B),
            None => (BlameTarget::Device(request.dev_name), Grade::B),
        }
    }

    /// The main writer of the process with most of the bytes that were written to a device since
    /// the flush before this one.
    fn written_before(&self, request: &Request) -> Option<Utid> {
        let slice = self.slice;
        let mut written: FxHashMap<Utid, i64> = FxHashMap::default();
        for other in slice.done_after(request.dev, request.begin - CACHED_NS) {
            if other.end > request.end || other.id == request.id {
                break;
            }
            if self.is_flush(other) && other.end <= request.begin {
                written.clear();
            } else if slice.text(other.op) == "write"
                && let Some(utid) = other.utid
                && let (BlameTarget::Thread(utid), _) = self.of(utid, other, utid)
            {
                *written.entry(utid).or_default() += other.bytes;
            }
        }
        let total: i64 = written.values().sum();
        let of_process = |utid: Utid| -> i64 {
            let same = |other: &Utid| slice.thread_table.same_process(*other, utid);
            let own = written.iter().filter(|(other, _)| same(other));
            own.map(|(_, bytes)| bytes).sum()
        };
        let (writer, _) = written
            .iter()
            .max_by_key(|(utid, bytes)| (of_process(**utid), **bytes, std::cmp::Reverse(**utid)))?;
        let is_most = of_process(*writer) as f64 >= DIRTIER_MIN * total as f64;
        (total >= FLUSHED_MIN && is_most).then_some(*writer)
    }

    /// The thread that the work of a kernel thread at a time is attributed to: the one in a sync
    /// call.
    pub(crate) fn of_kernel(&self, utid: Utid, at: Ns, dev: Option<i64>) -> (BlameTarget, Grade) {
        if let Some(known) = self.known.borrow().get(&(utid, at)) {
            return *known;
        }
        let comm = self.slice.thread_table.comm(utid);
        let writes = comm.starts_with("jbd2/")
            || comm.starts_with("xfsaild")
            || comm.starts_with("btrfs")
            || comm.starts_with("kworker")
            || comm.starts_with("loop");
        let found = writes.then(|| self.trigger(utid, at)).flatten();
        // Without a sync call, pages are written back because a process dirtied them.
        let written = || {
            let (dirtier, share) = self.dirtiers(dev)?;
            (writes && share >= DIRTIER_MIN).then_some((BlameTarget::Thread(dirtier), Grade::B))
        };
        let found = found.or_else(written);
        let found = found.unwrap_or((BlameTarget::Thread(utid), Grade::A));
        self.known.borrow_mut().insert((utid, at), found);
        found
    }

    /// The thread that dirtied most of the pages that a device has to write: of the process with at
    /// least half of the bytes, if there is one; unknown if no writes were recorded.
    pub(crate) fn dirtier(&self, dev: Option<i64>, waiter: Utid) -> (BlameTarget, Grade) {
        let Some((utid, share)) = self.dirtiers(dev) else {
            return (BlameTarget::Unknown, Grade::B);
        };
        if share < DIRTIER_MIN {
            // Several processes write similar amounts, so none of them is the culprit.
            (BlameTarget::Unknown, Grade::B)
        } else if self.slice.thread_table.same_process(utid, waiter) {
            (BlameTarget::Thread(waiter), Grade::A)
        } else {
            (BlameTarget::Thread(utid), Grade::B)
        }
    }

    /// The thread whose use of memory a reclaim by another one is attributed to: of the processes
    /// that had to reclaim memory as well, so that they share a limit, the one that wrote most to
    /// the page cache. Other use of memory is not recorded.
    pub(crate) fn memory_user(&self, waiter: Utid) -> (BlameTarget, Grade) {
        let known = *self.memory_users.get_or_init(|| self.find_memory_user());
        match known {
            MemoryUser::Only => (BlameTarget::Thread(waiter), Grade::A),
            MemoryUser::Writer(user) if self.slice.thread_table.same_process(user, waiter) => {
                (BlameTarget::Thread(waiter), Grade::A)
            }
            MemoryUser::Writer(user) => (BlameTarget::Thread(user), Grade::B),
            // It may have been any of them.
            MemoryUser::Unknown => (BlameTarget::Thread(waiter), Grade::C),
        }
    }

    fn find_memory_user(&self) -> MemoryUser {
        let slice = self.slice;
        let table = &slice.thread_table;
        let reclaiming: FxHashSet<Option<i32>> = slice
            .reclaiming()
            .filter(|utid| !table.is_kernel(*utid))
            .map(|utid| table.upid(utid))
            .collect();
        if reclaiming.len() <= 1 {
            return MemoryUser::Only;
        }
        let mut by_thread: FxHashMap<Utid, i64> = FxHashMap::default();
        let is_of_them = |utid: Utid| reclaiming.contains(&table.upid(utid));
        for write in slice.writes.iter().filter(|write| is_of_them(write.utid)) {
            *by_thread.entry(write.utid).or_default() += write.bytes;
        }
        let total: i64 = by_thread.values().sum();
        let most = largest(&by_thread, total, |utid| Writer::Process(table.upid(utid)));
        match most.filter(|(_, share)| *share >= DIRTIER_MIN) {
            Some((user, _)) => MemoryUser::Writer(user),
            None => MemoryUser::Unknown,
        }
    }

    /// The main writer of the process, or program, that wrote most to files of a device, and the
    /// share of that process or program.
    fn dirtiers(&self, dev: Option<i64>) -> Option<(Utid, f64)> {
        let known = self.dirtied.borrow().get(&dev).copied();
        known.unwrap_or_else(|| {
            let found = self.find_dirtiers(dev);
            self.dirtied.borrow_mut().insert(dev, found);
            found
        })
    }

    fn find_dirtiers(&self, dev: Option<i64>) -> Option<(Utid, f64)> {
        let slice = self.slice;
        let table = &slice.thread_table;
        let mut by_thread: FxHashMap<Utid, i64> = FxHashMap::default();
        for write in &slice.writes {
            if !dev.is_some_and(|dev| slice.is_elsewhere(write.path, dev)) {
                *by_thread.entry(write.utid).or_default() += write.bytes;
            }
        }
        let total: i64 = by_thread.values().sum();
        let of_process = largest(&by_thread, total, |utid| Writer::Process(table.upid(utid)));
        if of_process.is_some_and(|(_, share)| share >= DIRTIER_MIN) {
            return of_process;
        }
        // A program that is started again and again by one process is one writer.
        let of_program = largest(&by_thread, total, |utid| match table.launcher(utid) {
            Some(launcher) => Writer::Program(launcher, table.process_comm(utid)),
            None => Writer::Process(table.upid(utid)),
        });
        of_program
            .filter(|(_, share)| *share >= DIRTIER_MIN)
            .or(of_process)
    }

    /// The thread that requested the writes: in a sync of everything rather than of one file, and
    /// the longest first.
    fn trigger(&self, utid: Utid, at: Ns) -> Option<(BlameTarget, Grade)> {
        let slice = self.slice;
        let works = slice.work_of(utid).iter();
        let commit = works.rev().find(|work| work.begin <= at && at < work.end);
        let before = commit
            .map_or(at, |commit| commit.begin)
            .max(slice.begin - TRIGGER_NS);
        let syncing = slice.syncs().filter(|call| {
            call.begin <= before.max(at)
                && at < call.end
                && !slice
                    .thread_table
                    .get(call.utid)
                    .is_some_and(|thread_info| thread_info.is_tracer)
        });
        let mut found: Vec<&Call> = syncing.collect();
        found.index_sort_by_ints(|call| [call.begin, call.id, 0]);
        let of_all = |call: &&&Call| matches!(slice.text(call.name), "sync" | "syncfs");
        // fsync() writes its file in its own thread, except for the journal. A flush worker at that
        // time writes pages that were dirtied by others.
        let is_flushing = slice.thread_table.comm(utid).contains("flush")
            || slice.work_of(utid).iter().any(|work| {
                slice.text(work.kind) == "writeback" && work.begin <= at && at < work.end
            });
        let first = found.first().filter(|_| !is_flushing);
        let call = found.iter().find(of_all).or(first)?;
        Some((BlameTarget::Thread(call.utid), Grade::B))
    }

    /// Whether a device serves one request at a time: then each waits for those before it, and its
    /// latency is a sum of intervals between completions.
    pub(crate) fn is_serial(&self, dev: i64) -> bool {
        if let Some(known) = self.serial.borrow().get(&dev) {
            return *known;
        }
        let found = crate::serial::is_serial(self.slice, dev);
        self.serial.borrow_mut().insert(dev, found);
        found
    }

    /// Whether there are enough similar requests for a baseline.
    pub(crate) fn has_like(&self, request: &Request) -> bool {
        crate::serial::like(self.slice, request) >= crate::serial::ALONE_MIN
    }

    /// Service time of such a request without others in flight.
    pub(crate) fn alone(&self, request: &Request) -> Ns {
        let key = (request.dev, request.op, crate::serial::size_class(request));
        if let Some(known) = self.alone.borrow().get(&key) {
            return *known;
        }
        let found = crate::serial::alone(self.slice, request);
        self.alone.borrow_mut().insert(key, found);
        found
    }
}
