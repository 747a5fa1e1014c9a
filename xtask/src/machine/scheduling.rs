//! Scheduling of the synthetic machine: each CPU has its own threads, which sleep, are woken, wait
//! and run in turn.
//!
//! A thread has about three states per slice. If the numbers of states and slices should be equal,
//! only the states of every third thread are written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whyslow_model::row::Emit as _;
use whyslow_model::tables::{SchedSliceRow, ThreadStateRow};
use whyslow_model::{Sym, Symbols};
use whyslow_store::RecordingWriter;

use super::{BEGIN, CPUS, Machine, STEP_NS, THREADS, Thread};
use crate::synthetic::Random;

const RUN_NS_MEDIAN: f64 = 60_000.0;
const RUN_SIGMA: f64 = 1.5;
const RUN_NS_MAX: i64 = 12_000_000;
const OWN: u64 = THREADS / CPUS as u64;

pub(super) struct Scheduling {
    events: BinaryHeap<Reverse<(i64, usize, Step)>>,
    cpus: Vec<Cpu>,
    threads: Vec<State>,
    names: Names,
    pace: Pace,
    slices: i64,
    states: i64,
    wakeups: i64,
}

/// The rate of scheduler events.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Steps from the start of a slice to that of the next one, on any CPU.
    pub(super) slice_steps: f64,
    /// Idle time after a slice, in the 60 % of cases with idle time.
    pub(super) gap_ns: f64,
    /// States are written for every n-th thread.
    pub(super) states_of_every: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    End,
    Wake,
    Begin,
}

/// The running thread of a CPU, and the next one.
#[derive(Clone, Copy, Default)]
struct Cpu {
    running: u64,
    began: i64,
    slice: i64,
    next: u64,
    /// A preempted thread, which runs again after the next one.
    preempted: Option<u64>,
}

/// The current state of a thread.
#[derive(Clone, Copy)]
struct State {
    since: i64,
    id: i64,
    name: Sym,
    reason: Option<Sym>,
    waker: Option<u64>,
}

struct Names {
    running: Sym,
    runnable: Sym,
    sleeping: Sym,
    uninterruptible: Sym,
    woken: Sym,
    preempted: Sym,
    task: Sym,
    /// R, S, D: states at the end of a slice.
    ends: [Sym; 3],
}

impl Scheduling {
    pub(super) fn new(symbols: &mut Symbols, random: &mut Random, pace: Pace) -> Self {
        let names = Names {
            running: symbols.intern("running"),
            runnable: symbols.intern("runnable"),
            sleeping: symbols.intern("sleeping"),
            uninterruptible: symbols.intern("uninterruptible"),
            woken: symbols.intern("woken"),
            preempted: symbols.intern("preempted"),
            task: symbols.intern("task"),
            ends: ["R", "S", "D"].map(|end| symbols.intern(end)),
        };
        let first = |id: u64| State {
            since: BEGIN,
            id: id as i64,
            name: names.sleeping,
            reason: None,
            waker: None,
        };
        let period_ns = pace.slice_steps * (STEP_NS * CPUS as i64) as f64;
        let mut events = BinaryHeap::new();
        for cpu in 0..CPUS {
            let begin = BEGIN + (random.next() % period_ns as u64) as i64;
            events.push(Reverse((begin, cpu, Step::Begin)));
        }
        Self {
            events,
            cpus: vec![Cpu::default(); CPUS],
            threads: (0..THREADS).map(first).collect(),
            names,
            pace,
            slices: 0,
            states: THREADS as i64,
            wakeups: 0,
        }
    }

    /// Processes all events before `until`.
    pub(super) fn advance(
        &mut self,
        until: i64,
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        while let Some(Reverse((ts, cpu, step))) = self.events.peek().copied() {
            if ts >= until {
                return;
            }
            self.events.pop();
            match step {
                Step::Begin => self.begin((ts, cpu), machine, writer),
                Step::Wake => self.wake((ts, cpu), machine, writer),
                Step::End => self.end((ts, cpu), machine, writer),
            }
        }
    }

    fn thread_of(cpu: usize, nth: u64) -> u64 {
        nth * CPUS as u64 + cpu as u64
    }

    fn begin(
        &mut self,
        (ts, cpu): (i64, usize),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let thread = Self::thread_of(cpu, self.cpus[cpu].next);
        self.leave((ts, cpu, thread), self.names.running, machine, writer);
        let run_ns = machine
            .around(RUN_NS_MEDIAN, RUN_SIGMA)
            .clamp(500, RUN_NS_MAX);
        let idle = machine.below(10) < 6;
        let gap_ns = if idle {
            machine.around(self.pace.gap_ns, 1.0)
        } else {
            0
        };
        let end = ts + run_ns;
        let on = &mut self.cpus[cpu];
        on.running = on.next;
        on.began = ts;
        on.slice = self.slices;
        let preempted = on.preempted.take();
        let is_back = preempted.is_some();
        on.next = preempted.unwrap_or_else(|| {
            let next = machine.random.rank(OWN);
            if next == on.running {
                (next + 1) % OWN
            } else {
                next
            }
        });
        self.slices += 1;
        self.events.push(Reverse((end, cpu, Step::End)));
        self.events.push(Reverse((end + gap_ns, cpu, Step::Begin)));
        if !is_back {
            let until = (run_ns + gap_ns) as u64;
            let wake = ts + 1 + machine.below(until.max(2) - 1) as i64;
            self.events.push(Reverse((wake, cpu, Step::Wake)));
        }
    }

    fn wake(
        &mut self,
        (ts, cpu): (i64, usize),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let thread = Self::thread_of(cpu, self.cpus[cpu].next);
        self.wakeups += 1;
        self.threads[thread as usize].waker = Some(machine.below(THREADS));
        self.leave((ts, cpu, thread), self.names.runnable, machine, writer);
        let state = &mut self.threads[thread as usize];
        state.reason = Some(self.names.woken);
        state.waker = Some(machine.below(THREADS));
    }

    fn end(
        &mut self,
        (ts, cpu): (i64, usize),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let on = self.cpus[cpu];
        let thread = Self::thread_of(cpu, on.running);
        // A preempted thread lets the next one run first.
        let how = machine.below(20);
        let (end, state) = match how {
            0..2 if on.next != on.running && on.preempted.is_none() => (0, self.names.runnable),
            2..4 => (2, self.names.uninterruptible),
            _ => (1, self.names.sleeping),
        };
        self.leave((ts, cpu, thread), state, machine, writer);
        if end == 0 {
            self.threads[thread as usize].reason = Some(self.names.preempted);
            self.cpus[cpu].preempted = Some(on.running);
        }
        let Thread {
            utid,
            upid,
            tid,
            pid,
            comm,
        } = machine.nth(thread);
        let dur = ts - on.began;
        let system_ns = dur * machine.below(70) as i64 / 100;
        writer.emit(SchedSliceRow {
            id: on.slice,
            ts: on.began,
            dur: Some(dur),
            ts_end: Some(ts),
            cpu: cpu as i32,
            utid: Some(utid),
            upid: Some(upid),
            tid: Some(tid),
            pid: Some(pid),
            comm: Some(comm),
            prio: Some(if thread % 16 == 3 { 130 } else { 120 }),
            system_ns,
            hardirq_ns: dur / 100,
            softirq_ns: dur / 50,
            migrations: i32::from(machine.below(50) == 0),
            end_state: Some(self.names.ends[end]),
        });
    }

    /// Writes the state that a thread leaves.
    fn leave(
        &mut self,
        (ts, cpu, number): (i64, usize, u64),
        to: Sym,
        machine: &Machine,
        writer: &mut RecordingWriter,
    ) {
        let state = self.threads[number as usize];
        let thread = machine.nth(number);
        if number.is_multiple_of(self.pace.states_of_every) {
            let dur = ts - state.since;
            writer.emit(ThreadStateRow {
                id: state.id,
                ts: state.since,
                dur: Some(dur),
                ts_end: Some(ts),
                utid: Some(thread.utid),
                upid: Some(thread.upid),
                tid: Some(thread.tid),
                pid: Some(thread.pid),
                comm: Some(thread.comm),
                state: state.name,
                reason: state.reason,
                prio: Some(120),
                cpu: Some(cpu as i32),
                wakeup_id: state.waker.map(|_| self.wakeups),
                waker_utid: state.waker.map(|waker| waker as i32),
                wake_context: state.waker.map(|_| self.names.task),
                wake_cause: None,
                wake_cause_id: None,
            });
            self.states += 1;
        }
        self.threads[number as usize] = State {
            since: ts,
            id: self.states,
            name: to,
            reason: None,
            waker: None,
        };
    }
}
