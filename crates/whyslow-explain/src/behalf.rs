//! Attribution of kernel work to the threads that caused it, and how devices serve requests.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::leaf::Who;
use crate::moment::{Call, Moment, Request, Utid};
use crate::report::Grade;

/// A commit is attributed to a call that started at most this long before it.
const TRIGGER_NS: Ns = 60_000_000_000;

/// Minimum share of the written bytes for dirty pages to be attributed to one process.
const DIRTIER_MIN: f64 = 0.5;

pub(crate) struct Behalf<'m> {
    moment: &'m Moment,
    /// Whether a device serves one request at a time.
    serial: RefCell<FxHashMap<i64, bool>>,
    /// Service time of a request by device, operation and size class, without other requests in flight.
    alone: RefCell<FxHashMap<(i64, crate::moment::Word, u32), Ns>>,
    /// Results by kernel thread and time.
    known: RefCell<FxHashMap<(Utid, Ns), (Who, Grade)>>,
}

impl<'m> Behalf<'m> {
    pub(crate) fn new(moment: &'m Moment) -> Self {
        Self {
            moment,
            serial: RefCell::default(),
            alone: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// The thread that a request submitted by `utid` is attributed to.
    pub(crate) fn of(&self, utid: Utid, request: &Request, waiter: Utid) -> (Who, Grade) {
        let people = &self.moment.people;
        if !people.is_kernel(utid) {
            return (Who::Thread(utid), Grade::A);
        }
        // A worker submits throttled reads, and only the waiting thread needs these blocks.
        if self.moment.word(request.op) == "read" && people.comm(utid).starts_with("kworker") {
            return (Who::Thread(waiter), Grade::B);
        }
        self.of_kernel(utid, request.begin, Some(request.dev))
    }

    /// The thread that the work of a kernel thread at a time is attributed to: the one in a sync call.
    pub(crate) fn of_kernel(&self, utid: Utid, at: Ns, dev: Option<i64>) -> (Who, Grade) {
        if let Some(known) = self.known.borrow().get(&(utid, at)) {
            return *known;
        }
        let comm = self.moment.people.comm(utid);
        let writes = comm.starts_with("jbd2/")
            || comm.starts_with("xfsaild")
            || comm.starts_with("btrfs")
            || comm.starts_with("kworker")
            || comm.starts_with("loop");
        let found = writes.then(|| self.trigger(utid, at)).flatten();
        // Without a sync call, pages are written back because a process dirtied them.
        let written = || {
            let (dirtier, share) = self.dirtiers(dev)?;
            (writes && share >= DIRTIER_MIN).then_some((Who::Thread(dirtier), Grade::B))
        };
        let found = found.or_else(written);
        let found = found.unwrap_or((Who::Thread(utid), Grade::A));
        self.known.borrow_mut().insert((utid, at), found);
        found
    }

    /// The thread that dirtied most of the pages that a device has to write: of the process with at least
    /// half of the bytes, if there is one; unknown if no writes were recorded.
    pub(crate) fn dirtier(&self, dev: Option<i64>, waiter: Utid) -> (Who, Grade) {
        let Some((utid, share)) = self.dirtiers(dev) else {
            return (Who::Unknown, Grade::B);
        };
        if share < DIRTIER_MIN {
            // Several processes write similar amounts, so none of them is the culprit.
            (Who::Unknown, Grade::B)
        } else if self.moment.people.same_process(utid, waiter) {
            (Who::Thread(waiter), Grade::A)
        } else {
            (Who::Thread(utid), Grade::B)
        }
    }

    /// The main writer of the process that wrote most to files of a device, and the share of that process.
    fn dirtiers(&self, dev: Option<i64>) -> Option<(Utid, f64)> {
        let moment = self.moment;
        let mut by_process: FxHashMap<i32, (i64, FxHashMap<Utid, i64>)> = FxHashMap::default();
        let mut total = 0;
        for write in &moment.writes {
            if dev.is_some_and(|dev| moment.is_elsewhere(write.path, dev)) {
                continue;
            }
            let upid = moment.people.get(write.utid).and_then(|person| person.upid);
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

    /// The thread that requested the writes: in a sync of everything rather than of one file, and the
    /// longest first.
    fn trigger(&self, utid: Utid, at: Ns) -> Option<(Who, Grade)> {
        let moment = self.moment;
        let works = moment.work_of(utid).iter();
        let commit = works.rev().find(|work| work.begin <= at && at < work.end);
        let before = commit
            .map_or(at, |commit| commit.begin)
            .max(moment.begin - TRIGGER_NS);
        let syncing = moment.syncs().filter(|call| {
            call.begin <= before.max(at)
                && at < call.end
                && !moment
                    .people
                    .get(call.utid)
                    .is_some_and(|person| person.is_tracer)
        });
        let mut found: Vec<&Call> = syncing.collect();
        found.index_sort_by_ints(|call| [call.begin, call.id, 0]);
        let of_all = |call: &&&Call| matches!(moment.word(call.name), "sync" | "syncfs");
        // fsync() writes its file in its own thread, except for the journal. A flush worker at that time
        // writes pages that were dirtied by others.
        let is_flushing = moment.people.comm(utid).contains("flush")
            || moment.work_of(utid).iter().any(|work| {
                moment.word(work.kind) == "writeback" && work.begin <= at && at < work.end
            });
        let first = found.first().filter(|_| !is_flushing);
        let call = found.iter().find(of_all).or(first)?;
        Some((Who::Thread(call.utid), Grade::B))
    }

    /// Whether a device serves one request at a time: then each waits for those before it, and its
    /// latency is a sum of intervals between completions.
    pub(crate) fn is_serial(&self, dev: i64) -> bool {
        if let Some(known) = self.serial.borrow().get(&dev) {
            return *known;
        }
        let found = crate::serial::is_serial(self.moment, dev);
        self.serial.borrow_mut().insert(dev, found);
        found
    }

    /// Whether there are enough similar requests for a baseline.
    pub(crate) fn has_like(&self, request: &Request) -> bool {
        crate::serial::like(self.moment, request) >= crate::serial::ALONE_MIN
    }

    /// Service time of such a request without others in flight.
    pub(crate) fn alone(&self, request: &Request) -> Ns {
        let key = (request.dev, request.op, crate::serial::size_class(request));
        if let Some(known) = self.alone.borrow().get(&key) {
            return *known;
        }
        let found = crate::serial::alone(self.moment, request);
        self.alone.borrow_mut().insert(key, found);
        found
    }
}
