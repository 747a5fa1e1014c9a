//! Workqueue items: from queueing to the end of their function.
//!
//! A queued item is identified by its address until its function starts: it cannot be queued twice.
//! From then on it can, and its memory may already be reused, so a running item is also identified
//! by the thread that runs it.
//!
//! Cancelling an item is not reported. But delaying one cancels it and queues it again, which some
//! code does all the time. So an item that is queued again is the same one, starting at that time,
//! and counts its earlier queueings.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use whyslow_model::event::{ItemPhase, WorkItem};
use whyslow_model::tables::{EmitAll, WorkItemRow};
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Here, Output, ThreadRef};
use super::irq::IrqTracker;
use super::meter::Inside;
use super::wakeup::may_be_interrupted;

/// Maximum number of queued or running items; above it, their ends are dropped.
const OPEN_MAX: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    function: Option<Sym>,
    workqueue: Option<Sym>,
    queued: Option<Ns>,
    requeued: Option<i64>,
    activated: Option<Ns>,
    begun: Option<Ns>,
    owner: Option<ThreadRef>,
    worker: Option<ThreadRef>,
    cpu: Option<i32>,
}

/// Runner of the function: a thread, or a softirq on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Runner {
    Thread(i32),
    Cpu(Option<i32>),
}

#[derive(Debug, Default)]
pub(super) struct WorkItemTracker {
    queued: FxHashMap<u64, Open>,
    running: FxHashMap<(Runner, u64), Open>,
    next_id: i64,
}

impl WorkItemTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        item: WorkItem<'_>,
        here: &Here,
        (irq, inside): (&IrqTracker, &Inside),
        out: &mut Output<'_, S>,
    ) {
        let worker = here.thread.filter(|_| item.is_worker);
        let runner = worker.map_or(Runner::Cpu(here.cpu), |thread| Runner::Thread(thread.utid));
        match item.phase {
            ItemPhase::Queued => {
                let is_interrupt = here.interrupted || may_be_interrupted(here, irq, inside);
                let mut open = self.open(item, here, out);
                open.queued = Some(here.ts);
                open.owner = here.thread.filter(|_| !is_interrupt);
                if !item.workqueue.is_empty() {
                    open.workqueue = Some(out.intern(item.workqueue));
                }
                let before = self.queued.get(&item.work);
                let times = before.map(|before| before.requeued.unwrap_or(0) + 1);
                open.requeued = Some(times.unwrap_or(0));
                self.queued.insert(item.work, open);
                self.bound(here.ts, out);
            }
            ItemPhase::Activated => {
                if let Some(open) = self.queued.get_mut(&item.work) {
                    open.activated = Some(here.ts);
                }
            }
            ItemPhase::Begin => {
                let queued = self.queued.remove(&item.work);
                let mut open = queued.unwrap_or_else(|| self.open(item, here, out));
                open.function = open.function.or_else(|| function(item, here.ts, out));
                open.begun = Some(here.ts);
                open.worker = worker;
                open.cpu = here.cpu;
                if let Some(before) = self.running.insert((runner, item.work), open) {
                    out.anomalies.count(&stat::ITEM_NESTED, here.ts);
                    put(&before, None, out);
                }
                self.bound(here.ts, out);
            }
            ItemPhase::End => match self.running.remove(&(runner, item.work)) {
                Some(open) => put(&open, Some(here.ts), out),
                None => out.anomalies.count(&stat::ITEM_END_WITHOUT_BEGIN, here.ts),
            },
        }
    }

    fn open<S: EmitAll>(
        &mut self,
        item: WorkItem<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) -> Open {
        self.next_id += 1;
        Open {
            id: self.next_id - 1,
            ts: here.ts,
            function: function(item, here.ts, out),
            workqueue: None,
            queued: None,
            requeued: None,
            activated: None,
            begun: None,
            owner: None,
            worker: None,
            cpu: None,
        }
    }

    fn bound<S: EmitAll>(&mut self, ts: Ns, out: &mut Output<'_, S>) {
        if self.queued.len() + self.running.len() > OPEN_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, ts);
            self.finish(out);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let queued = self.queued.drain().map(|(_, open)| open);
        let running = self.running.drain().map(|(_, open)| open);
        let mut open: Vec<Open> = queued.chain(running).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            put(open, None, out);
        }
    }
}

fn function<S: EmitAll>(item: WorkItem<'_>, ts: Ns, out: &mut Output<'_, S>) -> Option<Sym> {
    if let Some(name) = item.function {
        return Some(out.intern(name));
    }
    out.anomalies.count(&stat::FRAME_UNNAMED, ts);
    let mut text = String::new();
    write!(text, "{:x}", item.address?).expect("writing to a string cannot fail");
    Some(out.symbols.intern(&text))
}

fn put<S: EmitAll>(open: &Open, end: Option<Ns>, out: &mut Output<'_, S>) {
    let from = |begin: Option<Ns>, end: Option<Ns>| Some(end?.saturating_sub(begin?));
    let (owner, worker) = (open.owner, open.worker);
    out.sink.emit(WorkItemRow {
        id: open.id,
        ts: open.ts,
        dur: from(Some(open.ts), end),
        ts_end: end,
        function: open.function,
        workqueue: open.workqueue,
        ts_begin: open.begun,
        queue_ns: from(open.queued, open.begun),
        requeued: open.requeued,
        held_ns: from(open.queued, open.activated),
        run_ns: from(open.begun, end),
        utid: owner.map(|thread| thread.utid),
        upid: owner.and_then(|thread| thread.upid),
        tid: owner.map(|thread| thread.tid),
        pid: owner.and_then(|thread| thread.pid),
        comm: owner.and_then(|thread| thread.comm),
        worker_utid: worker.map(|thread| thread.utid),
        worker_tid: worker.map(|thread| thread.tid),
        worker_comm: worker.and_then(|thread| thread.comm),
        cpu: open.cpu,
    });
}
