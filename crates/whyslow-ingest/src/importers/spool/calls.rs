//! System calls, and the memory contents behind their arguments, which are separate records written
//! before the one of the call. If a thread migrates between the two, the call may come first,
//! because the per-CPU ring buffers are read one after another. So a call is buffered until all
//! records up to its time were read.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::order::{Pointed, Points, REACH_NS, WAITING_MAX};

/// A call whose arguments may be incomplete.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingCall {
    /// Time of the record.
    pub(super) ts: u64,
    pub(super) tid: i32,
    pub(super) entered: u64,
    /// Which of entry and return the record contains.
    pub(super) is_entry: bool,
    pub(super) is_return: bool,
    /// Number of its first part.
    pub(super) number: u64,
    pub(super) block: u64,
    pub(super) at: u32,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: Vec<PendingCall>,
    /// By thread, in time order.
    pointed: FxHashMap<i32, VecDeque<(u64, Points)>>,
    /// Their total number.
    points: usize,
}

impl Calls {
    pub(super) fn point(&mut self, tid: i32, ts: u64, points: Points) {
        let of_thread = self.pointed.entry(tid).or_default();
        // It is not the last one only after a migration.
        if of_thread.back().is_none_or(|(last, _)| *last <= ts) {
            of_thread.push_back((ts, points));
        } else {
            let place = of_thread.partition_point(|(other, _)| *other <= ts);
            of_thread.insert(place, (ts, points));
        }
        self.points += 1;
    }

    pub(super) fn add(&mut self, call: PendingCall) {
        self.waiting.push(call);
    }

    /// Number of pending calls.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first block that is still needed.
    pub(super) fn block(&self) -> Option<u64> {
        self.waiting.iter().map(|call| call.block).min()
    }

    /// Calls recorded before `until`, with their arguments, in order.
    pub(super) fn complete(&mut self, until: u64) -> Vec<(PendingCall, Option<Pointed>)> {
        let until = if self.waiting.len() + self.points > WAITING_MAX {
            u64::MAX
        } else {
            until
        };
        self.waiting.sort_by_key(|call| (call.ts, call.number));
        let count = match until {
            u64::MAX => self.waiting.len(),
            until => self.waiting.partition_point(|call| call.ts < until),
        };
        let rest = self.waiting.split_off(count);
        let due = std::mem::replace(&mut self.waiting, rest);
        let complete = due.into_iter().map(|call| (call, self.of(&call))).collect();
        self.forget(until.saturating_sub(REACH_NS));
        complete
    }

    /// The arguments of a call were recorded between its entry and the call itself. Arguments of an
    /// earlier call that was not recorded are dropped; those of a later call stay.
    fn of(&mut self, call: &PendingCall) -> Option<Pointed> {
        let found = self.pointed.get_mut(&call.tid)?;
        let mut of_it = Pointed::new();
        while let Some((ts, points)) = found.pop_front_if(|(ts, _)| *ts <= call.ts) {
            if ts >= call.entered {
                of_it.push(points);
            }
            self.points -= 1;
        }
        if found.is_empty() {
            self.pointed.remove(&call.tid);
        }
        (!of_it.is_empty()).then_some(of_it)
    }

    /// Drops arguments that no call can need any more, such as those of calls too short to be
    /// recorded.
    fn forget(&mut self, until: u64) {
        self.pointed.retain(|_, found| {
            while found.pop_front_if(|(ts, _)| *ts < until).is_some() {}
            !found.is_empty()
        });
        self.points = self.pointed.values().map(VecDeque::len).sum();
    }
}
