//! Wakeups: who was woken, by whom, and in which context the waker was.
//!
//! Newer kernels tell twice of one wakeup: `waking` on the CPU and in the context of the waker,
//! then `wakeup` on the CPU the thread will run on, often in an interrupt that shows a wrong waker.
//! Both are kept; the first of the two ends the sleep, so the state points at the waking where
//! there is one.
//!
//! The context is what the event itself tells, or that of the handlers known to run. An interrupt whose handler is not recorded is
//! seen only where nothing else can be the waker: on an idle CPU, and in a thread outside the
//! kernel. The latter may also wake somebody in a page fault, so there the context is unknown,
//! unless timers are recorded, the usual source of such interrupts.

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
        // What the event itself tells goes before what was concluded from others.
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
            // The idle thread wakes nobody: it was an interrupt whose handler is not recorded,
            // such as that of the local timer or a call from another CPU.
            None if here.idle && kind == WakeupKind::Waking => (self.irq, None),
            None if may_be_interrupted(here, irq, inside) => (self.unknown, None),
            None if irq.recorded() => (self.task, None),
            None => (self.unknown, None),
        }
    }
}

/// An interrupt whose handler is not recorded may be at work, rather than the thread.
pub(super) fn may_be_interrupted(here: &Here, irq: &IrqTracker, inside: &Inside) -> bool {
    if let Some(interrupt) = here.interrupt {
        return interrupt != Interrupt::None;
    }
    let is_outside = |thread: ThreadRef| inside.get(&thread) == Some(false);
    !irq.timers_recorded() && here.thread.is_some_and(is_outside)
}
