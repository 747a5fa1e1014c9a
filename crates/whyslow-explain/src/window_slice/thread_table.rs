//! Threads by recording-unique id.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::Recorder;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{ProcessRow, ThreadRow};
use whyslow_store::Tables;

use super::Utid;
use super::columns::{Result, rows};
use crate::report::Grade;

#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadInfo {
    pub(crate) tid: i32,
    pub(crate) pid: Option<i32>,
    pub(crate) upid: Option<i32>,
    pub(crate) comm: String,
    pub(crate) runtime_name: Option<String>,
    pub(crate) is_kernel: bool,
    /// Belongs to the recorder or tracer.
    pub(crate) is_tracer: bool,
}

#[derive(Debug, Clone, Default)]
struct Process {
    /// Name of its main thread.
    comm: String,
    cgroup: String,
    parent: Option<i32>,
    /// `None` if it existed before the recording.
    start: Option<i64>,
    exit: Option<i64>,
}

/// A process with a shorter lifetime counts as work of its parent.
const SHORT_LIVED_NS: i64 = 100_000_000;

#[derive(Debug, Default)]
pub(crate) struct ThreadTable {
    by_utid: FxHashMap<Utid, ThreadInfo>,
    processes: FxHashMap<i32, Process>,
    /// First thread of each process.
    mains: FxHashMap<i32, Utid>,
    /// Threads of each process, in order of their ids.
    threads: FxHashMap<i32, Vec<Utid>>,
}

impl ThreadTable {
    pub(crate) fn load(tables: &dyn Tables) -> Result<Self> {
        let mut thread_table = Self::default();
        let recorder = Recorder::of(tables)?;
        let columns = (
            &["upid", "parent_upid", "ts_start", "ts_exit"][..],
            &["comm", "cgroup"][..],
        );
        let processes = &mut thread_table.processes;
        rows(tables, ProcessRow::TABLE, columns, None, |cells, row| {
            let upid = cells.ints[0].at(row) as i32;
            let process = Process {
                comm: cells.text(0, row).to_owned(),
                cgroup: cells.text(1, row).to_owned(),
                parent: cells.small(1, row),
                start: cells.int(2, row),
                exit: cells.int(3, row),
            };
            processes.insert(upid, process);
        })?;
        let mut projection = Projection::new(ThreadRow::TABLE);
        let ints = ["utid", "tid", "pid", "upid"].map(|name| projection.need(name));
        let names = ["comm", "runtime_name"].map(|name| projection.need(name));
        let flags = ["is_kernel", "is_tracer"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(None), |batch| {
            let [utid, tid, pid, upid] = ints;
            let (utid, tid) = (utid.ints(batch)?, tid.ints(batch)?);
            let (pid, upid) = (pid.ints(batch)?, upid.ints(batch)?);
            let (comm, runtime_name) = (names[0].texts(batch)?, names[1].texts(batch)?);
            let (kernel, tracer) = (flags[0].bools(batch)?, flags[1].bools(batch)?);
            for row in 0..batch.num_rows() {
                let at = row as u32;
                let is = |column: &arrow_array::BooleanArray| {
                    !arrow_array::Array::is_null(column, row) && column.value(row)
                };
                let upid = upid.get(at).map(|upid| upid as i32);
                let thread_info = ThreadInfo {
                    tid: tid.at(at) as i32,
                    pid: pid.get(at).map(|pid| pid as i32),
                    upid,
                    comm: comm.get(at).unwrap_or("").to_owned(),
                    runtime_name: runtime_name.get(at).map(str::to_owned),
                    is_kernel: is(kernel),
                    is_tracer: is(tracer)
                        || upid
                            .and_then(|upid| thread_table.processes.get(&upid))
                            .is_some_and(|process| recorder.is_by_name(&process.comm)),
                };
                if let Some(upid) = upid {
                    let threads = thread_table.threads.entry(upid).or_default();
                    threads.push(utid.at(at) as Utid);
                }
                if let (Some(upid), true) =
                    (thread_info.upid, thread_info.pid == Some(thread_info.tid))
                {
                    thread_table.mains.insert(upid, utid.at(at) as Utid);
                }
                thread_table
                    .by_utid
                    .insert(utid.at(at) as Utid, thread_info);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for threads in thread_table.threads.values_mut() {
            threads.sort_unstable();
        }
        Ok(thread_table)
    }

    pub(crate) fn get(&self, utid: Utid) -> Option<&ThreadInfo> {
        self.by_utid.get(&utid)
    }

    /// Main thread of a process.
    pub(crate) fn main_of(&self, upid: i32) -> Option<Utid> {
        let first = || self.threads_of(upid).first();
        self.mains.get(&upid).or_else(first).copied()
    }

    pub(crate) fn upid(&self, utid: Utid) -> Option<i32> {
        self.get(utid)?.upid
    }

    /// Threads of a process, in order of their ids.
    pub(crate) fn threads_of(&self, upid: i32) -> &[Utid] {
        self.threads.get(&upid).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn comm(&self, utid: Utid) -> &str {
        self.get(utid).map_or("", |thread_info| &thread_info.comm)
    }

    /// The full name from the runtime, of which the kernel keeps the first 15 bytes; else the
    /// kernel's.
    pub(crate) fn name(&self, utid: Utid) -> &str {
        let comm = self.comm(utid);
        let full = self
            .get(utid)
            .and_then(|thread_info| thread_info.runtime_name.as_deref());
        full.filter(|name| name.starts_with(comm)).unwrap_or(comm)
    }

    /// Name of the process of a thread.
    pub(crate) fn process_comm(&self, utid: Utid) -> &str {
        let upid = self.get(utid).and_then(|thread_info| thread_info.upid);
        let comm = upid.and_then(|upid| self.processes.get(&upid));
        comm.map_or_else(|| self.comm(utid), |process| &process.comm)
    }

    /// Path of the cgroup of a thread's process; empty if it is not known.
    pub(crate) fn cgroup(&self, utid: Utid) -> &str {
        let upid = self.get(utid).and_then(|thread_info| thread_info.upid);
        let process = upid.and_then(|upid| self.processes.get(&upid));
        process.map_or("", |process| &process.cgroup)
    }

    /// Main thread of the parent, if the process of a thread was short-lived.
    pub(crate) fn spawner(&self, utid: Utid) -> Option<Utid> {
        let process = self.processes.get(&self.get(utid)?.upid?)?;
        let life = process.exit? - process.start?;
        let parent = process.parent.filter(|_| life <= SHORT_LIVED_NS)?;
        self.mains.get(&parent).copied()
    }

    /// The process that started another program in a thread's process during the recording. A server
    /// that forks runs the same program in its children.
    pub(crate) fn launcher(&self, utid: Utid) -> Option<i32> {
        let thread_info = self.get(utid).filter(|one| !one.is_kernel)?;
        let process = self.processes.get(&thread_info.upid?)?;
        let parent = process.parent.filter(|_| process.start.is_some())?;
        let by = self.processes.get(&parent)?;
        // Services of init have nothing in common.
        let is_init = self.main_of(parent).and_then(|main| self.get(main)?.pid) == Some(1);
        let is_other = !by.comm.is_empty() && by.comm != process.comm && !is_init;
        is_other.then_some(parent)
    }

    /// The grade of a thread's process being a child of another thread's process, or `None`. If the
    /// parent is not known, the exit of the process makes it likely.
    pub(crate) fn is_child(&self, child: Utid, of: Utid) -> Option<Grade> {
        let process = |utid| {
            let upid = self.get(utid)?.upid?;
            Some((upid, self.processes.get(&upid)?))
        };
        let (_, child) = process(child)?;
        match (child.parent, process(of)) {
            (Some(parent), Some((of, _))) => (parent == of).then_some(Grade::A),
            _ => child.exit.map(|_| Grade::B),
        }
    }

    pub(crate) fn same_process(&self, a: Utid, b: Utid) -> bool {
        a == b
            || match (self.get(a), self.get(b)) {
                (Some(a), Some(b)) => a.upid.is_some() && a.upid == b.upid,
                _ => false,
            }
    }

    pub(crate) fn is_kernel(&self, utid: Utid) -> bool {
        self.get(utid)
            .is_some_and(|thread_info| thread_info.is_kernel)
    }
}
