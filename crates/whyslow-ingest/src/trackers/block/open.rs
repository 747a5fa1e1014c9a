//! Block I/O in flight: indexed by position on the device and by age, with bounded size.
//!
//! Every lookup is a hash lookup. Several I/Os may be open at one position (two processes reading
//! the same block with direct I/O, a bio that waits behind a request): they form a short chain,
//! oldest first. Merges find a request by its *end*, so that index is kept as long as the request
//! can grow.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::BlockFlags;

use crate::trackers::identity::ThreadRef;

/// Maximum number of open I/Os. A disk queue has hundreds; more than this means that completions
/// are not recorded.
pub(super) const OPEN_MAX: usize = 65_536;
/// Maximum number of open I/Os at one position.
pub(super) const CHAIN_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Submitted; not part of a request yet, and on bio-based devices never.
    Bio,
    Request,
    Issued,
    /// Its data is complete, but it ends with the flush that follows.
    Draining,
}

/// Event that identified the submitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    BioQueue,
    BioRemap,
    GetRq,
    Insert,
    Issue,
}

impl Source {
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::BioQueue => "bio_queue",
            Source::BioRemap => "bio_remap",
            Source::GetRq => "getrq",
            Source::Insert => "insert",
            Source::Issue => "issue",
        }
    }

    /// The I/O was seen waiting before its issue.
    pub(super) fn is_before_issue(self) -> bool {
        self != Source::Issue
    }
}

/// Submitter of an I/O, as far as its first event shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Submitter {
    pub(super) thread: Option<ThreadRef>,
    /// From the payload, if the thread is unknown.
    pub(super) tid: Option<i32>,
    pub(super) source: Source,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Io {
    pub(super) id: i64,
    pub(super) ts: Ns,
    pub(super) cpu: Option<i32>,
    pub(super) submitter: Submitter,
    pub(super) issuer_utid: Option<i32>,
    pub(super) dev: i64,
    pub(super) part: Option<i64>,
    pub(super) sector: i64,
    pub(super) sectors: i64,
    /// Sector at which the next completion is expected; advances with partial completions.
    pub(super) at: i64,
    pub(super) left: i64,
    /// Size of commands without sectors.
    pub(super) bytes: Option<i64>,
    /// As submitted: flags that the flush machinery removes stay visible.
    pub(super) flags: BlockFlags,
    pub(super) stage: Stage,
    /// `block_bio_queue` was seen (or is not expected).
    pub(super) queued: bool,
    /// Handled by the flush machinery: it ends with a completion without sectors.
    pub(super) sequenced: bool,
    pub(super) ts_issue: Option<Ns>,
    pub(super) ts_done: Option<Ns>,
    pub(super) merges: i32,
    pub(super) completions: i32,
    pub(super) error: Option<i32>,
}

impl Io {
    /// Not issued to the driver yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.stage < Stage::Issued
    }

    fn end(&self) -> i64 {
        self.at.saturating_add(self.left)
    }
}

/// Refers to an open I/O; stale after that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u32);

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    io: Io,
    /// Next younger I/O at the same position.
    next: u32,
    live: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenIos {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Head of the chain at (device, sector).
    by_start: FxHashMap<(i64, i64), u32>,
    /// Request that a back merge at (device, sector) extends.
    by_end: FxHashMap<(i64, i64), u32>,
    /// Slots with their ids, in order of start; closed ones are removed lazily.
    order: VecDeque<(u32, i64)>,
}

impl OpenIos {
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(super) fn get(&self, slot: Slot) -> &Io {
        &self.entries[slot.0 as usize].io
    }

    /// For changes that do not affect the position.
    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Io {
        &mut self.entries[slot.0 as usize].io
    }

    /// Whether the slot still holds the I/O with that id.
    pub(super) fn holds(&self, slot: Slot, id: i64) -> bool {
        let entry = &self.entries[slot.0 as usize];
        entry.live && entry.io.id == id
    }

    pub(super) fn insert(&mut self, io: Io) -> Slot {
        let entry = Entry {
            io,
            next: NONE,
            live: true,
        };
        let index = if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            index
        } else {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32 // bounded by OPEN_MAX
        };
        self.order.push_back((index, io.id));
        if self.order.len() > 2 * self.len() + 1024 {
            let entries = &self.entries;
            self.order.retain(|&(index, id)| {
                let entry = &entries[index as usize];
                entry.live && entry.io.id == id
            });
        }
        self.link(index);
        Slot(index)
    }

    pub(super) fn close(&mut self, slot: Slot) -> Io {
        self.unlink(slot.0);
        let entry = &mut self.entries[slot.0 as usize];
        entry.live = false;
        self.free.push(slot.0);
        entry.io
    }

    /// Changes device, position or size.
    pub(super) fn reshape(&mut self, slot: Slot, change: impl FnOnce(&mut Io)) {
        self.unlink(slot.0);
        change(&mut self.entries[slot.0 as usize].io);
        self.link(slot.0);
    }

    /// The oldest one at this position that satisfies `want`; one with exactly `sectors` takes
    /// precedence.
    pub(super) fn find(
        &self,
        dev: i64,
        sector: i64,
        sectors: i64,
        want: impl Fn(&Io) -> bool,
    ) -> Option<Slot> {
        let mut found = None;
        for slot in self.chain(dev, sector) {
            let io = self.get(slot);
            if want(io) {
                if io.left == sectors {
                    return Some(slot);
                }
                found = found.or(Some(slot));
            }
        }
        found
    }

    /// The request that ends at this position and can still grow.
    pub(super) fn ending_at(&self, dev: i64, sector: i64) -> Option<Slot> {
        self.by_end.get(&(dev, sector)).map(|&index| Slot(index))
    }

    pub(super) fn chain_len(&self, dev: i64, sector: i64) -> usize {
        self.chain(dev, sector).count()
    }

    pub(super) fn oldest(&mut self) -> Option<Slot> {
        while let Some(&(index, id)) = self.order.front() {
            if self.holds(Slot(index), id) {
                return Some(Slot(index));
            }
            self.order.pop_front();
        }
        None
    }

    /// Those of a device, oldest first. A scan of all entries: not for use on every event.
    pub(super) fn of_device(&self, dev: i64) -> Vec<Slot> {
        self.order
            .iter()
            .filter(|&&(index, id)| self.holds(Slot(index), id))
            .map(|&(index, _)| Slot(index))
            .filter(|&slot| self.get(slot).dev == dev)
            .collect()
    }

    fn chain(&self, dev: i64, sector: i64) -> impl Iterator<Item = Slot> {
        let mut at = self.by_start.get(&(dev, sector)).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let index = at;
            at = self.entries.get(index as usize)?.next;
            Some(Slot(index))
        })
    }

    /// I/Os without sectors have no position; the queues of [`super::sequence`] hold them.
    fn link(&mut self, index: u32) {
        let io = &self.entries[index as usize].io;
        if io.sectors <= 0 {
            return;
        }
        let (start, end, waiting) = ((io.dev, io.at), (io.dev, io.end()), io.is_waiting());
        self.entries[index as usize].next = NONE;
        if waiting {
            self.by_end.insert(end, index);
        }
        let last = self.chain(start.0, start.1).last();
        match last {
            Some(Slot(last)) => self.entries[last as usize].next = index,
            None => {
                self.by_start.insert(start, index);
            }
        }
    }

    fn unlink(&mut self, index: u32) {
        let entry = &self.entries[index as usize];
        let (io, next) = (&entry.io, entry.next);
        if io.sectors <= 0 {
            return;
        }
        let (start, end) = ((io.dev, io.at), (io.dev, io.end()));
        if self.by_end.get(&end) == Some(&index) {
            self.by_end.remove(&end);
        }
        let before = self
            .chain(start.0, start.1)
            .find(|slot| self.entries[slot.0 as usize].next == index);
        match before {
            Some(Slot(before)) => self.entries[before as usize].next = next,
            None if next == NONE => {
                self.by_start.remove(&start);
            }
            None => {
                self.by_start.insert(start, next);
            }
        }
    }
}
