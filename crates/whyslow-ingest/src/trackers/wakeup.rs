//! Wakeups: the woken thread, the waker and its context.
//!
//! Newer kernels report a wakeup twice: `waking` on the CPU and in the context of the waker, then
//! `wakeup` on the CPU that the thread will run on, often in an interrupt with a wrong waker. Both
//! are kept; the first of the two ends the sleep, so the state refers to the waking event if there
//! is one.
//!
//! The context is the one that the event itself reports, otherwise that of the handlers known to be
//! running. An interrupt whose handler is not recorded is recognized only if nothing else can be
//! the waker: on an idle CPU, and in a thread in user mode. A thread in user mode may also wake
//! another one in a page fault, so its context is unknown, unless timers are recorded, the usual
//! source of such interrupts.

use whyslow_model::event::{Body, Event, Interrupt, IrqKind, WakeupKind};
use whyslow_model::tables::{EmitAll, WakeupRow};
use whyslow_model::{Sym, Symbols};

use super::cause::Cause;
use super::identity::{Here, Output, ThreadRef};
use super::irq::IrqTracker;
use super::meter::Inside;
use super::thread_state::{ThreadStates, Wake};

#[derive(Debug)]
pub(super) struct WakeupTracker {
    kinds: [Sym; 3],
    task: Sym,
    irq: Sym,
    softirq: Sym,
    timer: Sym,
    unknown: Sym,
    next_id: i64,
}

impl WakeupTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            kinds: ["waking", "wakeup", "wakeup_new"].map(|name| symbols.intern(name)),
            task: symbols.intern("task"),
            irq: symbols.intern("irq"),
            softirq: symbols.intern("softirq"),
            timer: symbols.intern("timer"),
            unknown: symbols.intern("unknown"),
            next_id: 0,
        }
    }

    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        (here, wakee, cause): (&Here, ThreadRef, Option<Cause>),
        (irq, inside, states): (&IrqTracker, &Inside, &mut ThreadStates),
        out: &mut Output<'_, S>,
    ) -> bool {
        let Body::SchedWakeup {
            kind,
            tid,
            prio,
            target_cpu,
            ..
        } = event.body
        else {
            return true;
        };
        let (context, context_nr) = self.context(kind, here, (irq, inside));
        let on_cpu = here.thread.map(|thread| thread.utid);
        let interrupted = [self.irq, self.softirq, self.timer].contains(&context);
        let wake = Wake {
            id: self.next_id,
            kind,
            waker_utid: on_cpu.filter(|_| !interrupted),
            context,
            cause,
            target_cpu,
            cpu: here.cpu,
        };
        self.next_id += 1;
        states.prio(&wakee, prio);
        let spurious = states.wake(&wakee, &wake, event.ts, out);
        out.sink.emit(WakeupRow {
            id: wake.id,
            ts: event.ts,
            kind: self.kinds[kind as usize],
            utid: Some(wakee.utid),
            tid,
            comm: wakee.comm,
            prio,
            target_cpu,
            cpu: here.cpu,
            waker_utid: on_cpu,
            waker_tid: match here.thread {
                Some(thread) => Some(thread.tid),
                None => here.idle.then_some(0),
            },
            context,
            context_nr,
            cause: cause.map(|cause| cause.kind),
            cause_id: cause.map(|cause| cause.id),
            spurious,
        });
        spurious
    }

    fn context(
        &self,
        kind: WakeupKind,
        here: &Here,
        (irq, inside): (&IrqTracker, &Inside),
    ) -> (Sym, Option<i32>) {
        let handler = irq.context(here.cpu);
        // The context of the event itself takes precedence over the derived one.
        match (here.interrupt, handler) {
            (Some(Interrupt::None), _) if !here.idle => return (self.task, None),
            (Some(Interrupt::Soft), Some((IrqKind::Soft, nr))) => return (self.softirq, Some(nr)),
            (Some(Interrupt::Soft), _) => return (self.softirq, None),
            (Some(Interrupt::Hard), None | Some((IrqKind::Soft, _))) => return (self.irq, None),
            _ => {}
        }
        match handler {
            Some((IrqKind::Hard | IrqKind::Ipi, nr)) => (self.irq, Some(nr)),
            Some((IrqKind::Soft, nr)) => (self.softirq, Some(nr)),
            Some((IrqKind::Hrtimer, _)) => (self.timer, None),
            // The idle thread wakes no threads: it was an interrupt whose handler is not recorded,
            // such as the local timer or an IPI.
            None if here.idle && kind == WakeupKind::Waking => (self.irq, None),
            None if may_be_interrupted(here, irq, inside) => (self.unknown, None),
            None if irq.recorded() => (self.task, None),
            None => (self.unknown, None),
        }
    }
}

/// Whether an interrupt without a recorded handler may be the waker, rather than the thread.
pub(super) fn may_be_interrupted(here: &Here, irq: &IrqTracker, inside: &Inside) -> bool {
    if let Some(interrupt) = here.interrupt {
        return interrupt != Interrupt::None;
    }
    let is_outside = |thread: ThreadRef| inside.get(&thread) == Some(false);
    !irq.timers_recorded() && here.thread.is_some_and(is_outside)
}
