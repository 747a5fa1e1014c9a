//! Page allocations, frees and page faults, summed by thread and second: single events are too
//! numerous to keep, and are not queried.
//!
//! Allocations of an interrupt handler do not belong to the interrupted thread; they are summed
//! without an owner.

use whyslow_model::event::{Body, CacheFill, MemoryKind};
use whyslow_model::tables::{EmitAll, PageCountRow};
use whyslow_model::{Ns, stat};

use super::identity::{Here, Output, ThreadRef};

const SECOND: Ns = 1_000_000_000;

/// Largest allocation order of the buddy allocator in any configuration.
const ORDER_MAX: u32 = 40;

#[derive(Debug, Clone, Copy)]
struct Sum {
    id: i64,
    thread: Option<ThreadRef>,
    allocated: i64,
    freed: i64,
    /// Indexes as in [`MemoryKind::ALL`].
    counts: [i64; MemoryKind::ALL.len()],
}

#[derive(Debug, Default)]
pub(super) struct PageTracker {
    /// Start of the current second.
    second: Ns,
    sums: Vec<Sum>,
    /// By slot: index into `sums` plus one; zero for none.
    places: Vec<u32>,
    unowned: u32,
    next_id: i64,
}

impl PageTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let pages = match *body {
            Body::PageAlloc { order } | Body::PageFree { order } | Body::Memory { order, .. }
                if order <= ORDER_MAX =>
            {
                1i64 << order
            }
            Body::PageAlloc { .. } | Body::PageFree { .. } | Body::Memory { .. } => {
                out.anomalies.count(&stat::VALUE_IMPOSSIBLE, here.ts);
                return;
            }
            Body::CacheFill(CacheFill::Pages(ref fill)) => fill.pages,
            _ => return,
        };
        let second = here.ts.div_euclid(SECOND) * SECOND;
        if second != self.second {
            self.finish(out);
            self.second = second;
        }
        let sum = self.sum(here.thread.filter(|_| !here.interrupted));
        let count = match *body {
            Body::PageAlloc { .. } => &mut sum.allocated,
            Body::Memory { kind, .. } => &mut sum.counts[kind as usize],
            Body::CacheFill(_) => &mut sum.counts[MemoryKind::CacheAdd as usize],
            _ => &mut sum.freed,
        };
        *count = count.saturating_add(pages);
    }

    /// The slot may be reused for another thread.
    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        if let Some(place) = self.places.get_mut(thread.index()) {
            *place = 0;
        }
    }

    /// Writes the sums of the current second.
    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        for sum in self.sums.drain(..) {
            let thread = sum.thread;
            if let Some(thread) = thread {
                self.places[thread.index()] = 0;
            }
            out.sink.emit(PageCountRow {
                id: sum.id,
                ts: self.second,
                utid: thread.map(|thread| thread.utid),
                upid: thread.and_then(|thread| thread.upid),
                tid: thread.map(|thread| thread.tid),
                pid: thread.and_then(|thread| thread.pid),
                comm: thread.and_then(|thread| thread.comm),
                allocated: sum.allocated,
                freed: sum.freed,
                faults_user: sum.counts[MemoryKind::FaultUser as usize],
                faults_kernel: sum.counts[MemoryKind::FaultKernel as usize],
                cache_added: sum.counts[MemoryKind::CacheAdd as usize],
                cache_removed: sum.counts[MemoryKind::CacheRemove as usize],
                reclaim_written: sum.counts[MemoryKind::ReclaimWrite as usize],
                kswapd_wakeups: sum.counts[MemoryKind::KswapdWakeup as usize],
            });
        }
        self.unowned = 0;
    }

    fn sum(&mut self, thread: Option<ThreadRef>) -> &mut Sum {
        let place = match thread {
            Some(thread) => {
                if self.places.len() <= thread.index() {
                    self.places.resize(thread.index() + 1, 0);
                }
                &mut self.places[thread.index()]
            }
            None => &mut self.unowned,
        };
        if *place == 0 {
            self.sums.push(Sum {
                id: self.next_id,
                thread,
                allocated: 0,
                freed: 0,
                counts: Default::default(),
            });
            self.next_id += 1;
            *place = self.sums.len() as u32;
        }
        let sum = &mut self.sums[*place as usize - 1];
        // The latest name: programs are usually known by their final name.
        sum.thread = thread;
        sum
    }
}
