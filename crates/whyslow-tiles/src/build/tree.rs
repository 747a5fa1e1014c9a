//! Decides, in order of time, up to which level each item of a lane is kept separate.
//!
//! The home of an interval is the smallest cell (cell sizes are powers of four) that contains it.
//! When such a cell ends and holds more than a few items, they are emitted, marked with the level
//! of the cell, and one sum replaces them in the cell above; otherwise they move up one by one. So
//! each interval is emitted once, each sum covers at least four items, and a tile of any level
//! reads at most a few items for each of its cells: those marked with a level above its own, except
//! sums of cells larger than its own (the items of these sums are marked above the level of the
//! tile, too). An interval that crosses the border of a cell moves up undivided; there is at most
//! one for each border, because the intervals of a lane do not overlap.
//!
//! A lane needs memory for its open cells only: a few items a level. If even that is too much, all
//! items can be emitted early: several sums of one cell are equivalent to one.

use crate::item::{Interval, Sum};
use crate::level::{self, LOWEST, NEVER, TOP};
use crate::limits;

/// Receives emitted items, each marked with a level M: a tile with cells of 2^K ns needs the item
/// if K < 2M. For each level, items arrive in order of time.
pub(crate) trait Sink {
    fn interval(&mut self, mark: u8, interval: &Interval);
    fn sum(&mut self, mark: u8, sum: &Sum);
}

#[derive(Debug)]
enum Item {
    Interval(Interval),
    Sum(Box<Sum>),
}

impl Item {
    fn begin(&self) -> u64 {
        match self {
            Item::Interval(interval) => interval.begin,
            Item::Sum(sum) => level::begin_of(sum.cell, sum.level),
        }
    }
}

/// A cell that has not ended: its items start at index `start` and end where those of the next open
/// cell start.
#[derive(Debug, Clone, Copy)]
struct Open {
    level: u8,
    start: u32,
}

/// Open cells of one lane, and their items: the largest cell first, in order of time within a cell.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    items: Vec<Item>,
    open: Vec<Open>,
    /// Number of items that are sums.
    sums: usize,
}

impl Tree {
    /// Adds the next interval, which must not start before the previous one ends.
    pub(crate) fn push(&mut self, interval: Interval, sink: &mut impl Sink) {
        let home = level::home(interval.begin, interval.end);
        while let Some(open) = self.open.last() {
            let is_same = |at| level::cell_of(at, open.level);
            if open.level >= home && is_same(self.begin_of(*open)) == is_same(interval.begin) {
                break;
            }
            let meets = level::common(self.begin_of(*open), interval.begin).max(home);
            self.close(meets, sink);
        }
        if self.open.last().is_none_or(|open| open.level > home) {
            self.open.push(Open {
                level: home,
                start: self.items.len() as u32,
            });
        }
        self.items.push(Item::Interval(interval));
        if home == LOWEST {
            self.add_up_early(sink);
        }
    }

    /// Bytes on the heap.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
            + self.open.capacity() * size_of::<Open>()
            + self.sums * size_of::<Sum>()
    }

    /// Emits all items.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        while self.open.last().is_some_and(|open| open.level < TOP) {
            self.close(TOP, sink);
        }
        self.open = Vec::new();
        self.sums = 0;
        for item in std::mem::take(&mut self.items) {
            emit(NEVER, &item, sink);
        }
    }

    fn begin_of(&self, open: Open) -> u64 {
        self.items[open.start as usize].begin()
    }

    /// Closes the smallest open cell. Its remaining items move up to level `up_to`, or into the
    /// next open cell if that is lower.
    fn close(&mut self, up_to: u8, sink: &mut impl Sink) {
        let Some(Open { level, start }) = self.open.pop() else {
            return;
        };
        let items = self.items.len() - start as usize;
        let has_sum = self.starts_with_sum(level, start) && items > 1;
        let mut next = up_to.max(level + 1);
        if items > limits::SEPARATE_ITEMS || has_sum {
            self.add_up(level, start, sink);
        }
        if let Some(parent) = self.open.last() {
            next = next.min(parent.level);
        }
        if self.open.last().is_none_or(|parent| parent.level > next) {
            self.open.push(Open { level: next, start });
        }
    }

    /// Whether the first items of the cell were already summed by `add_up_early`.
    fn starts_with_sum(&self, level: u8, start: u32) -> bool {
        matches!(self.items.get(start as usize), Some(Item::Sum(sum)) if sum.level == level)
    }

    fn add_up(&mut self, level: u8, start: u32, sink: &mut impl Sink) {
        let start = start as usize;
        let cell = level::cell_of(self.items[start].begin(), level);
        let mut all = Sum::none(level, cell);
        for item in self.items.drain(start..) {
            let is_part = matches!(&item, Item::Sum(sum) if sum.level == level);
            if !is_part {
                emit(level, &item, sink);
            }
            match item {
                Item::Interval(interval) => all.add_interval(&interval),
                Item::Sum(sum) => {
                    all.add_sum(&sum);
                    self.sums -= 1;
                }
            }
        }
        self.items.push(Item::Sum(Box::new(all)));
        self.sums += 1;
    }

    /// Bounds the items of a smallest cell, which may contain any number of intervals of zero
    /// length.
    fn add_up_early(&mut self, sink: &mut impl Sink) {
        if let Some(open) = self.open.last().copied()
            && self.items.len() - open.start as usize > limits::CELL_ITEMS_MAX
        {
            self.add_up(open.level, open.start, sink);
        }
    }
}

fn emit(mark: u8, item: &Item, sink: &mut impl Sink) {
    match item {
        Item::Interval(interval) => sink.interval(mark, interval),
        Item::Sum(sum) => sink.sum(mark, sum),
    }
}
