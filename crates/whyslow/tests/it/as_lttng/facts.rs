//! Facts from the trace itself, to prove which program is right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::tables::SyscallRow;

/// A scheduling latency as lttng-analyses defines it.
pub(crate) struct Wait {
    pub(crate) tid: i32,
    pub(crate) prio: Option<i32>,
    pub(crate) ns: i64,
}

pub(crate) struct Facts {
    pub(crate) trace: InMemory,
    /// Every name of each thread id.
    names: HashMap<i32, BTreeSet<String>>,
    pub(crate) waits: Vec<Wait>,
    /// Indexes of the calls that returned, by thread id.
    calls: HashMap<i32, Vec<usize>>,
    /// Calls in the full log of lttng-analyses, by times and thread.
    pub(crate) logged: BTreeSet<String>,
}

impl Facts {
    pub(crate) fn of(source: &Path, logged: BTreeSet<String>) -> Self {
        let trace = import_in_memory(&[source.to_owned()]).expect("the trace imports");
        let tid_of: HashMap<i32, i32> = trace
            .rows
            .thread
            .iter()
            .map(|row| (row.utid, row.tid))
            .collect();
        let mut names: HashMap<i32, BTreeSet<String>> = HashMap::new();
        for row in &trace.rows.thread_comm {
            let name = trace.symbols.get(row.comm).to_owned();
            names.entry(tid_of[&row.utid]).or_default().insert(name);
        }
        // A child has the name of its parent until it takes another.
        for row in &trace.rows.thread {
            let parent = row.parent_utid.and_then(|utid| tid_of.get(&utid));
            let inherited = parent.and_then(|tid| names.get(tid)).cloned();
            names
                .entry(row.tid)
                .or_default()
                .extend(inherited.into_iter().flatten());
        }
        let waits = waits(&trace);
        let mut calls: HashMap<i32, Vec<usize>> = HashMap::new();
        for (place, row) in trace.rows.syscall.iter().enumerate() {
            if let (Some(tid), Some(_)) = (row.tid, row.dur) {
                calls.entry(tid).or_default().push(place);
            }
        }
        Self {
            trace,
            names,
            waits,
            calls,
            logged,
        }
    }

    pub(crate) fn text(&self, sym: Option<Sym>) -> &str {
        sym.map_or("", |sym| self.trace.symbols.get(sym))
    }

    pub(crate) fn was_named(&self, tid: &str, name: &str) -> bool {
        let tid = tid.parse().ok();
        let names = tid.and_then(|tid: i32| self.names.get(&tid));
        names.is_some_and(|names| names.contains(name))
    }

    pub(crate) fn has_event(&self, names: &[&str]) -> bool {
        let stats = self.trace.rows.trace_stat.iter();
        let mut found = stats.filter(|row| row.count > 0);
        found.any(|row| names.contains(&self.trace.symbols.get(row.name)))
    }

    /// Calls of a thread that returned.
    pub(crate) fn calls<'f>(&'f self, tid: &str) -> impl Iterator<Item = &'f SyscallRow> {
        let places = tid.parse().ok().and_then(|tid: i32| self.calls.get(&tid));
        let places = places.into_iter().flatten();
        places.map(|place| &self.trace.rows.syscall[*place])
    }

    /// Calls that end with the exit of their thread instead of a return.
    pub(crate) fn exits(&self, tid: &str) -> usize {
        let is_exit =
            |row: &&SyscallRow| matches!(self.text(Some(row.name)), "exit" | "exit_group");
        self.calls(tid).filter(is_exit).count()
    }

    /// Time of a CPU in threads from the start of the range, even if the first switch shows that
    /// another thread or none was running: as lttng-analyses counts.
    pub(crate) fn busy_from_the_begin(&self, cpu: i32, range: (i64, i64)) -> f64 {
        let (begin, end) = range;
        let slices = self
            .trace
            .rows
            .sched_slice
            .iter()
            .filter(|row| row.cpu == cpu);
        let mut first = None;
        let mut busy = 0;
        for slice in slices {
            let until = slice.ts_end.unwrap_or(self.trace.end_ns).min(end);
            if until < begin || slice.ts > end {
                continue;
            }
            // The first event of the range is a switch: it may count from it on, or up to it.
            if first.is_none() {
                first = Some(slice.ts.max(begin));
            }
            busy += until - slice.ts.max(begin);
        }
        let before = first.map_or(0, |first| first - begin);
        (busy + before) as f64 / (end - begin) as f64
    }

    /// Successful or failed `fcntl(F_DUPFD)`.
    pub(crate) fn duplicated(&self) -> usize {
        let rows = self.trace.rows.syscall.iter();
        let calls = rows.filter(|row| {
            let name = self.text(Some(row.name));
            let is_open = self.text(Some(row.op)) == "open";
            name.starts_with("fcntl") && is_open && row.flags == Some(0) && row.dur.is_some()
        });
        calls.count()
    }

    /// Names of the handlers of a hard interrupt, and how often they ran.
    pub(crate) fn handlers(&self, nr: &str) -> (BTreeSet<&str>, usize) {
        let rows = self.trace.rows.irq.iter();
        let rows =
            rows.filter(|row| self.text(Some(row.kind)) == "hard" && row.nr.to_string() == nr);
        let finished: Vec<_> = rows.filter(|row| row.dur.is_some()).collect();
        let names = finished.iter().map(|row| self.text(row.name));
        (names.collect(), finished.len())
    }

    /// Bytes of reads of a process with an unrecorded start.
    pub(crate) fn cut_bytes(&self, pid: &str) -> i64 {
        let rows = self.trace.rows.syscall.iter();
        let rows = rows.filter(|row| row.pid.or(row.tid).is_some_and(|id| id.to_string() == pid));
        let cut = rows.filter(|row| row.dur.is_none());
        cut.filter_map(|row| row.bytes).sum()
    }

    /// Bytes of requests by the thread that issued them to the driver.
    pub(crate) fn issued(&self, op: &str, range: (i64, i64)) -> BTreeMap<i32, i64> {
        let threads = self.trace.rows.thread.iter();
        let tids: HashMap<i32, i32> = threads.map(|row| (row.utid, row.tid)).collect();
        let mut bytes = BTreeMap::new();
        for row in &self.trace.rows.block_io {
            let ended = row
                .ts_end
                .is_some_and(|end| range.0 <= end && end <= range.1);
            let is_write = self.text(Some(row.op)) == op;
            if let Some(tid) = row.issuer_utid.and_then(|utid| tids.get(&utid))
                && ended
                && is_write
            {
                *bytes.entry(*tid).or_default() += row.bytes;
            }
        }
        bytes
    }
}

/// From a wakeup to the following switch, whether the thread was asleep or only preempted; for a
/// new thread if its wakeup was recorded.
fn waits(trace: &InMemory) -> Vec<Wait> {
    let text = |sym: Option<Sym>| sym.map_or("", |sym| trace.symbols.get(sym));
    let mut spurious: HashMap<i32, Vec<i64>> = HashMap::new();
    for row in trace.rows.wakeup.iter().filter(|row| row.spurious) {
        if let Some(utid) = row.utid {
            spurious.entry(utid).or_default().push(row.ts);
        }
    }
    let mut waits = Vec::new();
    for row in &trace.rows.thread_state {
        let (Some(dur), Some(tid)) = (row.dur, row.tid) else {
            continue;
        };
        let ns = match text(row.reason) {
            "woken" => Some(dur),
            "created" => row.wakeup_id.map(|_| dur),
            "preempted" => {
                let woken = spurious.get(&row.utid.unwrap_or(-1));
                let inside = |ts: &&i64| row.ts <= **ts && **ts < row.ts + dur;
                let first = woken.and_then(|woken| woken.iter().find(inside));
                first.map(|woken| row.ts + dur - woken)
            }
            _ => None,
        };
        waits.extend(ns.map(|ns| Wait {
            tid,
            prio: row.prio,
            ns,
        }));
    }
    waits
}
