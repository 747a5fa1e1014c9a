//! Buffers blocks until they are full, within a memory limit.

use std::sync::{Mutex, PoisonError};

use crate::LeftOut;
use crate::limits;
use crate::store::block::{ItemKind, Pending};
use crate::store::directory::{LaneEntry, Lanes};
use crate::store::index;
use crate::store::pages::{PageWriter, SegmentInfo};

/// Writes the blocks of all lanes of a track.
pub(crate) struct Store<'p> {
    track: u8,
    pages: &'p Mutex<PageWriter>,
    buffered: usize,
    buffered_max: usize,
    buffered_peak: usize,
    block: Vec<u8>,
}

/// Buffered blocks of one lane.
#[derive(Debug, Default)]
pub(crate) struct LaneBuffer {
    pending: Vec<Pending>,
    bytes: usize,
}

/// A lane with buffered items.
pub(crate) trait Buffered {
    /// Bytes that a write would free.
    fn bytes(&self) -> usize;
    /// Writes all buffered items.
    fn write(&mut self, slot: u32, store: &mut Store<'_>);
}

impl<'p> Store<'p> {
    pub(crate) fn new(track: u8, pages: &'p Mutex<PageWriter>, buffered_max: usize) -> Self {
        Self {
            track,
            pages,
            buffered: 0,
            buffered_max,
            buffered_peak: 0,
            block: Vec::new(),
        }
    }

    /// If the buffers exceed their limit, writes them, the largest lanes first, until they are down
    /// to half of it.
    #[inline]
    pub(crate) fn enforce_limit<L: Buffered>(&mut self, lanes: &mut [L]) {
        if self.buffered > self.buffered_max {
            self.write_largest(lanes);
        }
    }

    fn write_largest<L: Buffered>(&mut self, lanes: &mut [L]) {
        let mut lanes: Vec<(u32, &mut L)> = (0..).zip(lanes).collect();
        lanes.sort_unstable_by_key(|(slot, lane)| (usize::MAX - lane.bytes(), *slot));
        for (slot, lane) in lanes {
            if self.buffered <= self.buffered_max / 2 {
                break;
            }
            lane.write(slot, self);
        }
    }

    /// Accounts for a change of the memory that a lane takes.
    #[inline]
    pub(crate) fn account(&mut self, before: usize, after: usize) {
        self.buffered = self.buffered + after - before;
        self.buffered_peak = self.buffered_peak.max(self.buffered);
    }

    /// The most bytes ever buffered.
    pub(crate) fn buffered_peak(&self) -> usize {
        self.buffered_peak
    }

    /// Writes the index of each lane, once all blocks are written.
    pub(crate) fn finish(&mut self, left_out: LeftOut, mut lanes: Vec<LaneEntry>) -> Lanes {
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

impl LaneBuffer {
    /// Appends an item to the block of its mark and kind, and writes that block if it is full.
    #[inline]
    pub(crate) fn put(
        &mut self,
        slot: u32,
        (mark, kind): (u8, ItemKind),
        store: &mut Store<'_>,
        put: impl FnOnce(&mut Pending),
    ) {
        let matches = |pending: &Pending| pending.mark == mark && pending.kind == kind;
        let index = self.pending.iter().position(matches).unwrap_or_else(|| {
            let pending = Pending::new(mark, kind);
            self.grow(0, pending.bytes(), store);
            self.pending.push(pending);
            self.pending.len() - 1
        });
        let pending = &mut self.pending[index];
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
        store.account(before, after);
    }

    /// Bytes buffered.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes all blocks.
    pub(crate) fn flush(&mut self, slot: u32, store: &mut Store<'_>) {
        // Blocks of coarse levels are read together.
        self.pending
            .sort_unstable_by_key(|pending| (u8::MAX - pending.mark, pending.kind as u8));
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
        store.account(self.bytes, 0);
        self.bytes = 0;
    }
}

/// Writes blocks as one segment. A segment is always read as a whole.
fn write(slot: u32, pending: &mut [Pending], store: &mut Store<'_>) {
    store.block.clear();
    let mut info: Option<SegmentInfo> = None;
    for pending in pending.iter_mut().filter(|pending| !pending.is_empty()) {
        let (mark, first, end) = (pending.mark, pending.first, pending.end);
        let info = info.get_or_insert(SegmentInfo {
            track: store.track,
            lane: slot,
            marks: (mark, mark),
            finest: pending.finest,
            first,
            end,
        });
        info.marks = (info.marks.0.min(mark), info.marks.1.max(mark));
        info.finest = info.finest.min(pending.finest);
        (info.first, info.end) = (info.first.min(first), info.end.max(end));
        pending.encode(&mut store.block);
    }
    if let Some(info) = info {
        let mut pages = store.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.segment(info, &store.block);
    }
}
