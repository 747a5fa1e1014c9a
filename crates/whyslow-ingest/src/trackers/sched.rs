//! The thread running on each CPU: time slices, and the identity of every event.
//!
//! A switch names both threads, so between two switches of a CPU the running thread is certain. At
//! the edges:
//!
//! * Before the first switch of a CPU, the context of an event identifies the running thread at
//!   that event only. The first switch then shows that the previous thread was running since the
//!   first event of the CPU, or since contexts last named another thread: its slice is written with
//!   an unrecorded start. Events without context have no thread; to identify it, all of them would
//!   have to be buffered until the switch.
//! * After a loss, the running thread is unknown until the next switch or context.
//! * If a switch or context names a thread other than the one known to be running, switches were
//!   lost unnoticed. The known slice ends at the last event that confirmed it, the time in between
//!   is a hole, and the anomaly is counted. Attributing the hole to either thread was rejected: both
//!   choices would invent CPU time.

use whyslow_model::event::{Body, Event, Loss, PrevState};
use whyslow_model::tables::{CpuRow, EmitAll, SchedSliceRow};
use whyslow_model::{Ns, Sym, Symbols, stat};

use super::identity::{Change, Here, Output, Running, ThreadRef};
use super::last_cpu::LastCpus;
use super::meter::Meter;
use super::process::Processes;
use super::thread_state::ThreadStates;
use crate::limits::CPUS_MAX;

const END_STATES: [&str; 10] = ["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I"];

#[derive(Debug, Clone, Copy)]
struct Cpu {
    ts_first: Ns,
    ts_last: Ns,
    events: i64,
    lost: i64,
    busy_ns: Ns,
    /// A switch was seen on the CPU, so the running thread is known between switches.
    switched: bool,
    running: Running,
    since: Ns,
    begin_known: bool,
    /// Last event consistent with `running`.
    confirmed: Ns,
    prio: Option<i32>,
    /// Time since the start of the slice.
    meter: Meter,
    /// Id of the slice, if it will be written.
    slice: Option<i64>,
    /// Losses before this time were applied.
    losses_until: Ns,
}

#[derive(Debug)]
pub(super) struct SchedTracker {
    cpus: Vec<Option<Cpu>>,
    end_states: [Sym; END_STATES.len()],
    next_slice: i64,
    pub(super) last_cpus: LastCpus,
    pub(super) states: ThreadStates,
}

impl SchedTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            cpus: Vec::new(),
            end_states: END_STATES.map(|name| symbols.intern(name)),
            next_slice: 0,
            last_cpus: LastCpus::default(),
            states: ThreadStates::new(symbols),
        }
    }

    /// Counts the event on its CPU. Returns the CPU if its number is valid, and whether events of
    /// it were lost since the last one.
    pub(super) fn enter<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) -> (Option<i32>, bool) {
        let Some(number) = event.cpu else {
            return (None, false);
        };
        let index = usize::try_from(number).ok().filter(|&n| n < CPUS_MAX);
        let Some(index) = index else {
            out.anomalies.count(&stat::CPU_IMPOSSIBLE, event.ts);
            return (None, false);
        };
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, None);
        }
        let cpu = self.cpus[index].get_or_insert_with(|| Cpu::new(event.ts));
        cpu.ts_last = event.ts;
        cpu.events += 1;
        let lost = self.apply_losses(number, event.ts, processes, out);
        (Some(number), lost)
    }

    /// Identifies the running thread at an event, given what the event itself reports.
    pub(super) fn locate<S: EmitAll>(
        &mut self,
        cpu: Option<i32>,
        reported: Running,
        event: &Event<'_>,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) -> Running {
        let ts = event.ts;
        let Some(number) = cpu else {
            if reported == Running::Unknown {
                out.anomalies.count(&stat::THREAD_UNKNOWN, ts);
            }
            return reported;
        };
        let cpu = self.cpu(number);
        if reported == Running::Unknown {
            let known = if cpu.switched {
                cpu.running
            } else {
                Running::Unknown
            };
            if known == Running::Unknown {
                out.anomalies.count(&stat::THREAD_UNKNOWN, ts);
            }
            return known;
        }
        if cpu.running == reported {
            cpu.confirmed = ts;
            return reported;
        }
        let is_switch = matches!(event.body, Body::SchedSwitch { .. });
        let fresh = cpu.running == Running::Unknown && cpu.since == cpu.ts_first;
        let since = if fresh { cpu.ts_first } else { ts };
        if cpu.switched && cpu.running != Running::Unknown {
            out.anomalies.count(&stat::SCHED_PREV_MISMATCH, ts);
            let confirmed = cpu.confirmed;
            self.lose(number, confirmed, processes, out);
        }
        let next_slice = self.next_slice;
        let cpu = self.cpu(number);
        cpu.running = reported;
        cpu.since = since;
        cpu.begin_known = false;
        cpu.confirmed = ts;
        cpu.prio = event.context.prio;
        cpu.slice = None;
        if !fresh {
            cpu.meter.take();
        }
        if let Running::Thread(slot) = reported
            && cpu.switched
            && !is_switch
        {
            cpu.slice = Some(next_slice);
            self.next_slice += 1;
            let thread = processes.by_slot(slot);
            self.states.found_running(&thread, number, (ts, ts), out);
        }
        reported
    }

    /// Applies a switch; `next` is the thread switched to, `None` for idle.
    pub(super) fn switch<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        next: Option<ThreadRef>,
        out: &mut Output<'_, S>,
    ) {
        let Body::SchedSwitch {
            prev_state,
            prev_prio,
            next_prio,
            ..
        } = event.body
        else {
            return;
        };
        let Some(number) = here.cpu else { return };
        let ts = event.ts;
        let next_slice = self.next_slice;
        let cpu = self.cpu(number);
        let first = !std::mem::replace(&mut cpu.switched, true);
        cpu.prio = cpu.prio.or(prev_prio);
        let since = cpu.since;
        if let Some(thread) = here.thread {
            if first && since < ts {
                cpu.slice = Some(next_slice);
                self.next_slice += 1;
                self.states.found_running(&thread, number, (since, ts), out);
            }
            let end_state = self.end_state(prev_state);
            self.close(number, &thread, Some((ts, end_state)), out);
            self.states.prio(&thread, prev_prio);
            self.states.stop(&thread, prev_state, (number, ts), out);
        }
        let next_slice = self.next_slice;
        let cpu = self.cpu(number);
        cpu.running = next.map_or(Running::Idle, |thread| Running::Thread(thread.slot));
        cpu.since = ts;
        cpu.begin_known = true;
        cpu.confirmed = ts;
        cpu.prio = next_prio;
        cpu.slice = None;
        cpu.meter.take();
        if let Some(thread) = next {
            cpu.slice = Some(next_slice);
            self.next_slice += 1;
            self.states.prio(&thread, next_prio);
            self.states.run(&thread, number, ts, out);
        }
    }

    /// Applies changes of threads by an event.
    pub(super) fn change<S: EmitAll>(
        &mut self,
        change: &Change,
        here: &Here,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        match change {
            Change::Forked { child, .. } => self.states.fork(child, here.cpu, here.ts),
            Change::Gone { thread } => {
                for number in 0..self.cpus.len() as i32 {
                    let cpu = self.cpus[number as usize];
                    if let Some(cpu) = cpu
                        && cpu.running == Running::Thread(thread.slot)
                    {
                        self.lose(number, cpu.confirmed, processes, out);
                    }
                }
                self.last_cpus.gone(thread);
                self.states.gone(thread, processes, out);
            }
            _ => {}
        }
    }

    /// Time accounting for the CPU of an event.
    pub(super) fn meter(&mut self, number: i32) -> &mut Meter {
        &mut self.cpu(number).meter
    }

    pub(super) fn is_running(&self, slot: u32) -> bool {
        let on = |cpu: &Cpu| cpu.switched && cpu.running == Running::Thread(slot);
        self.cpus.iter().flatten().any(on)
    }

    pub(super) fn loss<S: EmitAll>(&mut self, loss: &Loss<'_>, out: &mut Output<'_, S>) {
        self.states.losses.add(loss, out);
        let Some(index) = loss.cpu.and_then(|cpu| usize::try_from(cpu).ok()) else {
            return;
        };
        if index >= CPUS_MAX {
            return;
        }
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, None);
        }
        let cpu = self.cpus[index].get_or_insert_with(|| Cpu::new(loss.ts));
        cpu.lost = cpu.lost.saturating_add(loss.count.unwrap_or(1).max(0));
    }

    pub(super) fn finish<S: EmitAll>(
        &mut self,
        ts_end: Ns,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        for number in 0..self.cpus.len() as i32 {
            if self.cpus[number as usize].is_none() {
                continue;
            }
            self.apply_losses(number, ts_end, processes, out);
            let cpu = *self.cpu(number);
            if let Running::Thread(slot) = cpu.running
                && self.states.switches_seen()
            {
                let thread = processes.by_slot(slot);
                if !cpu.switched {
                    // It ran from the first event to the last: contexts named no other thread, and
                    // switches are recorded, so there was none on this CPU.
                    self.cpu(number).slice = Some(self.next_slice);
                    self.cpu(number).switched = true;
                    self.next_slice += 1;
                    let span = (cpu.since, ts_end);
                    self.states.found_running(&thread, number, span, out);
                }
                self.cpu(number).busy_ns += ts_end.saturating_sub(cpu.since);
                self.close(number, &thread, None, out);
            }
        }
        self.states.finish(ts_end, processes, out);
        for (number, cpu) in self.cpus.iter().enumerate() {
            let Some(cpu) = cpu else { continue };
            out.sink.emit(CpuRow {
                cpu: number as i32,
                ts_first: cpu.ts_first,
                ts_last: cpu.ts_last,
                events: cpu.events,
                lost: cpu.lost,
                busy_ns: cpu.switched.then_some(cpu.busy_ns),
            });
        }
    }

    /// Marks the running thread as unknown after losses before `ts` that were not applied yet.
    fn apply_losses<S: EmitAll>(
        &mut self,
        number: i32,
        ts: Ns,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) -> bool {
        let mut lost = false;
        loop {
            let since = self.cpu(number).losses_until;
            let until = ts.saturating_add(1);
            let doubt = self.states.losses.first_between(Some(number), since, until);
            let Some(doubt) = doubt else { return lost };
            lost = true;
            self.cpu(number).losses_until = doubt.saturating_add(1);
            self.lose(number, doubt, processes, out);
        }
    }

    fn cpu(&mut self, number: i32) -> &mut Cpu {
        self.cpus[number as usize]
            .as_mut()
            .expect("`enter` created the state of the CPU of every event")
    }

    /// From `ts` on, the running thread is unknown.
    fn lose<S: EmitAll>(
        &mut self,
        number: i32,
        ts: Ns,
        processes: &Processes,
        out: &mut Output<'_, S>,
    ) {
        let cpu = self.cpu(number);
        let ts = ts.max(cpu.since);
        let switched = cpu.switched;
        let running = cpu.running;
        if let Running::Thread(slot) = running
            && switched
        {
            let thread = processes.by_slot(slot);
            self.cpu(number).begin_known = false;
            self.close(number, &thread, Some((ts, None)), out);
            self.states.lost_sight(&thread, number, ts, out);
        }
        let cpu = self.cpu(number);
        cpu.running = Running::Unknown;
        cpu.slice = None;
        cpu.since = ts;
        cpu.meter.take();
    }

    /// Writes the slice, with its end and end state if it ended.
    fn close<S: EmitAll>(
        &mut self,
        number: i32,
        thread: &ThreadRef,
        end: Option<(Ns, Option<Sym>)>,
        out: &mut Output<'_, S>,
    ) {
        let cpu = self.cpu(number);
        let spent = cpu.meter.take();
        let Some(id) = cpu.slice.take() else { return };
        let migrations = self.last_cpus.placed(thread, number);
        let cpu = self.cpu(number);
        let ts_end = end.map(|(ts_end, _)| ts_end.max(cpu.since));
        if let Some(ts_end) = ts_end {
            cpu.busy_ns += ts_end - cpu.since;
        }
        out.sink.emit(SchedSliceRow {
            id,
            ts: cpu.since,
            dur: ts_end
                .filter(|_| cpu.begin_known)
                .map(|ts_end| ts_end - cpu.since),
            ts_end,
            cpu: number,
            utid: Some(thread.utid),
            upid: thread.upid,
            tid: Some(thread.tid),
            pid: thread.pid,
            comm: thread.comm,
            prio: cpu.prio,
            system_ns: spent.system,
            hardirq_ns: spent.hardirq,
            softirq_ns: spent.softirq,
            migrations,
            end_state: end.and_then(|(_, state)| state),
        });
    }

    fn end_state(&self, state: PrevState) -> Option<Sym> {
        let index = match state {
            PrevState::Runnable { preempted: false } => 0,
            PrevState::Runnable { preempted: true } => 1,
            PrevState::Sleeping => 2,
            PrevState::Uninterruptible => 3,
            PrevState::Stopped => 4,
            PrevState::Traced => 5,
            PrevState::Dead => 6,
            PrevState::Zombie => 7,
            PrevState::Parked => 8,
            PrevState::Idle => 9,
            PrevState::Unknown(_) => return None,
        };
        Some(self.end_states[index])
    }
}

impl Cpu {
    fn new(ts: Ns) -> Self {
        Self {
            ts_first: ts,
            ts_last: ts,
            events: 0,
            lost: 0,
            busy_ns: 0,
            switched: false,
            running: Running::Unknown,
            since: ts,
            begin_known: false,
            confirmed: ts,
            prio: None,
            meter: Meter::new(ts),
            slice: None,
            losses_until: Ns::MIN,
        }
    }
}
