//! What led to a wakeup: the end of a request to a block device, or a packet.
//!
//! The kernel wakes who waits for a request inside of the completion of that, on the same CPU, and who
//! waits for a packet while it takes that in: a
//! wakeup that follows one of these belongs to it for as long as the CPU does the same thing. It is over when the
//! interrupt is that it came in, when another thread runs, and when the thread does what no
//! completion does: it enters or leaves a system call, or asks a device for something. A limit of
//! time would be wrong, because a completion may be held up by anything; but there has to be one where
//! the end of the interrupt is not recorded: the next one may wake somebody, too.
//!
//! Packets are taken in one after the other in one interrupt, so the last one counts. Where nothing
//! tells whether the CPU is in an interrupt at all, no wakeup is taken to be a packet's.
//!
//! Some completions are handed to workers, which wake who waits in their turn. A worker that was
//! woken by the end of a request passes it on until it sleeps again. Where it is recorded what workers
//! do, one that was awake anyway passes on the request in whose completion its item of work was
//! queued, and none passes on a request while it does something else.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, Interrupt, ItemPhase, PrevState, WorkItem};
use whyslow_model::{Ns, Sym, Symbols};

use super::identity::{Here, ThreadRef};
use super::irq::IrqTracker;
use super::packet::Arrival;

/// After a completion in an interrupt whose end nobody recorded. Wakeups follow within 50 µs.
const UNSEEN_END_NS: Ns = 200_000;

/// Items of work that wait, queued where a request ended: more than that are not waited for at once.
const ITEMS_MAX: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cause {
    /// block_io, worker, packet, received.
    pub(super) kind: Sym,
    /// Of the request, or of the row of the packet.
    pub(super) id: i64,
}

/// The last completion or packet on a CPU, and what the CPU did then.
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
    /// Requests that workers pass on, by thread.
    workers: FxHashMap<i32, i64>,
    /// Items of work that were queued where a request ended, by address.
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

    /// `completed`: the request that the event completes. Handlers have begun or ended before this.
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
                // One that ends is still among them.
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
                    // What is queued anew is queued for another reason.
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

    /// A packet arrives here.
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

    /// What leads to a wakeup that happens here.
    pub(super) fn of_wakeup(&mut self, here: &Here, irq: &IrqTracker) -> Option<Cause> {
        let cpu = here.cpu?;
        if let Some(done) = self.cpus.get(&cpu) {
            let is_same = done.interrupt == here.interrupt && done.handlers == irq.depth(cpu);
            let may_be_over = done.handlers == 0 && here.interrupt != Some(Interrupt::None);
            if is_same && !(may_be_over && here.ts - done.ts > UNSEEN_END_NS) {
                return Some(done.cause);
            }
            // A handler within this one wakes for reasons of its own.
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
