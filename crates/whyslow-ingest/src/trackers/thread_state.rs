//! Thread states, from the first event that shows the state to the last switch.
//!
//! Goal: states of a thread are consecutive without gap or overlap, and none is invented. The
//! kernel reports states at switches (of the previous and the next thread) and at wakeups. The
//! states of a child start with its first wakeup (or, if wakeups of new threads are not recorded,
//! with its fork: in between it exists but cannot do anything). A state dump reports the state of a
//! thread at the start of the recording.
//!
//! Two things invalidate a state afterwards. Events lost on the CPU of the thread may have changed
//! it; and a thread found to be running on a CPU where another one was assumed to run was missed at
//! least once. This is resolved when the state ends: it is cut at the first loss, and the rest is
//! `unknown`. Resolving it for all threads at the time of the loss was rejected, because it would
//! cost every thread for every lost packet. What another CPU reports about the thread (its wakeup, its
//! switch to that CPU) is also cut if a loss of the CPU of the thread merely overlaps the state.
//!
//! A thread that was never switched in although it ran again was recorded by a tracer of one process:
//! its sleeps begin with a switch and end, at the latest, with its next event.
//!
//! A thread asleep elsewhere could in theory have been woken, run and slept again, all within one
//! loss of another CPU. That is not assumed: it would make every state unknown in a recording with
//! one lost packet.
//!
//! Without any switch nothing ends a state, so no states are reported.

use whyslow_model::event::{PrevState, WakeupKind};
use whyslow_model::tables::{EmitAll, RUNNABLE_REASONS, THREAD_STATES, ThreadStateRow};
use whyslow_model::{Ns, Sym, Symbols};

use super::cause::Cause;
use super::identity::{Output, ThreadRef};
use super::losses::Losses;
use super::process::Processes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Runnable,
    Sleeping,
    Uninterruptible,
    Stopped,
    Traced,
    Parked,
    Idle,
    Dead,
    Unknown,
}

/// Why a thread is runnable, in the order of [`RUNNABLE_REASONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Woken,
    Created,
    Preempted,
}

/// The wakeup of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    pub(super) id: i64,
    pub(super) kind: WakeupKind,
    pub(super) waker_utid: Option<i32>,
    pub(super) context: Sym,
    pub(super) cause: Option<Cause>,
    pub(super) target_cpu: Option<i32>,
    /// CPU that reported it.
    pub(super) cpu: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    since: Ns,
    begin_known: bool,
    /// Known only from a state dump so far.
    dumped: bool,
    state: State,
    reason: Option<Reason>,
    prio: Option<i32>,
    /// Last CPU.
    cpu: Option<i32>,
    /// CPU on which a loss would hide a change.
    watch: Option<i32>,
    /// CPU that reported the start of the state.
    reporter: Option<i32>,
    /// A child whose first wakeup was not seen yet.
    forked: bool,
    /// The wakeup that made the thread runnable.
    woken: Option<Wake>,
    /// A waking event was seen, and its wakeup event is due; the value is whether it was
    /// spurious.
    wakeup_due: Option<bool>,
}

#[derive(Debug)]
pub(super) struct ThreadStates {
    /// By slot.
    open: Vec<Option<Open>>,
    /// By slot: off-CPU for the last time. Contradicting events do not start a new life.
    over: Vec<bool>,
    /// By slot: a switch to the thread was seen.
    entered: Vec<bool>,
    /// By slot: last known priority.
    prios: Vec<Option<i32>>,
    reasons: [Sym; RUNNABLE_REASONS.len()],
    names: [Sym; THREAD_STATES.len()],
    next_id: i64,
    switches_seen: bool,
    pub(super) losses: Losses,
}

impl ThreadStates {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            open: Vec::new(),
            over: Vec::new(),
            entered: Vec::new(),
            prios: Vec::new(),
            reasons: RUNNABLE_REASONS.map(|name| symbols.intern(name)),
            names: THREAD_STATES.map(|name| symbols.intern(name)),
            next_id: 0,
            switches_seen: false,
            losses: Losses::default(),
        }
    }

    pub(super) fn switches_seen(&self) -> bool {
        self.switches_seen
    }

    /// An event reported the current priority of the thread.
    pub(super) fn prio(&mut self, thread: &ThreadRef, prio: Option<i32>) {
        if prio.is_some() {
            self.reserve(thread);
            self.prios[thread.index()] = prio;
        }
    }

    /// The thread was switched in.
    pub(super) fn run<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        cpu: i32,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        self.switches_seen = true;
        // It cannot be switched in while it is running: its switch out was lost.
        if let Some(open) = self.get(thread)
            && open.state == State::Running
        {
            self.doubt(thread, open.since, out);
        }
        if let Some(open) = self.slot(thread)
            && open.state == State::Runnable
        {
            open.cpu = Some(cpu);
        }
        self.close(thread, (ts, Some(cpu)), None, out);
        self.start(thread, State::Running, Some(cpu), ts);
        self.entered[thread.index()] = true;
    }

    /// The thread turned out to be running since a time at which no switch reported it.
    pub(super) fn found_running<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        cpu: i32,
        (since, now): (Ns, Ns),
        out: &mut Output<'_, S>,
    ) {
        match self.get(thread) {
            Some(open) if open.state == State::Running && open.cpu == Some(cpu) => return,
            // A state dump in between was a snapshot of the same run.
            Some(open) if open.dumped && open.since >= since => {
                self.start(thread, State::Running, Some(cpu), since);
            }
            Some(open) => {
                let mut begin = now;
                if self.is_seen_leaving_only(thread, &open) {
                    // It slept until some time before its first event.
                    begin = if since > open.since { since } else { now };
                    self.open[thread.index()] = Some(Open {
                        begin_known: false,
                        ..open
                    });
                } else {
                    self.doubt(thread, open.since, out);
                }
                self.close(thread, (begin, Some(cpu)), None, out);
                self.start(thread, State::Running, Some(cpu), begin);
            }
            None if self.over.get(thread.index()) == Some(&true) => return,
            None => {
                self.start(thread, State::Running, Some(cpu), since);
            }
        }
        if let Some(open) = self.slot(thread) {
            open.begin_known = false;
        }
    }

    /// Whether a thread went to sleep, and switches to it are not recorded at all: a tracer of one
    /// process (`perf record -p`) records a switch in the context of the thread that leaves.
    fn is_seen_leaving_only(&self, thread: &ThreadRef, open: &Open) -> bool {
        let is_asleep = matches!(open.state, State::Sleeping | State::Uninterruptible);
        is_asleep && open.begin_known && !self.entered[thread.index()]
    }

    /// The thread was switched out.
    pub(super) fn stop<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        prev_state: PrevState,
        (cpu, ts): (i32, Ns),
        out: &mut Output<'_, S>,
    ) {
        self.switches_seen = true;
        // Whatever its state was assumed to be, it was running when it was switched out.
        if let Some(open) = self.get(thread)
            && open.state != State::Running
        {
            self.doubt(thread, open.since, out);
        }
        self.close(thread, (ts, Some(cpu)), None, out);
        let state = match prev_state {
            PrevState::Dead | PrevState::Zombie => {
                self.reserve(thread);
                self.over[thread.index()] = true;
                return;
            }
            PrevState::Runnable { .. } => State::Runnable,
            PrevState::Sleeping => State::Sleeping,
            PrevState::Uninterruptible => State::Uninterruptible,
            PrevState::Stopped => State::Stopped,
            PrevState::Traced => State::Traced,
            PrevState::Parked => State::Parked,
            PrevState::Idle => State::Idle,
            PrevState::Unknown(_) => State::Unknown,
        };
        let open = self.start(thread, state, Some(cpu), ts);
        open.reason = (state == State::Runnable).then_some(Reason::Preempted);
    }

    /// The state of the thread has been wrong since `since`.
    pub(super) fn doubt<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        since: Ns,
        out: &mut Output<'_, S>,
    ) {
        let Some(open) = self.get(thread) else { return };
        if open.state == State::Unknown {
            return;
        }
        let since = since.max(open.since);
        let (cpu, watch) = (open.cpu, open.watch);
        if since > open.since {
            if let Some(open) = self.slot(thread) {
                // Its end was not recorded.
                open.begin_known = false;
            }
            self.close(thread, (since, None), None, out);
            self.start(thread, State::Unknown, cpu, since).watch = watch;
        } else if let Some(open) = self.slot(thread) {
            open.state = State::Unknown;
            open.reason = None;
        }
    }

    /// From `since` on, the running thread is unknown on the CPU where the thread was.
    pub(super) fn lost_sight<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        cpu: i32,
        since: Ns,
        out: &mut Output<'_, S>,
    ) {
        if let Some(open) = self.get(thread)
            && open.state == State::Running
            && open.cpu == Some(cpu)
        {
            self.doubt(thread, since, out);
        }
    }

    /// A wakeup. Returns whether it was spurious: the thread was not asleep.
    pub(super) fn wake<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        wake: &Wake,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> bool {
        if let Some(open) = self.slot(thread)
            && wake.kind != WakeupKind::Waking
            && let Some(spurious) = open.wakeup_due.take()
        {
            open.watch = wake.target_cpu.or(open.watch);
            return spurious;
        }
        let open = self.get(thread);
        let spurious = open.is_some_and(|open| {
            !open.forked && matches!(open.state, State::Running | State::Runnable)
        });
        if !spurious {
            if open.is_some_and(|open| open.forked) {
                self.open[thread.index()] = None;
            }
            self.close(thread, (ts, wake.cpu), Some(wake), out);
            let cpu = open.and_then(|open| open.cpu);
            let is_new = wake.kind == WakeupKind::WakeupNew;
            let open = self.start(thread, State::Runnable, cpu, ts);
            open.woken = Some(*wake);
            open.reporter = wake.cpu;
            open.reason = Some(if is_new {
                Reason::Created
            } else {
                Reason::Woken
            });
        }
        if let Some(open) = self.slot(thread) {
            if open.state != State::Running {
                open.watch = wake.target_cpu.or(open.watch);
            }
            open.wakeup_due = (wake.kind == WakeupKind::Waking).then_some(spurious);
        }
        spurious
    }

    /// A thread was created.
    pub(super) fn fork(&mut self, child: &ThreadRef, cpu: Option<i32>, ts: Ns) {
        let open = self.start(child, State::Runnable, None, ts);
        open.watch = cpu;
        open.forked = true;
        open.reason = Some(Reason::Created);
    }

    /// A runnable thread was migrated to another CPU.
    pub(super) fn migrate(&mut self, thread: &ThreadRef, to_cpu: i32) {
        if let Some(open) = self.slot(thread)
            && open.state == State::Runnable
        {
            open.watch = Some(to_cpu);
        }
    }

    /// A state dump reported the state of the thread, with the numbers of LTTng's state dump. It
    /// does not distinguish running threads from runnable ones (the switches will), nor
    /// interruptible from uninterruptible sleeps.
    pub(super) fn dumped(&mut self, thread: &ThreadRef, status: i64, cpu: Option<i32>, ts: Ns) {
        const WAIT_FORK: i64 = 1;
        const WAIT_CPU: i64 = 2;
        const EXIT: i64 = 3;
        const ZOMBIE: i64 = 4;
        const WAIT: i64 = 5;
        const RUN: i64 = 6;
        const DEAD: i64 = 7;
        if self.get(thread).is_some() {
            return;
        }
        let state = match status {
            WAIT_FORK | WAIT_CPU | RUN => State::Runnable,
            WAIT => State::Sleeping,
            EXIT | ZOMBIE | DEAD => State::Dead,
            _ => State::Unknown,
        };
        let open = self.start(thread, state, cpu, ts);
        open.begin_known = false;
        open.dumped = true;
    }

    /// The record of the thread is removed: its state ends with the last event of the thread.
    pub(super) fn gone<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        if let Some(open) = self.get(thread) {
            let ts_end = processes.ts_exit(thread.slot);
            let ts_end = ts_end.unwrap_or(processes.ts_last(thread.slot));
            self.close(thread, (ts_end.max(open.since), None), None, out);
        }
        if let Some(over) = self.over.get_mut(thread.index()) {
            *over = false;
            self.entered[thread.index()] = false;
            self.prios[thread.index()] = None;
        }
    }

    pub(super) fn finish<S: EmitAll>(
        &mut self,
        ts_end: Ns,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        if !self.switches_seen {
            return;
        }
        for slot in 0..self.open.len() {
            let Some(open) = self.open[slot] else {
                continue;
            };
            let thread = processes.by_slot(slot as u32);
            let runs_on = open.state == State::Running;
            if let Some(ts_exit) = processes.ts_exit(slot as u32).filter(|_| !runs_on) {
                self.close(&thread, (ts_exit.max(open.since), None), None, out);
                continue;
            }
            self.open[slot] = None;
            let last = self.settle(open, &thread, (ts_end, None), out);
            out.sink.emit(self.row(&last, &thread, None, None));
        }
    }

    fn get(&self, thread: &ThreadRef) -> Option<Open> {
        self.open.get(thread.index()).copied().flatten()
    }

    fn slot(&mut self, thread: &ThreadRef) -> Option<&mut Open> {
        self.open.get_mut(thread.index())?.as_mut()
    }

    fn reserve(&mut self, thread: &ThreadRef) {
        if self.open.len() <= thread.index() {
            self.open.resize(thread.index() + 1, None);
            self.over.resize(thread.index() + 1, false);
            self.entered.resize(thread.index() + 1, false);
            self.prios.resize(thread.index() + 1, None);
        }
    }

    fn start(
        &mut self,
        thread: &ThreadRef,
        state: State,
        cpu: Option<i32>,
        since: Ns,
    ) -> &mut Open {
        self.reserve(thread);
        let id = self.take_id();
        self.open[thread.index()].insert(Open {
            id,
            since,
            begin_known: true,
            dumped: false,
            state,
            reason: None,
            prio: self.prios[thread.index()],
            cpu,
            watch: cpu,
            reporter: cpu,
            forked: false,
            woken: None,
            wakeup_due: None,
        })
    }

    /// Ends the state of a thread, if it has one, and writes it. `by` is the CPU that reported the
    /// end.
    fn close<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        (ts, by): (Ns, Option<i32>),
        wake: Option<&Wake>,
        out: &mut Output<'_, S>,
    ) {
        let Some(open) = self.get(thread) else { return };
        self.open[thread.index()] = None;
        if !self.switches_seen {
            return;
        }
        let ts = ts.max(open.since);
        let last = self.settle(open, thread, (ts, by), out);
        out.sink.emit(self.row(&last, thread, Some(ts), wake));
    }

    /// Cuts a state at the first loss within it; returns the part still to be written.
    fn settle<S: EmitAll>(
        &mut self,
        open: Open,
        thread: &ThreadRef,
        (until, by): (Ns, Option<i32>),
        out: &mut Output<'_, S>,
    ) -> Open {
        if open.state == State::Unknown {
            return open;
        }
        let is_elsewhere = |cpu: Option<i32>| cpu.is_some() && cpu != open.watch;
        let doubt = if is_elsewhere(open.reporter) || is_elsewhere(by) {
            self.losses.first_overlap(open.watch, open.since, until)
        } else {
            self.losses.first_between(open.watch, open.since, until)
        };
        let Some(doubt) = doubt else { return open };
        let mut id = open.id;
        if doubt > open.since {
            let mut row = self.row(&open, thread, Some(doubt), None);
            row.dur = None;
            out.sink.emit(row);
            id = self.take_id();
        }
        Open {
            id,
            since: doubt,
            state: State::Unknown,
            reason: None,
            ..open
        }
    }

    fn take_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn row(
        &self,
        open: &Open,
        thread: &ThreadRef,
        ts_end: Option<Ns>,
        wake: Option<&Wake>,
    ) -> ThreadStateRow {
        let wake = wake.or(open
            .woken
            .as_ref()
            .filter(|_| open.state == State::Runnable));
        let cause = wake.and_then(|wake| wake.cause);
        ThreadStateRow {
            id: open.id,
            ts: open.since,
            dur: ts_end
                .filter(|_| open.begin_known)
                .map(|ts_end| ts_end - open.since),
            ts_end,
            utid: Some(thread.utid),
            upid: thread.upid,
            tid: Some(thread.tid),
            pid: thread.pid,
            comm: thread.comm,
            state: self.names[open.state as usize],
            reason: open.reason.map(|reason| self.reasons[reason as usize]),
            prio: open.prio,
            cpu: open.cpu,
            wakeup_id: wake.map(|wake| wake.id),
            waker_utid: wake.and_then(|wake| wake.waker_utid),
            wake_context: wake.map(|wake| wake.context),
            wake_cause: cause.map(|cause| cause.kind),
            wake_cause_id: cause.map(|cause| cause.id),
        }
    }
}
