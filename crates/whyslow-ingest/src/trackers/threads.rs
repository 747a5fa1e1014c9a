//! Records of threads and processes, addressed by dense slots, found by kernel ids.
//!
//! A record exists from the first event of the thread until the kernel frees it, its id is reused
//! for another thread, or (for dead threads) [`DEAD_MAX`] others died after it. Then its rows are
//! written and the slot is reused: memory depends on the number of live threads, not on the length
//! of the trace.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, ProcessRow, ThreadCommRow, ThreadRow};
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Change, Output, ProcessRef, ThreadRef};

/// Maximum number of known threads; above it, one is dropped for each new one. Linux itself allows
/// four million, a traced machine rarely has ten thousand.
const THREADS_MAX: usize = 1 << 18;

/// Maximum number of dead threads kept for late events (the kernel frees a thread after its last
/// switch).
const DEAD_MAX: usize = 4096;

/// Process names of the LTTng tracer itself.
const TRACERS: [&str; 4] = [
    "lttng-consumerd",
    "lttng-sessiond",
    "lttng-relayd",
    "lttng-runas",
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Thread {
    pub(super) utid: i32,
    pub(super) tid: i32,
    pub(super) process: Option<u32>,
    upid: Option<i32>,
    pub(super) pid: Option<i32>,
    comm: Option<Comm>,
    pub(super) ts_start: Option<Ns>,
    pub(super) ts_exit: Option<Ns>,
    ts_first: Ns,
    pub(super) ts_last: Ns,
    pub(super) parent_utid: Option<i32>,
    pub(super) is_kernel: Option<bool>,
    is_tracer: bool,
    pub(super) runtime_name: Option<Sym>,
    /// Off-CPU for the last time.
    pub(super) dead: bool,
    /// The kernel freed it while it still seemed to be running.
    pub(super) freed: bool,
    gone: bool,
}

#[derive(Debug, Clone, Copy)]
struct Comm {
    id: i64,
    sym: Sym,
    since: Ns,
    begin_known: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) upid: i32,
    pub(super) pid: i32,
    pub(super) parent_upid: Option<i32>,
    pub(super) ppid: Option<i32>,
    comm: Option<Sym>,
    pub(super) exe: Option<Sym>,
    pub(super) about: About,
    pub(super) ts_start: Option<Ns>,
    ts_exit: Option<Ns>,
    is_tracer: bool,
    /// Threads with a record, and those of them that did not exit.
    members: u32,
    live: u32,
    ended: bool,
}

/// Properties that a process inherits from its parent until it executes a program of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct About {
    pub(super) command_line: Option<Sym>,
    pub(super) uid: Option<i64>,
    pub(super) user: Option<Sym>,
    pub(super) cgroup: Option<Sym>,
    pub(super) container: Option<Sym>,
    pub(super) mount_ns: Option<i64>,
    pub(super) ts_created: Option<Ns>,
}

#[derive(Debug, Default)]
pub(super) struct Threads {
    records: Vec<Thread>,
    processes: Vec<Process>,
    free: Vec<u32>,
    /// Slots dropped by the current event: its other changes may still refer to them.
    leaving: Vec<u32>,
    free_processes: Vec<u32>,
    by_tid: FxHashMap<i32, u32>,
    by_pid: FxHashMap<i32, u32>,
    /// Dead threads, oldest first, as (slot, utid).
    dead: VecDeque<(u32, i32)>,
    next_utid: i32,
    next_upid: i32,
    next_comm: i64,
    /// Position of the search for a record to drop.
    hand: usize,
    pub(super) changes: Vec<Change>,
    /// Names given by runtimes, whose kernel names may be truncated, by thread id.
    whole_names: FxHashMap<i32, Box<str>>,
    /// Process id of the recorder, if it reported itself.
    recorder: Option<i32>,
}

/// Maximum length of a thread name in the kernel, in bytes.
const KERNEL_NAME: usize = 15;

impl Threads {
    /// Announces full names of threads, used if the kernel's name is a prefix.
    pub(super) fn expect_names(&mut self, names: impl Iterator<Item = (i32, Box<str>)>) {
        let long = names.filter(|(_, name)| name.len() > KERNEL_NAME);
        self.whole_names.extend(long);
    }

    /// Marks a process as the recorder. It exists during the whole recording, so that its id belongs
    /// to no other process.
    pub(super) fn expect_recorder(&mut self, pid: i32) {
        self.recorder = Some(pid);
        if let Some(&process) = self.by_pid.get(&pid) {
            self.processes[process as usize].is_tracer = true;
        }
    }

    /// The full name, if the kernel may have truncated it.
    fn whole<'n>(&'n self, tid: i32, comm: &'n [u8]) -> &'n [u8] {
        let whole = self.whole_names.get(&tid).map(|name| name.as_bytes());
        let is_cut = comm.len() == KERNEL_NAME;
        let whole = whole.filter(|whole| is_cut && whole.starts_with(comm));
        whole.unwrap_or(comm)
    }

    /// Starts an event: slots dropped by the last one may be reused.
    pub(super) fn begin(&mut self) {
        if !self.changes.is_empty() {
            self.changes.clear();
            self.free.append(&mut self.leaving);
        }
    }

    pub(super) fn find(&self, tid: i32) -> Option<u32> {
        self.by_tid.get(&tid).copied()
    }

    pub(super) fn get(&self, slot: u32) -> &Thread {
        &self.records[slot as usize]
    }

    /// Whether a slot still belongs to the thread, and its end was not seen.
    #[inline]
    pub(super) fn is_current(&self, slot: u32, utid: i32) -> bool {
        let thread = self.records.get(slot as usize);
        thread.is_some_and(|thread| thread.utid == utid && !thread.gone && !thread.dead)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Thread {
        &mut self.records[slot as usize]
    }

    pub(super) fn about(&self, slot: u32) -> Option<&About> {
        let process = self.records.get(slot as usize)?.process?;
        Some(&self.processes[process as usize].about)
    }

    pub(super) fn process_of(&mut self, slot: u32) -> Option<&mut Process> {
        let process = self.records[slot as usize].process?;
        Some(&mut self.processes[process as usize])
    }

    pub(super) fn reference(&self, slot: u32) -> ThreadRef {
        let thread = &self.records[slot as usize];
        let process = thread.process.map(|p| &self.processes[p as usize]);
        ThreadRef {
            slot,
            utid: thread.utid,
            upid: thread.upid,
            tid: thread.tid,
            pid: thread.pid,
            comm: thread.comm.map(|comm| comm.sym),
            is_tracer: thread.is_tracer || process.is_some_and(|process| process.is_tracer),
        }
    }

    pub(super) fn process_by_pid(&self, pid: i32) -> Option<ProcessRef> {
        let &process = self.by_pid.get(&pid)?;
        Some(self.process_reference(process))
    }

    /// Creates a record for an unknown thread.
    pub(super) fn create<S: EmitAll>(&mut self, tid: i32, ts: Ns, out: &mut Output<'_, S>) -> u32 {
        if self.by_tid.len() >= THREADS_MAX {
            self.give_up_one(ts, out);
        }
        let thread = Thread {
            utid: self.next_utid,
            tid,
            process: None,
            upid: None,
            pid: None,
            comm: None,
            ts_start: None,
            ts_exit: None,
            ts_first: ts,
            ts_last: ts,
            parent_utid: None,
            is_kernel: None,
            runtime_name: None,
            is_tracer: false,
            dead: false,
            freed: false,
            gone: false,
        };
        self.next_utid = self.next_utid.saturating_add(1);
        let slot = place(&mut self.records, &mut self.free, thread);
        self.by_tid.insert(tid, slot);
        slot
    }

    /// Sets the process of a thread whose process was unknown.
    pub(super) fn join(&mut self, slot: u32, pid: i32) {
        let process = match self.by_pid.get(&pid) {
            Some(&process) => process,
            None => self.create_process(pid),
        };
        let record = &mut self.processes[process as usize];
        record.members += 1;
        let thread = &mut self.records[slot as usize];
        if thread.ts_exit.is_none() {
            record.live += 1;
            // A process whose known threads had all exited had one more than was known.
            record.ended = false;
            record.ts_exit = None;
        }
        thread.process = Some(process);
        thread.upid = Some(record.upid);
        thread.pid = Some(pid);
        if thread.tid == pid {
            record.comm = thread.comm.map(|comm| comm.sym).or(record.comm);
            record.is_tracer |= thread.is_tracer;
        }
    }

    /// Removes the process with this id, because the id was reused for a new one.
    pub(super) fn release_pid(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }

    /// Names a thread. `exact` means that the name starts now, not at some time before.
    pub(super) fn set_comm<S: EmitAll>(
        &mut self,
        slot: u32,
        comm: &[u8],
        now: (Ns, bool),
        out: &mut Output<'_, S>,
    ) {
        let comm = until_nul(comm);
        let thread = &self.records[slot as usize];
        let (known, tid) = (thread.comm, thread.tid);
        let is_known = known.is_some_and(|known| {
            let known = out.symbols.get(known.sym).as_bytes();
            // Only a runtime gives longer names.
            known == comm || comm.len() == KERNEL_NAME && known.starts_with(comm)
        });
        if is_known || comm.is_empty() {
            return;
        }
        let sym = out.intern(self.whole(tid, comm));
        let thread = &mut self.records[slot as usize];
        let (ts, exact) = now;
        let had_name = thread.comm.is_some();
        if let Some(known) = thread.comm {
            if known.sym == sym {
                return;
            }
            out.sink.emit(comm_row(thread.utid, known, Some(ts)));
        }
        thread.comm = Some(Comm {
            id: self.next_comm,
            sym,
            since: ts,
            begin_known: exact || had_name,
        });
        self.next_comm += 1;
        let tracer = TRACERS.contains(&out.symbols.get(sym));
        thread.is_tracer |= tracer;
        if thread.pid == Some(thread.tid)
            && let Some(process) = thread.process
        {
            let process = &mut self.processes[process as usize];
            process.comm = Some(sym);
            process.is_tracer |= tracer;
        }
    }

    /// Sets the name given by its runtime.
    pub(super) fn set_runtime_name(&mut self, slot: u32, name: Sym) {
        self.records[slot as usize].runtime_name = Some(name);
    }

    /// The thread executes another program: its previous properties no longer apply.
    pub(super) fn set_exe<S: EmitAll>(
        &mut self,
        slot: u32,
        filename: &[u8],
        out: &mut Output<'_, S>,
    ) {
        let exe = out.intern(until_nul(filename));
        let path = out.symbols.get(exe);
        let base = path.rsplit('/').next().unwrap_or(path);
        let is_tracer = TRACERS.contains(&base);
        self.records[slot as usize].is_tracer = is_tracer;
        let recorder = self.recorder;
        if let Some(process) = self.process_of(slot) {
            process.exe = Some(exe);
            process.about.command_line = None;
            process.is_tracer = is_tracer || recorder == Some(process.pid);
        }
    }

    /// The thread called exit.
    pub(super) fn exit(&mut self, slot: u32, ts: Ns) {
        let thread = &mut self.records[slot as usize];
        if thread.ts_exit.is_some() {
            return;
        }
        thread.ts_exit = Some(ts);
        let process = thread.process;
        let thread = self.reference(slot);
        self.changes.push(Change::Exited { thread });
        if let Some(process) = process {
            self.processes[process as usize].live -= 1;
            self.end_process_if_empty(process, Some(ts));
        }
    }

    /// The thread went off-CPU for the last time.
    pub(super) fn die<S: EmitAll>(&mut self, slot: u32, ts: Ns, out: &mut Output<'_, S>) {
        self.exit(slot, ts);
        let thread = &mut self.records[slot as usize];
        if thread.dead {
            return;
        }
        thread.dead = true;
        if thread.freed {
            self.retire(slot, out);
            return;
        }
        self.dead.push_back((slot, thread.utid));
        if self.dead.len() > DEAD_MAX
            && let Some((old, utid)) = self.dead.pop_front()
            && self.records[old as usize].utid == utid
        {
            self.retire(old, out);
        }
    }

    /// Gives a thread the id of the main thread, as exec does.
    pub(super) fn renumber<S: EmitAll>(
        &mut self,
        slot: u32,
        tid: i32,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        let former = self.by_tid.insert(tid, slot);
        let old_tid = std::mem::replace(&mut self.records[slot as usize].tid, tid);
        if self.by_tid.get(&old_tid) == Some(&slot) {
            self.by_tid.remove(&old_tid);
        }
        if let Some(former) = former.filter(|&former| former != slot) {
            self.exit(former, ts);
            self.retire(former, out);
        }
    }

    /// Writes the rows of a thread after its last event, and frees its record.
    pub(super) fn retire<S: EmitAll>(&mut self, slot: u32, out: &mut Output<'_, S>) {
        if self.records[slot as usize].gone {
            return;
        }
        let thread = self.reference(slot);
        self.write(slot, false, out);
        if self.by_tid.get(&thread.tid) == Some(&slot) {
            self.by_tid.remove(&thread.tid);
        }
        let record = &mut self.records[slot as usize];
        record.gone = true;
        self.leaving.push(slot);
        let (process, exited) = (record.process, record.ts_exit);
        self.changes.push(Change::Gone { thread });
        let Some(process) = process else { return };
        let record = &mut self.processes[process as usize];
        record.members -= 1;
        if exited.is_none() {
            record.live -= 1;
            self.end_process_if_empty(process, None);
        }
        if self.processes[process as usize].members == 0 {
            self.write_process(process, out);
            let pid = self.processes[process as usize].pid;
            if self.by_pid.get(&pid) == Some(&process) {
                self.by_pid.remove(&pid);
            }
            self.free_processes.push(process);
        }
    }

    /// Writes the rows of all remaining records.
    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        for slot in 0..self.records.len() as u32 {
            if !self.records[slot as usize].gone {
                self.write(slot, true, out);
            }
        }
        for process in 0..self.processes.len() as u32 {
            if self.processes[process as usize].members > 0 {
                self.write_process(process, out);
            }
        }
    }

    fn process_reference(&self, process: u32) -> ProcessRef {
        let process = &self.processes[process as usize];
        ProcessRef {
            upid: process.upid,
            pid: process.pid,
            comm: process.comm,
        }
    }

    fn create_process(&mut self, pid: i32) -> u32 {
        let process = Process {
            upid: self.next_upid,
            pid,
            parent_upid: None,
            ppid: None,
            comm: None,
            exe: None,
            about: About::default(),
            ts_start: None,
            ts_exit: None,
            is_tracer: self.recorder == Some(pid),
            members: 0,
            live: 0,
            ended: false,
        };
        self.next_upid = self.next_upid.saturating_add(1);
        let slot = place(&mut self.processes, &mut self.free_processes, process);
        self.by_pid.insert(pid, slot);
        slot
    }

    fn end_process_if_empty(&mut self, process: u32, ts_exit: Option<Ns>) {
        let record = &mut self.processes[process as usize];
        if record.live > 0 || record.ended {
            return;
        }
        record.ended = true;
        record.ts_exit = ts_exit;
        let process = self.process_reference(process);
        self.changes.push(Change::ProcessEnded { process });
    }

    /// Frees a record: the next one after the clock hand. Only input crafted to fill the table gets
    /// here, so the choice needs to be cheap, not good.
    fn give_up_one<S: EmitAll>(&mut self, ts: Ns, out: &mut Output<'_, S>) {
        for _ in 0..self.records.len() {
            self.hand = (self.hand + 1) % self.records.len();
            if !self.records[self.hand].gone {
                out.anomalies.count(&stat::MAP_LIMIT, ts);
                self.retire(self.hand as u32, out);
                return;
            }
        }
    }

    /// `alive`: the thread is still running at the end of the recording.
    fn write<S: EmitAll>(&self, slot: u32, alive: bool, out: &mut Output<'_, S>) {
        let thread = &self.records[slot as usize];
        let reference = self.reference(slot);
        if let Some(comm) = thread.comm {
            let ts_end = match thread.ts_exit {
                Some(ts_exit) => Some(ts_exit.max(comm.since)),
                None if alive => None,
                None => Some(thread.ts_last.max(comm.since)),
            };
            out.sink.emit(comm_row(thread.utid, comm, ts_end));
        }
        out.sink.emit(ThreadRow {
            utid: thread.utid,
            upid: thread.upid,
            tid: thread.tid,
            pid: thread.pid,
            comm: reference.comm,
            ts_start: thread.ts_start,
            ts_exit: thread.ts_exit,
            ts_first: thread.ts_first,
            ts_last: thread.ts_last,
            parent_utid: thread.parent_utid,
            is_main: thread.pid.map(|pid| pid == thread.tid),
            is_kernel: thread.is_kernel,
            is_tracer: reference.is_tracer,
            runtime_name: thread.runtime_name,
        });
    }

    fn write_process<S: EmitAll>(&self, process: u32, out: &mut Output<'_, S>) {
        let process = &self.processes[process as usize];
        let parent_upid = process.parent_upid.or_else(|| {
            // The state dump reported the parent's id before the parent.
            let parent = &self.processes[*self.by_pid.get(&process.ppid?)? as usize];
            let both_there_before = process.ts_start.is_none() && parent.ts_start.is_none();
            both_there_before.then_some(parent.upid)
        });
        out.sink.emit(ProcessRow {
            upid: process.upid,
            pid: process.pid,
            parent_upid,
            ppid: process.ppid,
            comm: process.comm,
            exe: process.exe,
            command_line: process.about.command_line,
            uid: process.about.uid,
            user_name: process.about.user,
            cgroup: process.about.cgroup,
            container: process.about.container,
            mount_ns: process.about.mount_ns,
            ts_created: process.ts_start.or(process.about.ts_created),
            ts_start: process.ts_start,
            ts_exit: process.ts_exit,
            is_tracer: process.is_tracer,
        });
    }
}

/// Stores a record in a free slot, or in a new one.
fn place<T>(records: &mut Vec<T>, free: &mut Vec<u32>, record: T) -> u32 {
    if let Some(slot) = free.pop() {
        records[slot as usize] = record;
        return slot;
    }
    records.push(record);
    records.len() as u32 - 1
}

fn comm_row(utid: i32, comm: Comm, ts_end: Option<Ns>) -> ThreadCommRow {
    ThreadCommRow {
        id: comm.id,
        ts: comm.since,
        dur: ts_end
            .filter(|_| comm.begin_known)
            .map(|end| end - comm.since),
        ts_end,
        utid,
        comm: comm.sym,
    }
}

/// Names are text arrays of fixed length, padded with zeros.
fn until_nul(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|&byte| byte == 0) {
        Some(end) => &bytes[..end],
        None => bytes,
    }
}
