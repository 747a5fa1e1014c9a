//! Stacks of off-CPU intervals, samples, and kernel lock waits.
//!
//! The kernel stack of a thread is reported when it runs again, its user stack when its system call
//! returns. Both are one row, so the first waits for the second. If the return of the call comes
//! without a user stack (or the next call, or the end), there is none.

use std::collections::BTreeMap;

use whyslow_model::event::{Body, Frame, LockWait, PrevState, Stack, StackKind, WallSample};
use whyslow_model::spool::WallEnd;
use whyslow_model::tables::{EmitAll, LockWaitRow, StackSampleRow};
use whyslow_model::{Ns, stat};

use super::callsites::{
    Callsites, KnownFrame, of_program, outside_of_locks, outside_of_scheduler, without_recorder,
};
use super::identity::{Here, Output, ThreadRef};

/// Maximum number of kernel stacks of a call that wait for the user stack; the oldest are written
/// without.
const WAITING_MAX: usize = 256;

/// A kernel stack.
#[derive(Debug)]
struct Waiting {
    id: i64,
    ts: Ns,
    ts_end: Ns,
    state: PrevState,
    thread: ThreadRef,
    cpu: Option<i32>,
    frames: Box<[KnownFrame]>,
}

#[derive(Debug, Default)]
pub(super) struct StackTracker {
    pub(super) sites: Callsites,
    /// By utid.
    waiting: BTreeMap<i32, Vec<Waiting>>,
    next_id: i64,
    next_lock_id: i64,
}

impl StackTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        match body {
            Body::Stack(stack) => self.stack(stack, here, out),
            Body::Wall(look) => self.wall(look, here, out),
            Body::LockWait(wait) => self.lock(wait, here, out),
            // A user stack that has not arrived by now does not exist.
            Body::SyscallEnter { .. } | Body::SyscallExit { .. } => {
                if let Some(thread) = here.thread {
                    self.gone(&thread, out);
                }
            }
            _ => {}
        }
    }

    /// No more events of the thread follow.
    pub(super) fn gone<S: EmitAll>(&mut self, thread: &ThreadRef, out: &mut Output<'_, S>) {
        if !self.waiting.is_empty() {
            for waiting in self.waiting.remove(&thread.utid).unwrap_or_default() {
                self.emit(&waiting, &[], out);
            }
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.emit(&waiting, &[], out);
        }
    }

    fn stack<S: EmitAll>(&mut self, stack: &Stack<'_>, here: &Here, out: &mut Output<'_, S>) {
        let Some(thread) = here.thread else {
            out.anomalies.count(&stat::THREAD_UNKNOWN, here.ts);
            return;
        };
        let frames = self.frames(stack.frames, here.ts, out);
        match stack.kind {
            StackKind::Back {
                state,
                user_follows,
            } => {
                let waiting = Waiting {
                    id: self.take_id(),
                    ts: stack.since,
                    ts_end: here.ts,
                    state,
                    thread,
                    cpu: stack.cpu,
                    frames: frames.into(),
                };
                if user_follows {
                    let of_thread = self.waiting.entry(thread.utid).or_default();
                    let oldest = (of_thread.len() >= WAITING_MAX).then(|| of_thread.remove(0));
                    of_thread.push(waiting);
                    if let Some(oldest) = oldest {
                        self.emit(&oldest, &[], out);
                    }
                } else {
                    self.emit(&waiting, &[], out);
                }
            }
            StackKind::User => match self.waiting.remove(&thread.utid) {
                Some(of_thread) => {
                    for waiting in &of_thread {
                        self.emit(waiting, &frames, out);
                    }
                }
                None => out.anomalies.count(&stat::USER_STACK_UNEXPECTED, here.ts),
            },
            StackKind::Sample => self.sample(stack, (thread, here), &frames, out),
        }
    }

    fn frames<S: EmitAll>(
        &mut self,
        frames: &[Frame<'_>],
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> Vec<KnownFrame> {
        let frames = frames.iter();
        frames
            .map(|frame| self.sites.frame(frame, ts, out))
            .collect()
    }

    pub(super) fn take_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub(super) fn take_lock_id(&mut self) -> i64 {
        self.next_lock_id += 1;
        self.next_lock_id - 1
    }

    fn sample<S: EmitAll>(
        &mut self,
        stack: &Stack<'_>,
        (thread, here): (ThreadRef, &Here),
        frames: &[KnownFrame],
        out: &mut Output<'_, S>,
    ) {
        let row = StackSampleRow {
            id: self.take_id(),
            ts: stack.since,
            dur: Some(here.ts.saturating_sub(stack.since)),
            ts_end: Some(here.ts),
            kind: out.symbols.intern_static("sample"),
            state: None,
            utid: Some(thread.utid),
            upid: thread.upid,
            tid: Some(thread.tid),
            pid: thread.pid,
            comm: thread.comm,
            cpu: stack.cpu,
            function: outside_of_scheduler(frames, out),
            user_function: of_program(frames),
            callsite_id: self.sites.stack(frames.iter(), here.ts, out),
            credits: Some(1),
            is_assumed: None,
            syscall: None,
            sampler: None,
            is_cut: None,
        };
        out.sink.emit(row);
    }

    fn wall<S: EmitAll>(&mut self, look: &WallSample<'_>, here: &Here, out: &mut Output<'_, S>) {
        let Some(thread) = here.thread else {
            out.anomalies.count(&stat::THREAD_UNKNOWN, here.ts);
            return;
        };
        let frames = self.frames(look.frames, here.ts, out);
        let lack = match (look.state, look.end) {
            (None, WallEnd::Unread) if frames.is_empty() => Some(&stat::WALL_RUN_UNSEEN),
            (_, WallEnd::Cut) => Some(&stat::WALL_STACK_CUT),
            (_, WallEnd::Torn) => Some(&stat::WALL_STACK_TORN),
            (_, WallEnd::Unread) => Some(&stat::WALL_STACK_UNREAD),
            (_, WallEnd::Whole | WallEnd::None) => None,
        };
        if let Some(stat) = lack {
            out.anomalies.count(stat, here.ts);
        }
        let managed = frames_of(look.frames, &frames).find(|(frame, _)| frame.is_managed);
        let user =
            managed.or_else(|| frames_of(look.frames, &frames).find(|(frame, _)| !frame.is_kernel));
        let user_function = user.and_then(|(_, known)| known.function);
        let state = look.state.map_or("running", state_name);
        let row = StackSampleRow {
            id: self.take_id(),
            ts: look.since,
            dur: Some(here.ts.saturating_sub(look.since)),
            ts_end: Some(here.ts),
            kind: out.symbols.intern_static("wall"),
            state: Some(out.symbols.intern_static(state)),
            utid: Some(thread.utid),
            upid: thread.upid,
            tid: Some(thread.tid),
            pid: thread.pid,
            comm: thread.comm,
            cpu: look.cpu,
            function: outside_of_scheduler(&frames, out).or(user_function),
            user_function,
            callsite_id: self.sites.stack(frames.iter(), here.ts, out),
            credits: i32::try_from(look.credits).ok(),
            is_assumed: None,
            syscall: look.syscall.map(|name| out.symbols.intern(name)),
            sampler: Some(out.symbols.intern_static("recorder")),
            is_cut: match look.end {
                WallEnd::Whole => Some(false),
                WallEnd::Cut => Some(true),
                _ => None,
            },
        };
        out.sink.emit(row);
    }

    fn emit<S: EmitAll>(
        &mut self,
        waiting: &Waiting,
        user: &[KnownFrame],
        out: &mut Output<'_, S>,
    ) {
        let thread = waiting.thread;
        let both = waiting.frames.iter().chain(user);
        let of_program = of_program(user);
        let row = StackSampleRow {
            id: waiting.id,
            ts: waiting.ts,
            dur: Some(waiting.ts_end.saturating_sub(waiting.ts)),
            ts_end: Some(waiting.ts_end),
            kind: out.symbols.intern_static("offcpu"),
            state: Some(out.symbols.intern_static(state_name(waiting.state))),
            utid: Some(thread.utid),
            upid: thread.upid,
            tid: Some(thread.tid),
            pid: thread.pid,
            comm: thread.comm,
            cpu: waiting.cpu,
            function: outside_of_scheduler(&waiting.frames, out).or(of_program),
            user_function: of_program,
            callsite_id: self.sites.stack(both, waiting.ts_end, out),
            credits: None,
            is_assumed: None,
            syscall: None,
            sampler: None,
            is_cut: None,
        };
        out.sink.emit(row);
    }

    fn lock<S: EmitAll>(&mut self, wait: &LockWait<'_>, here: &Here, out: &mut Output<'_, S>) {
        let frames = self.frames(without_recorder(wait.frames), here.ts, out);
        let thread = here.thread;
        let mode = wait
            .is_write
            .map(|write| if write { "write" } else { "read" });
        let row = LockWaitRow {
            id: self.next_lock_id,
            ts: wait.since,
            dur: Some(here.ts.saturating_sub(wait.since)),
            ts_end: Some(here.ts),
            kind: out.symbols.intern_static(wait.kind.name()),
            mode: mode.map(|mode| out.symbols.intern_static(mode)),
            slept: wait.slept,
            lock: out.symbols.intern(&format!("{:x}", wait.lock)),
            ret: wait.ret.saturating_neg(),
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: thread.and_then(|thread| thread.comm),
            cpu: here.cpu,
            function: outside_of_locks(&frames, out),
            callsite_id: self.sites.stack(frames.iter(), here.ts, out),
            reported_by: None,
            object: None,
            holder_utid: None,
            holder_tid: None,
            holder_comm: None,
            held: None,
            confidence: None,
            holder_function: None,
            holder_callsite_id: None,
            holder_gap_id: None,
        };
        self.next_lock_id += 1;
        out.sink.emit(row);
    }
}

/// Frames as reported, with their rows.
fn frames_of<'f>(
    reported: &'f [Frame<'f>],
    known: &'f [KnownFrame],
) -> impl Iterator<Item = (&'f Frame<'f>, &'f KnownFrame)> {
    reported.iter().zip(known)
}

fn state_name(state: PrevState) -> &'static str {
    match state {
        PrevState::Runnable { .. } => "runnable",
        PrevState::Sleeping => "sleeping",
        PrevState::Uninterruptible => "uninterruptible",
        PrevState::Stopped => "stopped",
        PrevState::Traced => "traced",
        PrevState::Dead | PrevState::Zombie => "dead",
        PrevState::Parked => "parked",
        PrevState::Idle => "idle",
        PrevState::Unknown(_) => "unknown",
    }
}
