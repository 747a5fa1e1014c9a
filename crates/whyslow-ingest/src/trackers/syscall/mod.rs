//! System calls of all threads: matching of entries and returns, and the objects of calls.
//!
//! **Goal.** One row per call, with the object that it acted on as it was at that time: a `close`
//! shows the path it closes, a failed `open` the path it requested.
//!
//! **Matching.** A thread is in one call at a time, so an entry waits in the thread's slot for its
//! return. Everything that does not match is kept and cut: an entry inside a call means that the
//! return of that call was lost; a return without entry means that the entry was lost (or is before
//! the recording); a return from another call means both. Some returns do not belong to a call:
//! `clone` returns twice, the second time in the child, which is part of the parent's call;
//! `rt_sigreturn` is reported without a number or with number −1, because the kernel does not know
//! what it returns from. `exit` does not return: it ends with its thread, and so does any call
//! during which a thread is killed.
//!
//! **Unknown threads.** If the thread is unknown, entry and return cannot be matched: a call may
//! sleep, others run on its CPU in the meantime, and it may return on another CPU. Rejected:
//! matching by CPU, or by name on a CPU, which is right most of the time and wrong without any
//! indication. Chosen: one row per entry, with the call, its arguments, its time and CPU; duration
//! and result stay unknown (`cut` = `end`). Returns are only counted (`SYSCALL_THREAD_UNKNOWN`): as
//! rows they would count every call twice.
//!
//! **Lost events.** A return that was lost together with the next entry of the same call looks like a
//! very long call: see [`pairing`](super::pairing). It could have happened on any CPU. Rejected: only
//! those of the entry and of the return, because a thread may have been elsewhere in between.
//!
//! The state dump names descriptors some time after the start of the recording. Rows of calls on
//! descriptors that it may still name are buffered until then ([`BufferedRows`]).

mod buffered;
mod calls;
mod dns;
mod dump;
mod effect;
mod futex;
mod path;
mod perform;
mod row;
mod socket_ops;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, Endpoint, Event, Loss, StateProcess, SyscallArgs};
use whyslow_model::stat;
use whyslow_model::syscall::Op;
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Sym};

use self::buffered::BufferedRows;
use self::calls::Calls;
use self::effect::{CLONE_FILES, EBADF, Effect};
use super::fd::{FdTables, Owner};
use super::file::{FileLives, FileRef};
use super::identity::{Change, Here, Output, ProcessRef, ThreadRef};
use super::mapping::Mappings;
use super::object::{FdClass, Object, Reason};
use super::pairing::{Pairing, Pairings};
use super::process::Processes;
use super::query::DnsCall;
use super::request::SocketOp;

/// Call number reported for a return from a signal handler.
const FORGOTTEN: Option<i32> = Some(-1);

/// Name and number of a call, and the table that it was entered through.
#[derive(Debug, Clone, Copy)]
struct Called {
    meaning: u32,
    nr: Option<i32>,
    compat: bool,
}

/// Numeric arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    fd: Option<i32>,
    fd2: Option<i32>,
    count: Option<i64>,
    offset: Option<i64>,
    flags: Option<i64>,
    command: Option<i64>,
    value: Option<i64>,
    address: Option<u64>,
    address2: Option<u64>,
    timeout: Option<u64>,
    family: Option<i32>,
    socket_type: Option<i32>,
}

/// Object of a descriptor argument.
#[derive(Debug, Clone, Copy)]
struct Target {
    object: Object,
    /// Id of the descriptor in `fd_life`; `None` if its table does not contain it.
    descriptor: Option<i64>,
    file: Option<FileRef>,
    socket: Option<i64>,
}

/// A call in progress.
#[derive(Debug, Clone, Copy)]
struct Pending {
    id: i64,
    ts: Ns,
    thread: ThreadRef,
    cpu: Option<i32>,
    called: Called,
    op: Op,
    numbers: Numbers,
    /// Objects of the descriptor arguments.
    target: Option<Target>,
    target2: Option<Target>,
    /// Object named by path or address; takes precedence over the descriptor's.
    named: Option<Object>,
    named2: Option<Object>,
    /// Address that a socket is being connected to.
    peer: Option<Endpoint>,
    /// Whether the source reports the time of the return, if it reports the return.
    is_timed: bool,
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Returned(Ns, Option<i64>),
    /// Returned, but possibly from a later call of this name.
    Uncertain(Ns, Option<i64>, Pairing),
    /// Returned at an unknown time.
    Sometime(Option<i64>),
    /// Entry not recorded; the time is the earliest possible start.
    OfUnknownBegin(Ns, Option<i64>),
    Unknown,
}

#[derive(Debug, Default, Clone, Copy)]
struct ThreadCalls {
    pending: Option<Pending>,
    /// Before this time the thread was unknown, or in another call.
    ts_free: Option<Ns>,
    /// Forked in the recording, and in no call since.
    newborn: bool,
    /// An event showed that the current call is a successful exec.
    execed: bool,
}

#[derive(Debug, Default)]
pub(super) struct SyscallTracker {
    calls: Calls,
    threads: Vec<ThreadCalls>,
    fds: FdTables,
    files: FileLives,
    mappings: Mappings,
    buffered: BufferedRows,
    next_id: i64,
    /// Number of calls that changed a root directory.
    roots: i64,
    pipes: u32,
    /// Buffer for joining paths.
    scratch: Vec<u8>,
    unseen_exec: Option<Sym>,
    /// By name of the call and class of its object.
    pairings: Pairings<(u32, Option<FdClass>)>,
    dns_calls: Vec<DnsCall>,
    /// Whether any DNS query was seen; replies before it are ignored.
    has_queried: bool,
    /// Whether an address belongs to a name server.
    servers: FxHashMap<Sym, bool>,
    socket_ops: Vec<SocketOp>,
    /// Sockets of the current snapshot, by their numbers in the kernel.
    dumped_sockets: FxHashMap<u64, i64>,
}

impl SyscallTracker {
    /// Applies a change of threads, before the event itself.
    pub(super) fn change<S: EmitAll>(
        &mut self,
        change: &Change,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let ts = here.ts;
        match *change {
            Change::Forked { parent, child } => self.forked(parent, &child, ts),
            Change::Execed { thread } => {
                if let Some(caller) = here.thread.filter(|caller| caller.slot != thread.slot) {
                    // A thread other than the main one called exec, and takes over its id.
                    let pending = self.calls_of(&caller).pending.take();
                    self.calls_of(&thread).pending = pending;
                }
                self.calls_of(&thread).execed = true;
                self.fds.exec(&thread, ts, &self.files, out);
                self.mappings.clear(Owner::of(&thread), ts, out);
            }
            Change::Joined { thread } => {
                let buffered = &mut self.buffered;
                buffered.joined(&thread);
                self.fds.join(&thread, |id, known| {
                    if known.object.reason.is_none() {
                        buffered.known(id, known.object, known.file);
                    }
                });
                let from = Owner::thread(thread.utid);
                self.mappings.join(from, Owner::of(&thread));
            }
            Change::Exited { thread } => {
                self.ended(&thread, Some(ts), out);
                self.calls_of(&thread).ts_free = Some(ts);
            }
            Change::ProcessEnded { process } => {
                let owner = Owner::process(process.upid);
                self.fds.exit(owner, ts, &self.files, out);
                self.mappings.clear(owner, ts, out);
            }
            Change::Gone { thread } => {
                self.ended(&thread, None, out);
                *self.calls_of(&thread) = ThreadCalls::default();
                let owner = Owner::thread(thread.utid);
                self.fds.exit(owner, ts, &self.files, out);
                self.mappings.clear(owner, ts, out);
            }
        }
    }

    /// Processes an event. `other` is the thread in a state dump.
    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        other: Option<ThreadRef>,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        if let Some(thread) = &here.thread {
            self.calls_of(thread).ts_free.get_or_insert(here.ts);
        }
        match event.body {
            Body::SyscallEnter {
                name,
                nr,
                compat,
                args,
            } => {
                let called = self.called(name, nr, compat, out);
                self.enter(here, called, args, out);
            }
            Body::SyscallExit {
                name,
                nr,
                compat,
                ret,
                args,
                is_timed,
            } => match here.thread {
                Some(thread) => {
                    if let Some(pending) = &mut self.calls_of(&thread).pending {
                        pending.is_timed = is_timed;
                    }
                    let called = name.map(|name| self.called(name, nr, compat, out));
                    self.exit(here, &thread, (called, nr), (ret, args), out);
                }
                None => out.anomalies.count(&stat::SYSCALL_THREAD_UNKNOWN, here.ts),
            },
            Body::StateProcess(StateProcess { file_table, .. }) => {
                if let Some(thread) = other {
                    self.fds.dump_process(&thread, file_table);
                }
            }
            Body::StateFd {
                pid,
                file_table,
                fd,
                flags,
                path,
            } => {
                let process = pid.and_then(|pid| processes.by_pid(pid)).map(standing_for);
                let table = || self.fds.dumped_owner(file_table?);
                match process.or_else(table) {
                    Some(thread) => self.dump(&thread, (fd, flags), path, here.ts, out),
                    None => out.anomalies.count(&stat::STATE_FD_UNOWNED, here.ts),
                }
            }
            Body::StateDirectory { pid, path } => {
                if let Some(thread) = processes.by_pid(pid).map(standing_for) {
                    let path = out.intern(path);
                    self.fds.set_first_cwd(&thread, path);
                }
            }
            Body::StateEnd => {
                self.fds.dump_ended();
                self.dumped_sockets = FxHashMap::default();
                self.buffered.settle(&mut self.files, out);
            }
            _ => {}
        }
    }

    /// Program of the thread after the event just processed, if that was an exec without an event
    /// of the scheduler.
    pub(super) fn take_unseen_exec(&mut self) -> Option<Sym> {
        self.unseen_exec.take()
    }

    pub(super) fn lost(&mut self, loss: &Loss<'_>) {
        self.fds.lost(loss.ts_end.unwrap_or(loss.ts));
        self.pairings.lost(loss);
    }

    /// End of the recording.
    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        for calls in std::mem::take(&mut self.threads) {
            if let Some(pending) = calls.pending {
                out.anomalies
                    .count(&stat::SYSCALL_ENTRY_WITHOUT_EXIT, pending.ts);
                self.emit(&pending, None, End::Unknown, out);
            }
        }
        self.buffered.settle(&mut self.files, out);
        self.fds.finish(&self.files, out);
        self.mappings.finish(out);
        self.files.finish(out);
    }

    fn enter<S: EmitAll>(
        &mut self,
        here: &Here,
        called: Called,
        args: &SyscallArgs<'_>,
        out: &mut Output<'_, S>,
    ) {
        let Some(thread) = here.thread else {
            let pending = self.begun(here, &unknown_thread(), called, args, out);
            out.anomalies.count(&stat::SYSCALL_THREAD_UNKNOWN, here.ts);
            return self.emit(&pending, None, End::Unknown, out);
        };
        if let Some(inner) = self.calls_of(&thread).pending.take() {
            if self.calls.get(inner.called.meaning).effect == Effect::Sigreturn {
                // Some kernels report no event for its return: it has ended by now.
                let end = self.returned(&inner, (here.ts, None));
                self.emit(&inner, None, end, out);
            } else {
                out.anomalies.count(&stat::SYSCALL_NESTED, here.ts);
                self.emit(&inner, None, End::Unknown, out);
            }
        }
        let pending = self.begun(here, &thread, called, args, out);
        self.ops_begun(&pending);
        let calls = self.calls_of(&thread);
        calls.pending = Some(pending);
        calls.ts_free = Some(here.ts);
        calls.newborn = false;
        calls.execed = false;
    }

    fn exit<S: EmitAll>(
        &mut self,
        here: &Here,
        thread: &ThreadRef,
        (called, nr): (Option<Called>, Option<i32>),
        (ret, args): (Option<i64>, &SyscallArgs<'_>),
        out: &mut Output<'_, S>,
    ) {
        let calls = self.calls_of(thread);
        let (newborn, ts_free) = (calls.newborn, calls.ts_free);
        calls.ts_free = Some(here.ts);
        calls.newborn = false;
        if let Some(pending) = calls.pending.take() {
            if self.is_return_of(&pending, called, nr) {
                self.note_exec(&pending, thread, ret);
                // The apparent return value is a register of the interrupted program.
                let ret = ret.filter(|_| nr != FORGOTTEN);
                return self.perform(&pending, thread, here, (ret, args), out);
            }
            out.anomalies.count(&stat::SYSCALL_MISMATCH, here.ts);
            self.emit(&pending, None, End::Unknown, out);
        } else if self.is_return_in_child(newborn, called, ret) {
            return;
        }
        out.anomalies
            .count(&stat::SYSCALL_EXIT_WITHOUT_ENTRY, here.ts);
        let (called, ret) = match called {
            // The apparent return value is a register of the interrupted program.
            _ if nr == FORGOTTEN => (self.called("rt_sigreturn", None, false, out), None),
            Some(called) => (called, ret),
            None => (self.called("unknown", nr, false, out), ret),
        };
        let mut pending = self.begun(here, thread, called, &SyscallArgs::NONE, out);
        pending.cpu = None;
        pending.ts = ts_free.unwrap_or(here.ts);
        self.perform_late(pending, thread, here, (ret, args), out);
    }

    /// Without an event of its own, an exec is known only from its return.
    fn note_exec(&mut self, pending: &Pending, thread: &ThreadRef, ret: Option<i64>) {
        let execs = self.calls.get(pending.called.meaning).effect == Effect::Exec;
        if execs && ret == Some(0) && !self.calls_of(thread).execed {
            self.unseen_exec = pending.named.and_then(|named| named.path);
        }
    }

    fn is_return_of(&self, pending: &Pending, called: Option<Called>, nr: Option<i32>) -> bool {
        let entered = self.calls.get(pending.called.meaning);
        match called {
            None => true,
            // Exec may switch between the 64-bit and the 32-bit table; the names stay the same.
            Some(called) => {
                let returned = self.calls.get(called.meaning);
                // A call of an unknown architecture is identified by its number; only a call whose
                // return restores the registers loses it.
                let by_number = pending.called.nr.is_some() && entered.call.name.is_empty();
                let may_forget = || entered.effect == Effect::Sigreturn || by_number;
                returned.name == entered.name || (nr == FORGOTTEN && may_forget())
            }
        }
    }

    /// In a child, clone returns 0. If returns have no names, it is the first event of a new
    /// thread.
    fn is_return_in_child(&self, newborn: bool, called: Option<Called>, ret: Option<i64>) -> bool {
        match called {
            Some(called) => {
                let forks = self.calls.get(called.meaning).effect == Effect::Fork;
                forks && (newborn || ret == Some(0))
            }
            None => newborn && ret == Some(0),
        }
    }

    fn called<S: EmitAll>(
        &mut self,
        name: &str,
        nr: Option<i32>,
        compat: bool,
        out: &mut Output<'_, S>,
    ) -> Called {
        Called {
            meaning: self.calls.find(name, out.symbols),
            nr,
            compat,
        }
    }

    fn forked(&mut self, parent: Option<ThreadRef>, child: &ThreadRef, ts: Ns) {
        let pending = parent.and_then(|parent| self.calls_of(&parent).pending);
        let shares = pending.is_some_and(|pending| {
            let forks = self.calls.get(pending.called.meaning).effect == Effect::Fork;
            forks
                && pending
                    .numbers
                    .flags
                    .is_some_and(|flags| flags & CLONE_FILES != 0)
        });
        self.fds.fork(parent.as_ref(), child, ts, shares);
        *self.calls_of(child) = ThreadCalls {
            pending: None,
            ts_free: Some(ts),
            newborn: true,
            execed: false,
        };
    }

    /// The thread ended, and with it its call. A call during which a thread dies ends there.
    fn ended<S: EmitAll>(&mut self, thread: &ThreadRef, end: Option<Ns>, out: &mut Output<'_, S>) {
        if let Some(pending) = self.calls_of(thread).pending.take() {
            let end = if let Some(ts) = end {
                self.returned(&pending, (ts, None))
            } else {
                out.anomalies
                    .count(&stat::SYSCALL_ENTRY_WITHOUT_EXIT, pending.ts);
                End::Unknown
            };
            self.emit(&pending, Some(thread), end, out);
        }
    }

    fn begun<S: EmitAll>(
        &mut self,
        here: &Here,
        thread: &ThreadRef,
        called: Called,
        args: &SyscallArgs<'_>,
        out: &mut Output<'_, S>,
    ) -> Pending {
        let id = self.next_id;
        self.next_id += 1;
        let op = self.calls.get(called.meaning).call.op_of(args);
        let mut pending = Pending {
            id,
            ts: here.ts,
            thread: *thread,
            cpu: here.cpu,
            called,
            op,
            numbers: Numbers::of(args),
            target: None,
            target2: None,
            named: None,
            named2: None,
            peer: None,
            is_timed: true,
        };
        self.resolve(&mut pending, args, out);
        pending
    }

    fn target(&self, thread: &ThreadRef, fd: Option<i32>) -> Option<Target> {
        let fd = fd.filter(|&fd| fd >= 0)?;
        let owner = Owner::of(thread);
        Some(match self.fds.get(owner, fd) {
            Some(descriptor) => Target {
                object: descriptor.object,
                descriptor: Some(descriptor.id),
                file: descriptor.file,
                socket: descriptor.socket,
            },
            None if thread.utid < 0 => Target {
                object: Object::unknown(Reason::ThreadUnknown),
                descriptor: None,
                file: None,
                socket: None,
            },
            None => Target {
                object: Object::unknown(self.fds.reason(owner)),
                descriptor: None,
                file: None,
                socket: None,
            },
        })
    }

    /// Current object of a descriptor.
    pub(super) fn object(&self, owner: Owner, fd: i32) -> Option<Object> {
        Some(self.fds.get(owner, fd)?.object)
    }

    fn calls_of(&mut self, thread: &ThreadRef) -> &mut ThreadCalls {
        if thread.index() >= self.threads.len() {
            self.threads
                .resize(thread.index() + 1, ThreadCalls::default());
        }
        &mut self.threads[thread.index()]
    }
}

impl Numbers {
    fn of(args: &SyscallArgs<'_>) -> Self {
        let int = |number: Option<i64>| number.map(|number| number as i32);
        Self {
            fd: int(args.fd),
            fd2: int(args.fd2),
            count: args.count,
            offset: args.offset,
            flags: args.flags,
            command: args.command,
            value: args.value,
            address: args.address,
            address2: args.address2,
            timeout: args.timeout,
            family: args.family,
            socket_type: args.socket_type,
        }
    }
}

/// Placeholder for an unknown thread.
fn unknown_thread() -> ThreadRef {
    ThreadRef {
        slot: 0,
        utid: -1,
        upid: None,
        tid: -1,
        pid: None,
        comm: None,
        is_tracer: false,
    }
}

/// A process whose thread does not matter.
fn standing_for(process: ProcessRef) -> ThreadRef {
    ThreadRef {
        upid: Some(process.upid),
        pid: Some(process.pid),
        comm: process.comm,
        ..unknown_thread()
    }
}

fn failed_with(ret: Option<i64>, errno: i64) -> bool {
    ret == Some(-errno)
}

/// Invalid descriptor: the call had no object.
fn had_no_object(ret: Option<i64>) -> bool {
    failed_with(ret, EBADF)
}
