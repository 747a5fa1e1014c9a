//! Calls, and what their arguments point at: records of their own, written before that of the call.
//! But a thread may go to another CPU between the two, and the rings of CPUs are read one after the
//! other: then the call is told first. So a call waits until all of its time is there.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::order::{Pointed, Points, REACH_NS, WAITING_MAX};

/// A call that was told.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToldCall {
    /// When.
    pub(super) ts: u64,
    pub(super) tid: i32,
    pub(super) entered: u64,
    /// Which of its entry and its return the record tells.
    pub(super) is_entry: bool,
    pub(super) is_return: bool,
    /// Of its parts, the first.
    pub(super) number: u64,
    pub(super) block: u64,
    pub(super) at: u32,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: Vec<ToldCall>,
    /// By thread, in order of time.
    pointed: FxHashMap<i32, VecDeque<(u64, Points)>>,
    /// How many of them there are.
    points: usize,
}

impl Calls {
    pub(super) fn point(&mut self, tid: i32, ts: u64, points: Points) {
        let of_thread = self.pointed.entry(tid).or_default();
        // Only after a change of the CPU it is not the last.
        if of_thread.back().is_none_or(|(last, _)| *last <= ts) {
            of_thread.push_back((ts, points));
        } else {
            let place = of_thread.partition_point(|(other, _)| *other <= ts);
            of_thread.insert(place, (ts, points));
        }
        self.points += 1;
    }

    pub(super) fn add(&mut self, told: ToldCall) {
        self.waiting.push(told);
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first block that is still needed.
    pub(super) fn block(&self) -> Option<u64> {
        self.waiting.iter().map(|told| told.block).min()
    }

    /// Calls told before this moment, with what they point at, in order.
    pub(super) fn complete(&mut self, until: u64) -> Vec<(ToldCall, Option<Pointed>)> {
        let until = if self.waiting.len() + self.points > WAITING_MAX {
            u64::MAX
        } else {
            until
        };
        self.waiting.sort_by_key(|told| (told.ts, told.number));
        let count = match until {
            u64::MAX => self.waiting.len(),
            until => self.waiting.partition_point(|told| told.ts < until),
        };
        let rest = self.waiting.split_off(count);
        let due = std::mem::replace(&mut self.waiting, rest);
        let complete = due.into_iter().map(|told| (told, self.of(&told))).collect();
        self.forget(until.saturating_sub(REACH_NS));
        complete
    }

    /// What a call points at was told between its entry and itself. A call before it may not have been
    /// told, and what it pointed at is left; that of a call after it stays.
    fn of(&mut self, told: &ToldCall) -> Option<Pointed> {
        let found = self.pointed.get_mut(&told.tid)?;
        let mut of_it = Pointed::new();
        while let Some((ts, points)) = found.pop_front_if(|(ts, _)| *ts <= told.ts) {
            if ts >= told.entered {
                of_it.push(points);
            }
            self.points -= 1;
        }
        if found.is_empty() {
            self.pointed.remove(&told.tid);
        }
        (!of_it.is_empty()).then_some(of_it)
    }

    /// What no call can want any more, as those that were too short to be told leave behind.
    fn forget(&mut self, until: u64) {
        self.pointed.retain(|_, found| {
            while found.pop_front_if(|(ts, _)| *ts < until).is_some() {}
            !found.is_empty()
        });
        self.points = self.pointed.values().map(VecDeque::len).sum();
    }
}
