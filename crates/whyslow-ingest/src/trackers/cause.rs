//! Cause of a wakeup: the completion of a block request, or a packet.
//!
//! The kernel wakes a thread that waits for a request within the completion of the request, on the
//! same CPU, and a thread that waits for a packet while it receives the packet. So a wakeup that
//! follows one of these belongs to it as long as the CPU does the same thing. That ends with the
//! interrupt in which it happened, when another thread runs, and when the thread does what no
//! completion does: it enters or leaves a system call, or submits I/O. A time limit would be wrong,
//! because anything may delay a completion. But it is necessary if the end of the interrupt is not
//! recorded: the next interrupt may wake a thread, too.
//!
//! Packets are received one after the other in one interrupt, so the last one counts. If it is
//! unknown whether the CPU is in an interrupt, no wakeup is attributed to a packet.
//!
//! Some completions are passed to workers, which then wake the waiting threads. A worker woken by
//! the completion of a request passes it on until it sleeps again. If workqueue items are recorded,
//! a worker that was already awake passes on the request in whose completion its item was queued,
//! and no worker passes on a request while it runs another item.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, Interrupt, ItemPhase, PrevState, WorkItem};
use whyslow_model::{Ns, Sym, Symbols};

use super::identity::{Here, ThreadRef};
use super::irq::IrqTracker;
use super::packet::Arrival;

/// Time limit after a completion in an interrupt whose end is not recorded. Wakeups follow within
/// 50 µs.
const UNSEEN_END_NS: Ns = 200_000;

/// Maximum number of pending workqueue items that were queued by completions.
const ITEMS_MAX: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cause {
    /// block_io, worker, packet, received.
    pub(super) kind: Sym,
    /// Id of the request, or of the row of the packet.
    pub(super) id: i64,
}

/// The last completion or packet on a CPU, and the state of the CPU at that time.
#[derive(Debug, Clone, Copy)]
struct Done {
    ts: Ns,
    cause: Cause,
    interrupt: Option<Interrupt>,
    handlers: usize,
}

impl Done {
    fn new(cause: Cause, here: &Here, handlers: usize) -> Self {
        Self {
            ts: here.ts,
            cause,
            interrupt: here.interrupt,
            handlers,
        }
    }
}

#[derive(Debug)]
pub(super) struct CauseTracker {
    block_io: Sym,
    worker: Sym,
    packet: Sym,
    received: Sym,
    cpus: FxHashMap<i32, Done>,
    /// Requests passed on by workers, by thread.
    workers: FxHashMap<i32, i64>,
    /// Workqueue items queued by completions, by address.
    items: FxHashMap<u64, i64>,
}

impl CauseTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            block_io: symbols.intern("block_io"),
            worker: symbols.intern("worker"),
            packet: symbols.intern("packet"),
            received: symbols.intern("received"),
            cpus: FxHashMap::default(),
            workers: FxHashMap::default(),
            items: FxHashMap::default(),
        }
    }

    /// `completed` is the request that the event completes. Handlers have already been entered or
    /// left.
    pub(super) fn event(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        completed: Option<i64>,
        irq: &IrqTracker,
    ) {
        let Some(cpu) = here.cpu else { return };
        if let Some(block_io) = completed {
            let cause = Cause {
                kind: self.block_io,
                id: block_io,
            };
            self.cpus
                .insert(cpu, Done::new(cause, here, irq.depth(cpu)));
            return;
        }
        match body {
            Body::SchedSwitch { prev_state, .. } => {
                self.cpus.remove(&cpu);
                if let (Some(thread), false) = (
                    here.thread,
                    matches!(prev_state, PrevState::Runnable { .. }),
                ) {
                    self.workers.remove(&thread.utid);
                }
            }
            Body::IrqEnter { .. } | Body::IrqExit { .. } => {
                let depth = irq.depth(cpu);
                // A handler that ends is still on the stack.
                let outer = match body {
                    Body::IrqExit { .. } => depth.saturating_sub(1),
                    _ => depth,
                };
                if self
                    .cpus
                    .get(&cpu)
                    .is_some_and(|done| done.handlers > outer)
                {
                    self.cpus.remove(&cpu);
                }
            }
            Body::SyscallEnter { .. }
            | Body::SyscallExit { .. }
            | Body::BlockBioQueue(_)
            | Body::BlockGetRq(_)
            | Body::BlockRqInsert(_)
            | Body::BlockRqIssue(_) => {
                self.cpus.remove(&cpu);
            }
            Body::WorkItem(item) => self.item(item, here, irq),
            _ => {}
        }
    }

    fn item(&mut self, item: &WorkItem<'_>, here: &Here, irq: &IrqTracker) {
        match item.phase {
            ItemPhase::Queued => {
                let cause = self.of_wakeup(here, irq);
                match cause.filter(|cause| self.is_request(*cause)) {
                    Some(cause) => {
                        if self.items.len() >= ITEMS_MAX {
                            self.items.clear();
                        }
                        self.items.insert(item.work, cause.id);
                    }
                    // An item that is queued again has a new reason.
                    None => {
                        self.items.remove(&item.work);
                    }
                }
            }
            ItemPhase::Activated => {}
            ItemPhase::Begin => {
                let request = self.items.remove(&item.work);
                if let Some(worker) = here.thread.filter(|_| item.is_worker) {
                    match request {
                        Some(request) => self.workers.insert(worker.utid, request),
                        None => self.workers.remove(&worker.utid),
                    };
                }
            }
            ItemPhase::End => {
                if let Some(worker) = here.thread.filter(|_| item.is_worker) {
                    self.workers.remove(&worker.utid);
                }
            }
        }
    }

    /// A packet arrives on this CPU.
    pub(super) fn arrived(&mut self, arrival: Arrival, here: &Here, irq: &IrqTracker) {
        let Some(cpu) = here.cpu else { return };
        let handlers = irq.depth(cpu);
        if here.interrupt.is_none() && handlers == 0 {
            self.cpus.remove(&cpu);
            return;
        }
        let (kind, id) = match arrival {
            Arrival::Sent(id) => (self.packet, id),
            Arrival::Received(id) => (self.received, id),
        };
        let cause = Cause { kind, id };
        self.cpus.insert(cpu, Done::new(cause, here, handlers));
    }

    /// Cause of a wakeup on this CPU.
    pub(super) fn of_wakeup(&mut self, here: &Here, irq: &IrqTracker) -> Option<Cause> {
        let cpu = here.cpu?;
        if let Some(done) = self.cpus.get(&cpu) {
            let is_same = done.interrupt == here.interrupt && done.handlers == irq.depth(cpu);
            let may_be_over = done.handlers == 0 && here.interrupt != Some(Interrupt::None);
            if is_same && !(may_be_over && here.ts - done.ts > UNSEEN_END_NS) {
                return Some(done.cause);
            }
            // A nested handler wakes threads for other reasons.
            let is_within =
                here.interrupt == Some(Interrupt::Hard) && done.interrupt == Some(Interrupt::Soft);
            if done.handlers >= irq.depth(cpu) && !is_within {
                self.cpus.remove(&cpu);
            }
        }
        if here.interrupted {
            return None;
        }
        let id = *self.workers.get(&here.thread?.utid)?;
        Some(Cause {
            kind: self.worker,
            id,
        })
    }

    pub(super) fn woke_worker(&mut self, worker: &ThreadRef, cause: Option<Cause>) {
        match cause {
            Some(cause) if self.is_request(cause) => self.workers.insert(worker.utid, cause.id),
            _ => self.workers.remove(&worker.utid),
        };
    }

    fn is_request(&self, cause: Cause) -> bool {
        cause.kind == self.block_io || cause.kind == self.worker
    }

    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        self.workers.remove(&thread.utid);
    }
}
