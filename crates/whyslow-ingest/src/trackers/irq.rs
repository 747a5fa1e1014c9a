//! Interrupt handlers: hard interrupts, softirqs and IPIs with the time from raise to entry, and
//! high-resolution timers; they also define the context of every event.
//!
//! Each CPU has a stack: a handler ends with an exit of its kind and number. Handlers above it lost
//! their exits and are written without an end. Events that cannot happen in an interrupt (a switch,
//! a system call, a fork) show that the stack is empty. On kernels where softirqs may sleep
//! (PREEMPT_RT) this ends softirqs at their first sleep; keeping them would make an interrupt the
//! waker of everything after a lost exit.
//!
//! Timer handlers may be recorded by their entry alone. Until an exit of one is seen, a timer
//! handler is assumed to end at the next entry of any handler and at the exit of the handler it
//! interrupted.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, Event, IrqKind};
use whyslow_model::tables::{EmitAll, IrqRow};
use whyslow_model::{Ns, Sym, Symbols, stat};

use super::identity::{Here, Output, ThreadRef};
use crate::limits::CPUS_MAX;

/// Maximum nesting of handlers on a CPU. On Linux hard interrupts nest in softirqs, and these in
/// tasks; deeper nesting indicates damage.
const NESTING_MAX: usize = 16;

/// Maximum number of interrupt lines with stored names.
const NAMES_MAX: usize = 1 << 14;

/// Names of IPIs.
const IPIS: [&str; 3] = ["RESCHEDULE", "CALL_FUNCTION", "CALL_FUNCTION_SINGLE"];

/// Softirq vectors, in the order of the kernel's numbers.
const VECTORS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

#[derive(Debug, Clone, Copy)]
struct Handler {
    id: i64,
    ts: Ns,
    kind: IrqKind,
    nr: i32,
    name: Option<Sym>,
    ts_raise: Option<Ns>,
    thread: Option<ThreadRef>,
    /// Time in handlers that interrupted this one.
    nested: Ns,
}

#[derive(Debug, Default)]
struct Cpu {
    stack: Vec<Handler>,
    /// First raise of each vector since its last entry.
    raised: [Option<Ns>; VECTORS.len()],
    /// Second raise of each vector before its last entry.
    raised_again: [Option<Ns>; VECTORS.len()],
    /// Handlers with an unrecorded start cannot have started before this time.
    clear_since: Ns,
}

#[derive(Debug)]
pub(super) struct IrqTracker {
    cpus: Vec<Option<Cpu>>,
    kinds: [Sym; 4],
    ipis: [Sym; IPIS.len()],
    /// First raise of IPIs since their last entry, by CPU and number.
    ipis_raised: FxHashMap<(i32, i32), Ns>,
    vectors: [Sym; VECTORS.len()],
    /// Names of interrupt lines.
    names: FxHashMap<i32, Sym>,
    next_id: i64,
    timers: bool,
    timers_end: bool,
    recorded: bool,
}

impl IrqTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            cpus: Vec::new(),
            kinds: ["hard", "soft", "hrtimer", "ipi"].map(|name| symbols.intern(name)),
            ipis: IPIS.map(|name| symbols.intern(name)),
            ipis_raised: FxHashMap::default(),
            vectors: VECTORS.map(|name| symbols.intern(name)),
            names: FxHashMap::default(),
            next_id: 0,
            timers: false,
            timers_end: false,
            recorded: false,
        }
    }

    /// Whether the source records hard interrupts or softirqs, as far as seen.
    pub(super) fn recorded(&self) -> bool {
        self.recorded
    }

    /// Whether it records high-resolution timer handlers, as far as seen.
    pub(super) fn timers_recorded(&self) -> bool {
        self.timers
    }

    /// The innermost handler running on the CPU.
    pub(super) fn context(&self, cpu: Option<i32>) -> Option<(IrqKind, i32)> {
        let cpu = self.cpus.get(usize::try_from(cpu?).ok()?)?.as_ref()?;
        let top = cpu.stack.last()?;
        Some((top.kind, top.nr))
    }

    /// Number of nested handlers running on the CPU.
    pub(super) fn depth(&self, cpu: i32) -> usize {
        let cpu = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get(cpu));
        cpu.and_then(Option::as_ref)
            .map_or(0, |cpu| cpu.stack.len())
    }

    /// Ends handlers that cannot continue after this event, before the context is used. `lost`:
    /// events of this CPU were lost since its last one.
    pub(super) fn enter<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        (cpu, lost): (Option<i32>, bool),
        out: &mut Output<'_, S>,
    ) {
        let Some(number) = cpu else { return };
        let index = number as usize;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, || None);
        }
        let cpu = self.cpus[index].get_or_insert_with(|| Cpu {
            clear_since: event.ts,
            ..Cpu::default()
        });
        if lost {
            cpu.raised = Default::default();
            cpu.raised_again = Default::default();
            cpu.clear_since = event.ts;
        }
        let uninterrupted = matches!(
            event.body,
            Body::SchedSwitch { .. }
                | Body::SyscallEnter { .. }
                | Body::SyscallExit { .. }
                | Body::Fork { .. }
                | Body::Exec { .. }
                | Body::Exit { .. }
        );
        if uninterrupted {
            cpu.clear_since = event.ts;
        }
        if lost || uninterrupted {
            self.unwind(number, 0, out);
        } else if let Body::IrqEnter { .. } = event.body
            && !self.timers_end
        {
            self.end_timers(number, out);
        }
    }

    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        if let Body::StateIrq { irq, name, action } = event.body {
            let name = if action.is_empty() { name } else { action };
            self.name(irq, name, out);
            return;
        }
        if let Body::IpiRaise { nr, first, cpus } = event.body {
            return self.ipi(nr, (first, cpus), event.ts);
        }
        let Some(number) = here.cpu else { return };
        match event.body {
            Body::IrqEnter { kind, nr, name } => {
                self.recorded |= matches!(kind, IrqKind::Hard | IrqKind::Soft);
                self.timers |= kind == IrqKind::Hrtimer;
                self.begin((number, kind, nr), name, here, out);
            }
            Body::IrqExit { kind, nr, ret } => {
                self.recorded |= matches!(kind, IrqKind::Hard | IrqKind::Soft);
                self.timers_end |= kind == IrqKind::Hrtimer;
                self.end((number, kind, nr), ret, here, out);
            }
            Body::SoftirqRaise { nr } => self.raise(number, nr, event.ts),
            _ => {}
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        for number in 0..self.cpus.len() as i32 {
            self.unwind(number, 0, out);
        }
    }

    /// Softirqs are served in batches. The second raise of a vector is usually served with the
    /// first; but if the batch that serves the first has started, it is left for the next batch.
    /// This is detected when the vector is entered again without another raise.
    fn raise(&mut self, number: i32, nr: i32, ts: Ns) {
        let cpu = self.cpu(number);
        let vector = usize::try_from(nr).ok().filter(|&nr| nr < VECTORS.len());
        let Some(vector) = vector else { return };
        if cpu.raised[vector].is_some() {
            cpu.raised_again[vector].get_or_insert(ts);
        } else {
            cpu.raised[vector] = Some(ts);
            cpu.raised_again[vector] = None;
        }
    }

    /// An IPI sent while another one is pending is delivered together with it.
    fn ipi(&mut self, nr: i32, (first, cpus): (i32, u64), ts: Ns) {
        let is_known = usize::try_from(nr).is_ok_and(|nr| nr < IPIS.len());
        let is_possible = (0..CPUS_MAX as i32).contains(&first);
        if !is_known || !is_possible {
            return;
        }
        for bit in (0..64).filter(|bit| cpus & 1 << bit != 0) {
            self.ipis_raised.entry((first + bit, nr)).or_insert(ts);
        }
    }

    fn begin<S: EmitAll>(
        &mut self,
        (number, kind, nr): (i32, IrqKind, i32),
        name: Option<&[u8]>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let id = self.take_id();
        let vector = usize::try_from(nr).ok().filter(|&nr| nr < VECTORS.len());
        let name = match (kind, name) {
            (IrqKind::Hard, Some(name)) => self.name(nr, name, out),
            (IrqKind::Hard, None) => self.names.get(&nr).copied(),
            (IrqKind::Soft, _) => vector.map(|vector| self.vectors[vector]),
            (IrqKind::Hrtimer, name) => name.map(|name| out.intern(name)),
            (IrqKind::Ipi, _) => self.ipi_name(nr),
        };
        let ipi_raised = match kind {
            IrqKind::Ipi => self.ipis_raised.remove(&(number, nr)),
            _ => None,
        };
        let cpu = self.cpu(number);
        let ts_raise = match (kind, vector) {
            (IrqKind::Soft, Some(vector)) => {
                let again = &mut cpu.raised_again[vector];
                cpu.raised[vector].take().or_else(|| again.take())
            }
            _ => ipi_raised,
        };
        cpu.stack.push(Handler {
            id,
            ts: here.ts,
            kind,
            nr,
            name,
            ts_raise,
            thread: here.thread,
            nested: 0,
        });
        if cpu.stack.len() > NESTING_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, here.ts);
            let oldest = cpu.stack.remove(0);
            self.write(number, &oldest, (None, None), out);
        }
    }

    fn end<S: EmitAll>(
        &mut self,
        (number, kind, nr): (i32, IrqKind, i32),
        ret: Option<i32>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let is_it = |handler: &Handler| {
            handler.kind == kind && (handler.nr == nr || kind == IrqKind::Hrtimer)
        };
        let place = self.cpu(number).stack.iter().rposition(is_it);
        if let Some(place) = place {
            self.unwind(number, place + 1, out);
            let stack = &mut self.cpu(number).stack;
            if let Some(handler) = stack.pop() {
                if let Some(interrupted) = stack.last_mut() {
                    interrupted.nested += here.ts - handler.ts;
                }
                self.write(number, &handler, (Some(here.ts), ret), out);
            }
        } else {
            out.anomalies.count(&stat::IRQ_EXIT_WITHOUT_ENTRY, here.ts);
            let id = self.take_id();
            let vector = usize::try_from(nr).ok();
            let vector = vector.and_then(|nr| self.vectors.get(nr)).copied();
            let row = IrqRow {
                id,
                ts: self.cpu(number).clear_since,
                dur: None,
                ts_end: Some(here.ts),
                cpu: number,
                kind: self.kinds[kind as usize],
                nr,
                name: match kind {
                    IrqKind::Hard => self.names.get(&nr).copied(),
                    IrqKind::Soft => vector,
                    IrqKind::Hrtimer => None,
                    IrqKind::Ipi => self.ipi_name(nr),
                },
                ts_raise: None,
                raise_ns: None,
                ret,
                self_ns: None,
                utid: here.thread.map(|thread| thread.utid),
                upid: here.thread.and_then(|thread| thread.upid),
                tid: here.thread.map(|thread| thread.tid),
                pid: here.thread.and_then(|thread| thread.pid),
                comm: here.thread.and_then(|thread| thread.comm),
            };
            out.sink.emit(row);
        }
        self.cpu(number).clear_since = here.ts;
    }

    /// Drops the handlers above `depth`: their exits were not recorded.
    fn unwind<S: EmitAll>(&mut self, number: i32, depth: usize, out: &mut Output<'_, S>) {
        while let Some(cpu) = self.cpus[number as usize].as_mut()
            && cpu.stack.len() > depth
            && let Some(handler) = cpu.stack.pop()
        {
            self.write(number, &handler, (None, None), out);
        }
    }

    /// Ends timer handlers at the top.
    fn end_timers<S: EmitAll>(&mut self, number: i32, out: &mut Output<'_, S>) {
        let stack = &self.cpu(number).stack;
        let timers = stack.iter().rev();
        let timers = timers.take_while(|handler| handler.kind == IrqKind::Hrtimer);
        let depth = stack.len() - timers.count();
        self.unwind(number, depth, out);
    }

    fn write<S: EmitAll>(
        &self,
        number: i32,
        handler: &Handler,
        (ts_end, ret): (Option<Ns>, Option<i32>),
        out: &mut Output<'_, S>,
    ) {
        out.sink.emit(IrqRow {
            id: handler.id,
            ts: handler.ts,
            dur: ts_end.map(|ts_end| ts_end - handler.ts),
            ts_end,
            cpu: number,
            kind: self.kinds[handler.kind as usize],
            nr: handler.nr,
            name: handler.name,
            ts_raise: handler.ts_raise,
            raise_ns: handler.ts_raise.map(|raise| handler.ts - raise),
            ret,
            self_ns: ts_end.map(|ts_end| ts_end - handler.ts - handler.nested),
            utid: handler.thread.map(|thread| thread.utid),
            upid: handler.thread.and_then(|thread| thread.upid),
            tid: handler.thread.map(|thread| thread.tid),
            pid: handler.thread.and_then(|thread| thread.pid),
            comm: handler.thread.and_then(|thread| thread.comm),
        });
    }

    fn ipi_name(&self, nr: i32) -> Option<Sym> {
        let nr = usize::try_from(nr).ok()?;
        self.ipis.get(nr).copied()
    }

    fn cpu(&mut self, number: i32) -> &mut Cpu {
        self.cpus[number as usize]
            .as_mut()
            .expect("`enter` created the state of the CPU of every event")
    }

    /// Stores and returns the name of an interrupt line. Lines can be shared, so the name may
    /// change.
    fn name<S: EmitAll>(&mut self, nr: i32, name: &[u8], out: &mut Output<'_, S>) -> Option<Sym> {
        if name.is_empty() {
            return self.names.get(&nr).copied();
        }
        let name = out.intern(name);
        if self.names.len() < NAMES_MAX || self.names.contains_key(&nr) {
            self.names.insert(nr, name);
        }
        Some(name)
    }

    fn take_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }
}
