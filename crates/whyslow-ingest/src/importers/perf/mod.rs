//! `perf.data` files: samples with their stacks, kernel tracepoints, threads and their names.
//!
//! A file may be of any size: its records are read once, sorted one round at a time, and passed on.

mod attr;
mod head;
mod kernel;
mod maps;
mod names;
mod order;
mod reader;
mod record;
mod samples;
mod summary;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use whyslow_model::Ns;
use whyslow_model::event::{Body, Context, Event, Loss, LossKind, PrevState, StateProcess};

use super::bytes::Bytes;
pub use super::streamed::Item;
use super::task_state;
use super::tracepoint::blob::Blob;
use super::tracepoint::format::Format;
use super::tracepoint::raw::RawClass;
use super::tracepoint::topics::DeclaredTopics;
use super::tracepoint::{Facts, abi_of};
use attr::{Attr, TRACEPOINT};
pub use head::{PerfError, is_perf};
use maps::{KERNEL, Maps};
use names::Names;
use order::Pending;
use reader::Reader;
use record::{Mapped, Where, kind};
use samples::Away;

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_PREEMPT: u16 = 1 << 14;

/// Anomalies of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// perf did not finish the file.
    pub is_unfinished: bool,
    /// Bytes that are not records, and the offset of the first.
    pub damaged: (u64, Option<u64>),
    /// Records of events without a description.
    pub strange: u64,
    /// Truncated samples, and events without a required field.
    pub cut: u64,
    /// Tracepoints without a format in the file.
    pub without_format: u64,
    /// Addresses without a symbol.
    pub unnamed: u64,
    /// Number of times the kernel throttled sampling.
    pub throttled: u64,
    /// Records that were passed on before all earlier ones may have been read.
    pub sorted_early: u64,
    /// Samples without a table: of tracepoints, of counters unrelated to time.
    pub unused: u64,
}

/// A perf.data file, read as a stream in time order.
pub struct PerfSource {
    reader: Reader,
    maps: Maps,
    names: Names,
    /// By tracepoint id.
    classes: HashMap<u64, RawClass>,
    /// Added to the timestamps of records.
    offset: Ns,
    /// Whether the offset is known; otherwise it was guessed from the modification time.
    pub is_clock_known: bool,
    /// Whether there are `sched_switch` events, which contain more than context-switch records.
    has_switches: bool,
    counts: BTreeMap<String, u64>,
    /// By tracepoint id, and by attribute index.
    tracepoints: HashMap<u64, u64>,
    samples: Vec<u64>,
    cut: u64,
    without_format: u64,
    throttled: u64,
    unused: u64,
    away: HashMap<i32, Away>,
    /// Time of the last record of each CPU.
    last: HashMap<Option<i32>, Ns>,
    first: Option<Ns>,
}

impl PerfSource {
    /// `written` is the modification time of the file, in ns since 1970.
    pub fn open(path: &Path, written: Option<Ns>, shift: Ns) -> Result<Self, PerfError> {
        let reader = Reader::open(path)?;
        let (offset, is_clock_known) = match reader.info.clock {
            Some((wall, clock)) => (wall.saturating_sub(clock), true),
            None => (guessed(path, &reader, written)?, false),
        };
        let facts = Facts {
            kernel: reader
                .info
                .release
                .as_deref()
                .and_then(task_state::kernel_version),
            abi: reader.info.arch.as_deref().and_then(abi_of),
            prio_base: 0,
            pids_are_tids: true,
        };
        let blob = Blob::parse(&reader.info.tracing_data);
        let has_tasks = reader.info.attrs.iter().any(Attr::has_tasks);
        let (classes, has_switches) = classes(&blob, &reader.info.attrs, (facts, has_tasks));
        Ok(Self {
            reader,
            maps: Maps::default(),
            names: Names::default(),
            classes,
            offset: offset.saturating_add(shift),
            is_clock_known,
            has_switches,
            counts: BTreeMap::new(),
            tracepoints: HashMap::new(),
            samples: Vec::new(),
            cut: 0,
            without_format: 0,
            throttled: 0,
            unused: 0,
            away: HashMap::new(),
            last: HashMap::new(),
            first: None,
        })
    }

    /// The same without symbol lookup, because symbols come from files of this machine.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        self.names.is_off = true;
        self
    }

    /// What the file states about where and how it was recorded.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let info = &self.reader.info;
        let facts = [
            ("hostname", &info.hostname),
            ("kernel_release", &info.release),
            ("perf_version", &info.version),
            ("architecture", &info.arch),
            ("command_line", &info.command_line),
        ];
        let facts = facts.into_iter();
        facts
            .filter_map(|(key, value)| Some((key, value.clone()?)))
            .chain(self.topics())
            .collect()
    }

    /// The topics of the events in the header.
    fn topics(&self) -> impl Iterator<Item = (&'static str, String)> {
        let classes = self.classes.values();
        let mut events: Vec<&str> = classes.map(|class| class.name.as_str()).collect();
        let attrs = &self.reader.info.attrs;
        if attrs.iter().any(Attr::has_switches) {
            events.extend(["sched_switch"]);
        }
        let mut topics = DeclaredTopics::of(&events);
        if attrs.iter().any(Attr::is_of_cpu) {
            topics.add_whole("stacks");
        }
        topics.facts()
    }

    /// Number of events by name so far.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = self.counts.clone();
        let mut add = |name: String, count: u64| *counts.entry(name).or_default() += count;
        for (number, count) in &self.tracepoints {
            let class = self.classes.get(number);
            let name = class.map(|class| class.name.clone());
            add(
                name.unwrap_or_else(|| format!("tracepoint {number}")),
                *count,
            );
        }
        for (attr, count) in self.reader.info.attrs.iter().zip(&self.samples) {
            if *count > 0 {
                let number = || format!("event {}:{}", attr.kind, attr.config);
                let name = Some(attr.name.clone()).filter(|name| !name.is_empty());
                add(name.unwrap_or_else(number), *count);
            }
        }
        counts
    }

    /// Records of all types read so far.
    pub fn records(&self) -> u64 {
        self.reader.records
    }

    /// Anomalies of the file; complete once all of it was read.
    pub fn lacks(&self) -> Lacks {
        Lacks {
            is_unfinished: !self.reader.is_finished,
            damaged: (self.reader.damage.bytes, self.reader.damage.offset),
            strange: self.reader.strange,
            cut: self.cut,
            without_format: self.without_format,
            unnamed: self.names.unnamed,
            throttled: self.throttled,
            sorted_early: self.reader.sorted_early(),
            unused: self.unused,
        }
    }

    /// Bytes read, and all there are.
    pub fn progress(&self) -> (u64, u64) {
        self.reader.progress()
    }

    /// Timestamp of the next record.
    pub fn next_ts(&mut self) -> io::Result<Option<Ns>> {
        let next = self.reader.next_ts()?;
        Ok(next.map(|ts| self.time(ts)))
    }

    /// Passes on the contents of the next record; false if there is none.
    pub fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool> {
        let Some(pending) = self.reader.next()? else {
            return Ok(false);
        };
        if pending.header.kind == kind::SAMPLE {
            self.sample(&pending, take);
        } else {
            self.record(&pending, take);
        }
        Ok(true)
    }

    fn time(&self, ts: u64) -> Ns {
        if ts == 0 {
            return self.first.unwrap_or(self.offset);
        }
        i64::try_from(ts)
            .unwrap_or(i64::MAX)
            .saturating_add(self.offset)
    }

    fn record(&mut self, pending: &Pending, take: &mut dyn FnMut(Item<'_>)) {
        let is_big_endian = self.reader.is_big_endian;
        let attr = &self.reader.info.attrs[pending.attr];
        let place = Where::of_end(&pending.body, attr, is_big_endian);
        let at = At {
            ts: self.time(pending.ts),
            is_before: pending.ts == 0,
            place,
        };
        let mut bytes = Bytes::new(&pending.body, is_big_endian);
        let name = match pending.header.kind {
            kind::MMAP | kind::MMAP2 => {
                self.mapped(pending);
                "mmap"
            }
            kind::COMM => {
                let _ = self.named(pending, bytes, at, take);
                "comm"
            }
            kind::FORK => {
                let _ = self.forked(bytes, at, take);
                "fork"
            }
            kind::EXIT => {
                if let (Some(_), Some(_), Some(tid)) = (bytes.i32(), bytes.i32(), bytes.i32()) {
                    take(at.event(Body::Exit { tid, comm: b"" }));
                    self.away.remove(&tid);
                }
                "exit"
            }
            kind::LOST => {
                let lost = bytes.u64().and_then(|_| bytes.u64());
                self.lose(at, lost, take);
                "lost"
            }
            kind::LOST_SAMPLES => {
                let lost = bytes.u64();
                self.lose(at, lost, take);
                "lost_samples"
            }
            kind::THROTTLE => {
                self.throttled += 1;
                "throttle"
            }
            kind::SWITCH_CPU_WIDE => {
                self.switched(pending, bytes, at, take);
                "switch"
            }
            _ => "other",
        };
        self.count(name);
        self.last.insert(place.cpu, at.ts);
    }

    fn count(&mut self, name: &str) {
        match self.counts.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(name.to_owned(), 1);
            }
        }
    }

    fn mapped(&mut self, pending: &Pending) {
        let mapped = Mapped::parse(pending.header, &pending.body, self.reader.is_big_endian);
        let Some(mapped) = mapped else {
            self.cut += 1;
            return;
        };
        if mapped.pid == KERNEL {
            self.names
                .kernel_at((mapped.path, mapped.offset), mapped.build_id);
        }
        self.maps.add(&mapped);
    }

    fn named(
        &mut self,
        pending: &Pending,
        mut bytes: Bytes<'_>,
        at: At,
        take: &mut dyn FnMut(Item<'_>),
    ) -> Option<()> {
        let (pid, tid) = (bytes.i32()?, bytes.i32()?);
        let comm = bytes.text();
        if at.is_before {
            let body = Body::StateProcess(StateProcess {
                tid,
                pid: Some(pid),
                comm: Some(comm),
                ..StateProcess::default()
            });
            take(Item::Before(at.whole(body)));
            return Some(());
        }
        if pending.header.misc & MISC_COMM_EXEC != 0 {
            self.maps.clear(pid);
        }
        take(at.event(Body::CommChange { tid, comm }));
        Some(())
    }

    fn forked(
        &mut self,
        mut bytes: Bytes<'_>,
        at: At,
        take: &mut dyn FnMut(Item<'_>),
    ) -> Option<()> {
        let (pid, ppid) = (bytes.i32()?, bytes.i32()?);
        let (tid, ptid) = (bytes.i32()?, bytes.i32()?);
        if pid != ppid {
            self.maps.fork(ppid, pid);
        }
        // Threads from before the recording get their name as an event, too.
        if !at.is_before {
            take(at.event(Body::Fork {
                parent_tid: ptid,
                parent_pid: Some(ppid),
                parent_comm: b"",
                child_tid: tid,
                child_pid: Some(pid),
                child_comm: b"",
            }));
        }
        Some(())
    }

    fn lose(&mut self, at: At, lost: Option<u64>, take: &mut dyn FnMut(Item<'_>)) {
        // Since the previous record on that CPU.
        let since = self.last.get(&at.place.cpu).copied().unwrap_or(at.ts);
        take(Item::Loss(Loss {
            ts: since.min(at.ts),
            ts_end: Some(at.ts),
            cpu: at.place.cpu,
            stream: "perf",
            kind: LossKind::Events,
            count: lost.map(|lost| i64::try_from(lost).unwrap_or(i64::MAX)),
        }));
    }

    /// A switch from a record of `perf record --switch-events`.
    fn switched(
        &mut self,
        pending: &Pending,
        mut bytes: Bytes<'_>,
        at: At,
        take: &mut dyn FnMut(Item<'_>),
    ) {
        let misc = pending.header.misc;
        let next = bytes.i32().and_then(|_| bytes.i32());
        let (Some(next_tid), Some(prev_tid)) = (next, at.place.tid) else {
            return;
        };
        // The record of the outgoing thread names both threads; tracepoints contain more.
        if misc & MISC_SWITCH_OUT == 0 || self.has_switches || next_tid < 0 || prev_tid < 0 {
            return;
        }
        let prev_state = if misc & MISC_SWITCH_PREEMPT != 0 {
            PrevState::Runnable { preempted: true }
        } else {
            PrevState::Unknown(-1)
        };
        take(at.event(Body::SchedSwitch {
            prev_tid,
            prev_comm: b"",
            prev_prio: None,
            prev_state,
            next_tid,
            next_comm: b"",
            next_prio: None,
        }));
    }
}

/// Time and thread of an event.
#[derive(Debug, Clone, Copy)]
struct At {
    ts: Ns,
    is_before: bool,
    place: Where,
}

impl At {
    fn whole(self, body: Body<'_>) -> Event<'_> {
        // A thread that has exited has no tid.
        let known = |id: Option<i32>| id.filter(|id| *id >= 0);
        Event {
            ts: self.ts,
            cpu: self.place.cpu,
            context: Context {
                tid: known(self.place.tid),
                pid: known(self.place.pid),
                ..Context::default()
            },
            body,
        }
    }

    fn event(self, body: Body<'_>) -> Item<'_> {
        if self.is_before {
            Item::Before(self.whole(body))
        } else {
            Item::Event(self.whole(body))
        }
    }
}

/// Tracepoint definitions by id, and whether switches are among them.
fn classes(
    blob: &Blob,
    attrs: &[Attr],
    (facts, has_tasks): (Facts, bool),
) -> (HashMap<u64, RawClass>, bool) {
    let is_recorded = |format: &&Format| {
        let mut tracepoints = attrs.iter().filter(|attr| attr.kind == TRACEPOINT);
        tracepoints.any(|attr| attr.config == format.id)
    };
    let recorded: Vec<&Format> = blob.formats.iter().filter(is_recorded).collect();
    // The kernel's own records of these contain more.
    let is_redundant = |format: &Format| {
        const REDUNDANT: [&str; 3] = ["sched_process_fork", "sched_process_exit", "task_rename"];
        has_tasks && REDUNDANT.contains(&format.name.as_str())
    };
    let mut found = HashMap::new();
    for format in &recorded {
        let has = |name: &str| recorded.iter().any(|other| other.name == name);
        let class = RawClass::new(format, facts, blob.is_big_endian, |name| {
            has(name) && !is_redundant(format)
        });
        let class = if is_redundant(format) {
            class.unused()
        } else {
            class
        };
        found.insert(format.id, class);
    }
    let has_switches = recorded.iter().any(|format| format.name == "sched_switch");
    (found, has_switches)
}

/// Offset if the last record is from the modification time of the file.
fn guessed(path: &Path, reader: &Reader, written: Option<Ns>) -> Result<Ns, PerfError> {
    let Some(written) = written else {
        return Ok(0);
    };
    let last = match reader.info.sample_time {
        Some((_, last)) if last > 0 => last,
        _ => last_ts(path)?,
    };
    Ok(written.saturating_sub(i64::try_from(last).unwrap_or(i64::MAX)))
}

/// Reads the whole file to find the time of the last record.
fn last_ts(path: &Path) -> Result<u64, PerfError> {
    let mut reader = Reader::open(path)?;
    let mut last = 0;
    while let Some(pending) = reader.next()? {
        last = last.max(pending.ts);
    }
    Ok(last)
}
