//! Blocks that wait until they are full, within a bound of memory.

use std::sync::{Mutex, PoisonError};

use crate::LeftOut;
use crate::limits;
use crate::store::block::{Pending, Sort};
use crate::store::directory::{LaneAt, Lanes};
use crate::store::index;
use crate::store::pages::{About, PageWriter};

/// Of all lanes of a track.
pub(crate) struct Store<'p> {
    track: u8,
    pages: &'p Mutex<PageWriter>,
    held: usize,
    held_max: usize,
    most_held: usize,
    block: Vec<u8>,
}

/// Of one lane.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pending: Vec<Pending>,
    bytes: usize,
}

/// A lane whose items wait.
pub(crate) trait Holder {
    /// What it holds that can be written.
    fn bytes(&self) -> usize;
    /// Writes everything.
    fn write(&mut self, slot: u32, store: &mut Store<'_>);
}

impl<'p> Store<'p> {
    pub(crate) fn new(track: u8, pages: &'p Mutex<PageWriter>, held_max: usize) -> Self {
        Self {
            track,
            pages,
            held: 0,
            held_max,
            most_held: 0,
            block: Vec::new(),
        }
    }

    /// Writes what waits, the largest lanes first, until half of what may wait is free, if more waits
    /// than may.
    #[inline]
    pub(crate) fn relieve<H: Holder>(&mut self, holders: &mut [H]) {
        if self.held > self.held_max {
            self.write_largest(holders);
        }
    }

    fn write_largest<H: Holder>(&mut self, holders: &mut [H]) {
        let mut lanes: Vec<(u32, &mut H)> = (0..).zip(holders).collect();
        lanes.sort_unstable_by_key(|(slot, holder)| (usize::MAX - holder.bytes(), *slot));
        for (slot, holder) in lanes {
            if self.held <= self.held_max / 2 {
                break;
            }
            holder.write(slot, self);
        }
    }

    /// Notes that something of a lane takes more or less than before.
    #[inline]
    pub(crate) fn hold(&mut self, before: usize, after: usize) {
        self.held = self.held + after - before;
        self.most_held = self.most_held.max(self.held);
    }

    /// The most bytes that ever waited.
    pub(crate) fn most_held(&self) -> usize {
        self.most_held
    }

    /// Writes where the blocks of lanes lie, when all are written.
    pub(crate) fn finish(&mut self, left_out: LeftOut, mut lanes: Vec<LaneAt>) -> Lanes {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        index::write(&mut pages, self.track, &mut lanes);
        lanes.sort_unstable_by_key(|lane| lane.id);
        Lanes {
            track: self.track,
            left_out,
            narrowest: 0,
            all: lanes,
        }
    }
}

impl Waiting {
    /// Puts one item where those like it wait, and writes them if they are enough.
    #[inline]
    pub(crate) fn put(
        &mut self,
        slot: u32,
        (mark, sort): (u8, Sort),
        store: &mut Store<'_>,
        put: impl FnOnce(&mut Pending),
    ) {
        let is_it = |pending: &Pending| pending.mark == mark && pending.sort == sort;
        let place = self.pending.iter().position(is_it).unwrap_or_else(|| {
            let pending = Pending::new(mark, sort);
            self.grow(0, pending.bytes(), store);
            self.pending.push(pending);
            self.pending.len() - 1
        });
        let pending = &mut self.pending[place];
        let before = pending.bytes();
        put(pending);
        let after = pending.bytes();
        if pending.is_full() {
            write(slot, std::slice::from_mut(pending), store);
        }
        self.grow(before, after, store);
    }

    #[inline]
    fn grow(&mut self, before: usize, after: usize, store: &mut Store<'_>) {
        self.bytes = self.bytes + after - before;
        store.hold(before, after);
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self, slot: u32, store: &mut Store<'_>) {
        // Those of coarse scales are read together.
        self.pending
            .sort_unstable_by_key(|pending| (u8::MAX - pending.mark, pending.sort as u8));
        let mut rest = std::mem::take(&mut self.pending);
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|pending| {
                let fits = bytes < limits::PAGE_BYTES;
                bytes += pending.bytes();
                fits
            });
            let count = fits.count();
            write(slot, &mut rest[..count], store);
            rest.drain(..count);
        }
        store.hold(self.bytes, 0);
        self.bytes = 0;
    }
}

/// As one segment, which whoever reads one of them reads whole.
fn write(slot: u32, pending: &mut [Pending], store: &mut Store<'_>) {
    store.block.clear();
    let mut about: Option<About> = None;
    for pending in pending.iter_mut().filter(|pending| !pending.is_empty()) {
        let (mark, first, end) = (pending.mark, pending.first, pending.end);
        let about = about.get_or_insert(About {
            track: store.track,
            lane: slot,
            marks: (mark, mark),
            finest: pending.finest,
            first,
            end,
        });
        about.marks = (about.marks.0.min(mark), about.marks.1.max(mark));
        about.finest = about.finest.min(pending.finest);
        (about.first, about.end) = (about.first.min(first), about.end.max(end));
        pending.encode(&mut store.block);
    }
    if let Some(about) = about {
        let mut pages = store.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.segment(about, &store.block);
    }
}
