//! Buffered rows and their order.
//!
//! Rows are wide, so each stays in place until it is written, and only keys are sorted; keys that
//! were sorted before are merged with the new ones. A key is packed into one word if the times
//! allow it, which is always the case except for entities and for spans of hours.

use std::ops::Range;

use whyslow_model::{Ns, Row};

/// Bits of a packed entry for the index of its row.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

pub(crate) struct BufferedRows<R> {
    /// Usual number of rows; there may be more.
    room: usize,
    rows: Vec<R>,
    /// Free slots.
    free: Vec<u32>,
    order: Vec<Entry>,
    /// Entries of `order` from this index on are in arrival order.
    sorted: usize,
    packed: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    ts: Ns,
    id: i64,
    slot: u32,
}

impl Entry {
    /// (`ts`, `id`) as one number, which is compared without a branch.
    #[inline]
    fn key(&self) -> u128 {
        let unsigned = |value: i64| u128::from(value.cast_unsigned() ^ (1 << 63));
        unsigned(self.ts) << 64 | unsigned(self.id)
    }
}

impl<R: Row> BufferedRows<R> {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            rows: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            sorted: 0,
            packed: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, row: R) {
        let (ts, id) = row.key();
        let slot = if let Some(slot) = self.free.pop() {
            self.rows[slot as usize] = row;
            slot
        } else {
            if self.rows.is_empty() {
                self.reserve();
            }
            self.rows.push(row);
            (self.rows.len() - 1) as u32
        };
        self.order.push(Entry { ts, id, slot });
    }

    /// Reserves address space for all future rows: untouched memory costs nothing, whereas moving
    /// rows to larger allocations dominates the cost of a small import.
    #[cold]
    fn reserve(&mut self) {
        self.rows.reserve_exact(self.room);
        self.order.reserve_exact(self.room);
    }

    /// Stable for equal keys.
    pub(crate) fn sort(&mut self) {
        let new = &mut self.order[self.sorted..];
        if !sort_packed(new, &mut self.packed) {
            new.sort_by_key(Entry::key);
        }
        // Finds the two sorted runs and merges them.
        self.order.sort_by_key(Entry::key);
        self.sorted = self.order.len();
    }

    /// Rows by their positions in the order.
    pub(crate) fn sorted(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &R> {
        let entries = self.order[range].iter();
        entries.map(|entry| &self.rows[entry.slot as usize])
    }

    /// Discards the first `count` rows of the order.
    pub(crate) fn forget(&mut self, count: usize) {
        let slots = self.order.drain(..count).map(|entry| entry.slot);
        self.free.extend(slots);
        // Reused from the end: consecutive rows then stay adjacent in memory. Otherwise reading in
        // order would miss the cache more and more during an import.
        sort_descending(&mut self.free);
        self.sorted = self.order.len();
    }
}

/// Not generic: a closure in `BufferedRows<R>` would instantiate the sort for each table.
fn sort_descending(slots: &mut [u32]) {
    slots.sort_unstable();
    slots.reverse();
}

/// Sorts by time with the index of each entry in the same word, then the few equal times by id.
/// Returns false without any change if a time or index does not fit.
fn sort_packed(entries: &mut [Entry], packed: &mut Vec<u64>) -> bool {
    let Some(base) = entries.iter().map(|entry| entry.ts).min() else {
        return true;
    };
    let span = |entry: &Entry| entry.ts.wrapping_sub(base).cast_unsigned();
    let longest = entries.iter().map(span).max().unwrap_or(0);
    if longest >> (u64::BITS - SLOT_BITS) != 0 || entries.len() > SLOT_MASK as usize {
        return false;
    }
    packed.clear();
    let words = (0..).zip(&*entries);
    packed.extend(words.map(|(place, entry)| span(entry) << SLOT_BITS | place));
    packed.sort_unstable();
    let unsorted = entries.to_vec();
    for (entry, word) in entries.iter_mut().zip(&*packed) {
        *entry = unsorted[(word & SLOT_MASK) as usize];
    }
    for same in entries.chunk_by_mut(|a, b| a.ts == b.ts) {
        if same.len() > 1 {
            same.sort_by_key(|entry| entry.id);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: &[(Ns, i64)]) -> Option<Vec<u32>> {
        let entry = |(slot, &(ts, id))| Entry { ts, id, slot };
        let mut entries: Vec<Entry> = (0..).zip(keys).map(entry).collect();
        let mut expected = entries.clone();
        expected.sort_by_key(|entry| (entry.ts, entry.id));
        let done = sort_packed(&mut entries, &mut Vec::new());
        if done {
            assert_eq!(entries, expected);
        }
        done.then(|| entries.iter().map(|entry| entry.slot).collect())
    }

    #[test]
    fn packed_keys_give_the_order_of_whole_ones() {
        assert_eq!(sorted(&[]), Some(vec![]));
        let keys = [(5, 1), (3, 9), (5, 0), (-7, 2), (3, 9), (3, -9)];
        assert_eq!(sorted(&keys), Some(vec![3, 5, 1, 4, 2, 0]));
        let hours = 4 * 3600 * 1_000_000_000;
        assert_eq!(sorted(&[(hours, 1), (0, 2)]), Some(vec![1, 0]));
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_general_way() {
        assert_eq!(sorted(&[(1 << 44, 0), (0, 0)]), None);
        assert_eq!(sorted(&[(i64::MAX, 0), (i64::MIN, 0)]), None);
    }
}
