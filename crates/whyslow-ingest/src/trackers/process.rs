//! Threads and processes: their existence, ids, names and ancestry.
//!
//! The kernel reuses ids, and sources start in the middle of lives and report them piecemeal: a
//! switch contains id and name, a context id and process, a state dump everything. Every piece goes
//! through [`Processes::know`], which finds the matching record, or creates a new one if it
//! contradicts the old one: an id that appears in another process, or after its thread exited, is
//! another thread.
//!
//! A thread's process is never guessed. Data about an id before its process was known stays without
//! a process; [`Change::Joined`](super::identity::Change) reports when the process becomes known.

use whyslow_model::event::{Body, Context, Event, PrevState, ProcessAbout, StateProcess};
use whyslow_model::tables::{EmitAll, ProcessViewRow};
use whyslow_model::{Ns, Sym};

use super::identity::{Change, Output, ProcessRef, Running, ThreadRef};
use super::threads::{About, Threads};

/// The parent of all kernel threads.
const KTHREADD: i32 = 2;

/// Maximum length of a thread name in the kernel.
const COMM_MAX: usize = 15;

/// All threads and processes of a machine.
#[derive(Debug, Default)]
pub struct Processes {
    threads: Threads,
    /// Rows of `process_view`.
    views: i64,
}

impl Processes {
    /// Changes by the current event.
    pub fn changes(&self) -> &[Change] {
        &self.threads.changes
    }

    /// The current thread with this id.
    pub fn by_tid(&self, tid: i32) -> Option<ThreadRef> {
        self.threads.find(tid).map(|slot| self.by_slot(slot))
    }

    /// The thread in a slot that is in use.
    pub fn by_slot(&self, slot: u32) -> ThreadRef {
        self.threads.reference(slot)
    }

    /// The current process with this id.
    pub fn by_pid(&self, pid: i32) -> Option<ProcessRef> {
        self.threads.process_by_pid(pid)
    }

    /// Whether it is a kernel thread; `None` if unknown.
    pub fn is_kernel(&self, thread: ThreadRef) -> Option<bool> {
        self.threads.get(thread.slot).is_kernel
    }

    /// According to the snapshot, its parents or its last exec.
    pub(super) fn mount_ns(&self, thread: ThreadRef) -> Option<i64> {
        self.threads.about(thread.slot)?.mount_ns
    }

    pub(super) fn begin(&mut self) {
        self.threads.begin();
    }

    /// Time of the last event of the thread.
    pub(super) fn ts_last(&self, slot: u32) -> Ns {
        self.threads.get(slot).ts_last
    }

    pub(super) fn ts_exit(&self, slot: u32) -> Option<Ns> {
        self.threads.get(slot).ts_exit
    }

    /// The thread was running at that time.
    pub(super) fn seen(&mut self, slot: u32, ts: Ns) -> ThreadRef {
        self.threads.get_mut(slot).ts_last = ts;
        self.by_slot(slot)
    }

    /// Whether the thread is still the current one with its id.
    #[inline]
    pub(super) fn still_is(&self, thread: ThreadRef) -> bool {
        self.threads.is_current(thread.slot, thread.utid)
    }

    /// Names that runtimes give to threads with these ids.
    pub(super) fn expect_names(&mut self, names: impl Iterator<Item = (i32, Box<str>)>) {
        self.threads.expect_names(names);
    }

    /// The process that records.
    pub(super) fn expect_recorder(&mut self, pid: i32) {
        self.threads.expect_recorder(pid);
    }

    /// A thread in a profile: id, process, name. `is_other` if the id belonged to another thread of
    /// the runtime before. The kernel's own name of the thread is kept.
    pub(super) fn sampled<S: EmitAll>(
        &mut self,
        (tid, pid, name): (i32, Option<i32>, Option<&str>),
        is_other: bool,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> ThreadRef {
        if is_other && let Some(slot) = self.threads.find(tid) {
            self.threads.retire(slot, out);
        }
        let slot = self.know(tid, pid, ts, out);
        if let Some(name) = name {
            if self.by_slot(slot).comm.is_none() {
                self.threads
                    .set_comm(slot, name.as_bytes(), (ts, false), out);
            }
            let sym = out.symbols.intern(name);
            self.threads.set_runtime_name(slot, sym);
        }
        self.by_slot(slot)
    }

    /// The running thread according to the context of an event; `Unknown` without a context.
    pub(super) fn running_by_context<S: EmitAll>(
        &mut self,
        context: &Context<'_>,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> Running {
        let Some(tid) = context.tid else {
            return Running::Unknown;
        };
        if tid <= 0 {
            return Running::Idle;
        }
        let slot = self.know(tid, context.pid, ts, out);
        if let Some(comm) = context.comm {
            self.threads.set_comm(slot, comm, (ts, false), out);
        }
        if let Some(ppid) = context.ppid {
            self.set_ppid(slot, ppid);
        }
        Running::Thread(slot)
    }

    /// The running thread according to the event itself; `Unknown` if it does not report it.
    pub(super) fn running_by_event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        out: &mut Output<'_, S>,
    ) -> Running {
        let (tid, pid, comm) = match event.body {
            Body::SchedSwitch {
                prev_tid,
                prev_comm,
                ..
            } => (prev_tid, None, Some(prev_comm)),
            Body::Fork {
                parent_tid,
                parent_pid,
                parent_comm,
                ..
            } => (parent_tid, parent_pid, Some(parent_comm)),
            Body::Exit { tid, comm } => (tid, None, Some(comm)),
            Body::Exec {
                tid: Some(tid),
                old_tid,
                ..
            } => (old_tid.unwrap_or(tid), None, None),
            _ => return Running::Unknown,
        };
        if tid <= 0 {
            return Running::Idle;
        }
        let context = &event.context;
        let pid = pid.or(context.pid.filter(|_| context.tid == Some(tid)));
        let slot = self.know(tid, pid, event.ts, out);
        if let Some(comm) = comm {
            self.threads.set_comm(slot, comm, (event.ts, false), out);
        }
        Running::Thread(slot)
    }

    /// Applies what the event reports about threads other than the running one, and about their
    /// lifetimes. Returns the slot of the thread that the event is about, if it is another one: the
    /// one switched to, woken or created.
    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        running: Running,
        out: &mut Output<'_, S>,
    ) -> Option<u32> {
        let ts = event.ts;
        match event.body {
            Body::SchedSwitch {
                next_tid,
                next_comm,
                ..
            } => return self.named(next_tid, next_comm, ts, out),
            Body::SchedWakeup { tid, comm, .. } => return self.named(tid, comm, ts, out),
            Body::SchedMigrate { tid, .. } | Body::PrioChange { tid, .. } => {
                return self.threads.find(tid);
            }
            Body::Signal(signal) if signal.tid > 0 => {
                return Some(self.know(signal.tid, Some(signal.pid), ts, out));
            }
            Body::CommChange { tid, comm } if tid > 0 => {
                let slot = self.know(tid, None, ts, out);
                self.threads.set_comm(slot, comm, (ts, true), out);
                return Some(slot);
            }
            Body::Fork { .. } => return self.fork(event, running, out),
            Body::Exec {
                filename,
                tid,
                old_tid,
            } => self.exec(filename, (tid, old_tid), running, (ts, out)),
            Body::Exit { tid, .. } => {
                if let Some(slot) = self.threads.find(tid) {
                    self.threads.exit(slot, ts);
                }
            }
            Body::StateProcess(state) if state.tid > 0 => {
                return Some(self.state(&state, ts, out));
            }
            Body::ProcessAbout(about) if about.pid > 0 => self.about(&about, ts, out),
            Body::SyscallEnter { .. } => {
                // Kernel threads make no system calls.
                if let Running::Thread(slot) = running {
                    self.threads.get_mut(slot).is_kernel.get_or_insert(false);
                }
            }
            _ => {}
        }
        None
    }

    /// Applies the end of a life, after all trackers have seen the event.
    pub(super) fn after<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        is_running: impl Fn(u32) -> bool,
        out: &mut Output<'_, S>,
    ) {
        match event.body {
            Body::SchedSwitch {
                prev_tid,
                prev_state: PrevState::Dead | PrevState::Zombie,
                ..
            } => {
                if let Some(slot) = self.threads.find(prev_tid) {
                    self.threads.die(slot, event.ts, out);
                }
            }
            Body::Free { tid } => {
                let Some(slot) = self.threads.find(tid) else {
                    return;
                };
                let thread = self.threads.get_mut(slot);
                // The kernel reports it when the memory is freed, possibly after the id was reused
                // for another thread.
                let is_another = thread.ts_start.is_some() && thread.ts_exit.is_none();
                if is_another {
                    return;
                }
                thread.freed = true;
                if !is_running(slot) {
                    self.threads.exit(slot, event.ts);
                    self.threads.retire(slot, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        self.threads.finish(out);
    }

    /// The record of a live thread.
    fn know<S: EmitAll>(
        &mut self,
        tid: i32,
        pid: Option<i32>,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> u32 {
        let pid = pid.filter(|&pid| pid > 0);
        if let Some(slot) = self.threads.find(tid) {
            let thread = self.threads.get_mut(slot);
            let contradicts = thread.pid.is_some() && pid.is_some() && thread.pid != pid;
            if !thread.dead && !contradicts {
                thread.ts_last = ts;
                if thread.pid.is_none()
                    && let Some(pid) = pid
                {
                    self.join(slot, pid);
                }
                return slot;
            }
            self.threads.retire(slot, out);
        }
        let slot = self.threads.create(tid, ts, out);
        if let Some(pid) = pid {
            self.threads.join(slot, pid);
        }
        slot
    }

    fn named<S: EmitAll>(
        &mut self,
        tid: i32,
        comm: &[u8],
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> Option<u32> {
        if tid <= 0 {
            return None;
        }
        let slot = self.know(tid, None, ts, out);
        self.threads.set_comm(slot, comm, (ts, false), out);
        Some(slot)
    }

    fn join(&mut self, slot: u32, pid: i32) {
        self.threads.join(slot, pid);
        let thread = self.threads.reference(slot);
        self.threads.changes.push(Change::Joined { thread });
    }

    fn fork<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        running: Running,
        out: &mut Output<'_, S>,
    ) -> Option<u32> {
        let Body::Fork {
            child_tid,
            child_pid,
            child_comm,
            ..
        } = event.body
        else {
            return None;
        };
        if child_tid <= 0 {
            return None;
        }
        let ts = event.ts;
        if let Some(old) = self.threads.find(child_tid) {
            self.threads.retire(old, out);
        }
        if child_pid == Some(child_tid) {
            self.threads.release_pid(child_tid);
        }
        let slot = self.threads.create(child_tid, ts, out);
        if let Some(pid) = child_pid.filter(|&pid| pid > 0) {
            self.threads.join(slot, pid);
        }
        self.threads.set_comm(slot, child_comm, (ts, true), out);
        self.threads.get_mut(slot).ts_start = Some(ts);
        let parent = match running {
            Running::Thread(parent) if parent != slot => Some(parent),
            _ => None,
        };
        if let Some(parent) = parent {
            self.descend(parent, slot, ts);
        }
        let parent = parent.map(|parent| self.threads.reference(parent));
        let child = self.threads.reference(slot);
        self.threads.changes.push(Change::Forked { parent, child });
        Some(slot)
    }

    /// Inheritance from the parent.
    fn descend(&mut self, parent: u32, child: u32, ts: Ns) {
        let of = *self.threads.get(parent);
        let parent_process = self.threads.process_of(parent).copied();
        let thread = self.threads.get_mut(child);
        thread.parent_utid = Some(of.utid);
        thread.is_kernel = if of.tid == KTHREADD {
            Some(true)
        } else {
            of.is_kernel
        };
        if thread.process == of.process {
            return;
        }
        if let Some(process) = self.threads.process_of(child) {
            process.ts_start = Some(ts);
            process.ppid = of.pid;
            process.parent_upid = parent_process.map(|parent| parent.upid);
            process.exe = parent_process.and_then(|parent| parent.exe);
            process.about = parent_process.map_or_else(About::default, |parent| parent.about);
        }
    }

    fn exec<S: EmitAll>(
        &mut self,
        filename: &[u8],
        (tid, old_tid): (Option<i32>, Option<i32>),
        running: Running,
        (ts, out): (Ns, &mut Output<'_, S>),
    ) {
        let Running::Thread(slot) = running else {
            return;
        };
        let now = tid.filter(|&tid| tid > 0);
        if let (Some(tid), Some(old_tid)) = (now, old_tid)
            && tid != old_tid
        {
            if self.threads.get(slot).pid.is_none() {
                self.join(slot, tid);
            }
            self.threads.renumber(slot, tid, ts, out);
        }
        if self.threads.get(slot).pid.is_none() {
            // After exec a thread is the main thread, whatever it was before.
            let tid = self.threads.get(slot).tid;
            self.join(slot, tid);
        }
        self.threads.get_mut(slot).is_kernel = Some(false);
        let base = filename.rsplit(|&byte| byte == b'/').next();
        let base = base.unwrap_or(filename);
        let comm = &base[..base.len().min(COMM_MAX)];
        self.threads.set_comm(slot, comm, (ts, true), out);
        self.threads.set_exe(slot, filename, out);
        let thread = self.threads.reference(slot);
        self.threads.changes.push(Change::Execed { thread });
    }

    fn state<S: EmitAll>(
        &mut self,
        state: &StateProcess<'_>,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> u32 {
        let slot = self.know(state.tid, state.pid, ts, out);
        if let Some(comm) = state.comm {
            self.threads.set_comm(slot, comm, (ts, false), out);
        }
        if let Some(is_kernel) = state.is_kernel {
            self.threads.get_mut(slot).is_kernel = Some(is_kernel);
        }
        if let Some(ppid) = state.ppid {
            self.set_ppid(slot, ppid);
        }
        slot
    }

    fn about<S: EmitAll>(&mut self, about: &ProcessAbout<'_>, ts: Ns, out: &mut Output<'_, S>) {
        let slot = self.know(about.pid, Some(about.pid), ts, out);
        if let Some(ppid) = about.ppid {
            self.set_ppid(slot, ppid);
        }
        let Some(process) = self.threads.process_of(slot) else {
            return;
        };
        let mut text = |known: &mut Option<Sym>, reported: Option<&[u8]>| {
            if let Some(reported) = reported {
                *known = Some(out.symbols.intern_bytes(reported));
            }
        };
        // The path of a recorded exec is more specific: a script is not its interpreter.
        if process.exe.is_none() {
            text(&mut process.exe, about.executable);
        }
        let known = &mut process.about;
        text(&mut known.command_line, about.command_line);
        if about.uid.is_some() && about.uid != known.uid {
            known.user = None;
        }
        text(&mut known.user, about.user);
        if about.cgroup.is_some() {
            (known.cgroup, known.container) = (None, None);
        }
        text(
            &mut known.cgroup,
            about.cgroup.filter(|path| !path.is_empty()),
        );
        text(&mut known.container, about.container);
        known.uid = about.uid.or(known.uid);
        let is_moved = about.mount_ns.is_some() && about.mount_ns != known.mount_ns;
        known.mount_ns = about.mount_ns.or(known.mount_ns);
        known.ts_created = about.ts_created.or(known.ts_created);
        let upid = process.upid;
        if is_moved || about.root.is_some() {
            let row = ProcessViewRow {
                // Odd ids are used for system calls.
                id: 2 * self.views,
                ts,
                upid,
                mount_ns: about.mount_ns.filter(|_| is_moved),
                root: about.root.map(|root| out.intern(root)),
                is_below: false,
            };
            self.views += 1;
            out.sink.emit(row);
        }
    }

    fn set_ppid(&mut self, slot: u32, ppid: i32) {
        let parent = self.threads.process_by_pid(ppid);
        let Some(process) = self.threads.process_of(slot) else {
            return;
        };
        if process.ppid.is_none() {
            process.ppid = Some(ppid);
            process.parent_upid = parent.map(|parent| parent.upid);
        }
    }
}
