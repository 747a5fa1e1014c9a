//! Attribution of kernel work to the threads that caused it, and how devices serve requests.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::blame_target::BlameTarget;
use crate::report::Grade;
use crate::window_slice::{Call, Request, Utid, WindowSlice};

/// A commit is attributed to a call that started at most this long before it.
const TRIGGER_NS: Ns = 60_000_000_000;

/// Minimum share of the written bytes for dirty pages to be attributed to one process.
const DIRTIER_MIN: f64 = 0.5;

pub(crate) struct Attribution<'m> {
    slice: &'m WindowSlice,
    /// Whether a device serves one request at a time.
    serial: RefCell<FxHashMap<i64, bool>>,
    /// Service time of a request by device, operation and size class, without other requests in
    /// flight.
    alone: RefCell<FxHashMap<(i64, crate::window_slice::TextId, u32), Ns>>,
    /// Results by kernel thread and time.
    known: RefCell<FxHashMap<(Utid, Ns), (BlameTarget, Grade)>>,
}

impl<'m> Attribution<'m> {
    pub(crate) fn new(slice: &'m WindowSlice) -> Self {
        Self {
            slice,
            serial: RefCell::default(),
            alone: RefCell::default(),
            known: RefCell::default(),
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

    /// The main writer of the process that wrote most to files of a device, and the share of that
    /// process.
    fn dirtiers(&self, dev: Option<i64>) -> Option<(Utid, f64)> {
        let slice = self.slice;
        let mut by_process: FxHashMap<i32, (i64, FxHashMap<Utid, i64>)> = FxHashMap::default();
        let mut total = 0;
        for write in &slice.writes {
            if dev.is_some_and(|dev| slice.is_elsewhere(write.path, dev)) {
                continue;
            }
            let upid = slice
                .thread_table
                .get(write.utid)
                .and_then(|thread_info| thread_info.upid);
            let (sum, threads) = by_process.entry(upid.unwrap_or(-1)).or_default();
            *sum += write.bytes;
            *threads.entry(write.utid).or_default() += write.bytes;
            total += write.bytes;
        }
        let (_, (sum, threads)) = by_process
            .into_iter()
            .max_by_key(|(upid, (sum, _))| (*sum, std::cmp::Reverse(*upid)))?;
        let (utid, _) = threads
            .into_iter()
            .max_by_key(|(utid, bytes)| (*bytes, std::cmp::Reverse(*utid)))?;
        Some((utid, sum as f64 / total.max(1) as f64))
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
