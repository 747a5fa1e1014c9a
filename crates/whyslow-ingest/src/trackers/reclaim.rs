//! Page reclaim, from start to end.
//!
//! A thread reclaims for itself and cannot do anything else meanwhile. Start and end are matched by
//! thread and kind, because soft limit reclaim happens within another reclaim. kswapd is matched by
//! node: there is one thread per node, and its events are reported without the thread. It reports a
//! wakeup each time it starts another round, so a further wakeup continues the same interval.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, ReclaimKind};
use whyslow_model::tables::{EmitAll, ReclaimRow};
use whyslow_model::{Ns, stat};

use super::identity::{Here, Output, ThreadRef};

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    kind: ReclaimKind,
    thread: Option<ThreadRef>,
    cpu: Option<i32>,
    order: Option<i32>,
    node: Option<i32>,
}

/// Owner of the reclaim: a thread; if unknown, a CPU; a node for kswapd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Owner {
    Thread(i32),
    Cpu(Option<i32>),
    Node(Option<i32>),
}

#[derive(Debug, Default)]
pub(super) struct ReclaimTracker {
    open: FxHashMap<(Owner, u8), Open>,
    next_id: i64,
}

impl ReclaimTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        match *body {
            Body::ReclaimBegin { kind, order, node } => {
                let key = (owner(kind, node, here), kind as u8);
                match self.open.get(&key) {
                    Some(_) if kind == ReclaimKind::Kswapd => return,
                    Some(open) => {
                        out.anomalies.count(&stat::RECLAIM_NESTED, here.ts);
                        emit(open, None, out);
                    }
                    None => {}
                }
                let open = Open {
                    id: self.next_id,
                    ts: here.ts,
                    kind,
                    thread: here.thread,
                    cpu: here.cpu,
                    order,
                    node,
                };
                self.next_id += 1;
                self.open.insert(key, open);
            }
            Body::ReclaimEnd { kind, pages, node } => {
                match self.open.remove(&(owner(kind, node, here), kind as u8)) {
                    Some(open) => emit(&open, Some((here.ts, pages)), out),
                    None => out
                        .anomalies
                        .count(&stat::RECLAIM_END_WITHOUT_BEGIN, here.ts),
                }
            }
            _ => {}
        }
    }

    /// The thread ended; its reclaim has no end.
    pub(super) fn gone<S: EmitAll>(&mut self, thread: &ThreadRef, out: &mut Output<'_, S>) {
        for kind in ReclaimKind::ALL {
            if let Some(open) = self.open.remove(&(Owner::Thread(thread.utid), kind as u8)) {
                emit(&open, None, out);
            }
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            emit(open, None, out);
        }
    }
}

fn owner(kind: ReclaimKind, node: Option<i32>, here: &Here) -> Owner {
    match (kind, here.thread) {
        (ReclaimKind::Kswapd, _) => Owner::Node(node),
        (_, Some(thread)) => Owner::Thread(thread.utid),
        (_, None) => Owner::Cpu(here.cpu),
    }
}

fn emit<S: EmitAll>(open: &Open, end: Option<(Ns, Option<i64>)>, out: &mut Output<'_, S>) {
    let kind = out.symbols.intern_static(open.kind.name());
    out.sink.emit(ReclaimRow {
        id: open.id,
        ts: open.ts,
        dur: end.map(|(ts, _)| ts.saturating_sub(open.ts)),
        ts_end: end.map(|(ts, _)| ts),
        kind,
        utid: open.thread.map(|thread| thread.utid),
        upid: open.thread.and_then(|thread| thread.upid),
        tid: open.thread.map(|thread| thread.tid),
        pid: open.thread.and_then(|thread| thread.pid),
        comm: open.thread.and_then(|thread| thread.comm),
        cpu: open.cpu,
        alloc_order: open.order,
        node: open.node,
        pages: end.and_then(|(_, pages)| pages),
    });
}
