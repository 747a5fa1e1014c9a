//! I/O without sectors: flushes and commands, which cannot be found by position.
//!
//! `fsync` of a clean file queues an *empty flush*: a bio without sectors. The kernel's flush
//! machinery handles it with a request of its own (issued by some kworker, completed at sector −1),
//! which may serve several of them, and then completes each (sector 0, no sectors). The flush is
//! one operation with one submitter, so the machinery's request takes over the oldest empty flush
//! that waits; the others end with their own completion and were never issued. Writes that need a
//! flush before or after them have sectors and are found by position; a flush issued for them has
//! their submitter.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::open::{OpenIos, Slot, Stage};

/// Maximum number of entries of a queue; the oldest is dropped (its I/O stays open and ends as
/// cut).
const QUEUE_MAX: usize = 1024;

/// An open I/O, verified by id when it is used again.
pub(super) type Ticket = (Slot, i64);

#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Ticket>);

impl Queue {
    pub(super) fn push(&mut self, ticket: Ticket) {
        if self.0.len() >= QUEUE_MAX {
            self.0.pop_front();
        }
        self.0.push_back(ticket);
    }

    /// Removes the oldest one that is still open.
    pub(super) fn pop(&mut self, open: &OpenIos) -> Option<Slot> {
        while let Some((slot, id)) = self.0.pop_front() {
            if open.holds(slot, id) {
                return Some(slot);
            }
        }
        None
    }

    /// Removes those that are open and started before this time.
    fn take_before(&mut self, ts: Ns, open: &OpenIos) -> Vec<Slot> {
        let is_old = |(slot, id): &Ticket| open.holds(*slot, *id) && open.get(*slot).ts < ts;
        let old = self.0.iter().filter(|ticket| is_old(ticket));
        let old = old.map(|(slot, _)| *slot).collect();
        self.0.retain(|ticket| !is_old(ticket));
        old
    }

    /// The youngest one, if it is open and has no request yet.
    pub(super) fn youngest_bio(&self, open: &OpenIos) -> Option<Slot> {
        let &(slot, id) = self.0.back()?;
        (open.holds(slot, id) && open.get(slot).stage == Stage::Bio).then_some(slot)
    }

    /// The oldest open one that has not been issued.
    pub(super) fn waiting(&self, open: &OpenIos) -> Option<Slot> {
        self.0
            .iter()
            .find(|&&(slot, id)| open.holds(slot, id) && open.get(slot).is_waiting())
            .map(|&(slot, _)| slot)
    }

    /// Removes the oldest open one that was issued, otherwise the oldest.
    pub(super) fn pop_issued(&mut self, open: &OpenIos) -> Option<Slot> {
        self.0.retain(|&(slot, id)| open.holds(slot, id));
        let issued = |&(slot, _): &Ticket| !open.get(slot).is_waiting();
        let at = self.0.iter().position(issued).unwrap_or(0);
        self.0.remove(at).map(|(slot, _)| slot)
    }
}

/// State of a device.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Empty flushes not taken over by a request.
    pub(super) empty: Queue,
    /// Requests of the flush machinery.
    pub(super) flushes: Queue,
    /// Commands passed through to the device.
    pub(super) commands: Queue,
    /// Number of expected completions of empty flushes whose rows have already ended.
    pub(super) tails: u32,
    /// The last write that requires a flush before or after it.
    pub(super) needy: Option<Ticket>,
}

impl Sequence {
    /// Removes all I/Os that started before this time.
    pub(super) fn take_before(&mut self, ts: Ns, open: &OpenIos) -> Vec<Slot> {
        let queues = [&mut self.empty, &mut self.flushes, &mut self.commands];
        let taken = queues.map(|queue| queue.take_before(ts, open));
        taken.concat()
    }
}

#[derive(Debug, Default)]
pub(super) struct Sequences(FxHashMap<i64, Sequence>);

impl Sequences {
    pub(super) fn of(&mut self, dev: i64) -> &mut Sequence {
        self.0.entry(dev).or_default()
    }

    /// Events were lost: completions that were expected may be among them.
    pub(super) fn lost(&mut self) {
        for sequence in self.0.values_mut() {
            sequence.tails = 0;
        }
    }
}
