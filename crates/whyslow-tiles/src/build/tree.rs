//! Which items of a lane are told apart at which scale, decided as they come in order of time.
//!
//! An interval is at home in the smallest cell (of powers of four) that holds it. When such a cell is
//! over and holds more than a few items, these are handed on, marked with the level of the cell, and
//! one sum stands for them in the cell above; else they move up one by one. So each interval is
//! handed on once, each sum is made of at least four items, and a tile, whatever its level, has at
//! most a few items for each of its cells: those marked with a level above its own, without sums of
//! larger cells than its own (what these stand for is marked higher than the tile's level, too).
//! What lies across the border of a cell moves on up undivided; there is one such interval a border
//! at most, as intervals of a lane do not overlap.
//!
//! Memory of a lane is that of the cells that are not over: a few items a level. Where even that is
//! too much, everything can be handed on early: several sums of one cell are as good as one.

use crate::item::{Interval, Sum};
use crate::level::{self, LOWEST, NEVER, TOP};
use crate::limits;

/// Takes what is handed on, marked with a level: a tile of cells of 2^K ns needs it if K is less than
/// twice that. In order of time for each level.
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

/// A cell that is not over: its items are those from `start` on, up to those of the next one.
#[derive(Debug, Clone, Copy)]
struct Open {
    level: u8,
    start: u32,
}

/// Of one lane: items of all open cells, the largest cell first, and in each in order of time.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    items: Vec<Item>,
    open: Vec<Open>,
    /// How many of the items are sums.
    sums: usize,
}

impl Tree {
    /// The next interval: it begins where the one before ends, or later.
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

    /// Hands on everything.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        while self.open.last().is_some_and(|open| open.level < TOP) {
            self.close(TOP, sink);
        }
        self.open = Vec::new();
        self.sums = 0;
        for item in std::mem::take(&mut self.items) {
            hand_on(NEVER, &item, sink);
        }
    }

    fn begin_of(&self, open: Open) -> u64 {
        self.items[open.start as usize].begin()
    }

    /// Ends the smallest open cell. What is left of it moves up to that level, or into the next open
    /// cell below that.
    fn close(&mut self, up_to: u8, sink: &mut impl Sink) {
        let Some(Open { level, start }) = self.open.pop() else {
            return;
        };
        let items = self.items.len() - start as usize;
        let is_begun = self.begun(level, start) && items > 1;
        let mut next = up_to.max(level + 1);
        if items > limits::APART || is_begun {
            self.add_up(level, start, sink);
        }
        if let Some(parent) = self.open.last() {
            next = next.min(parent.level);
        }
        if self.open.last().is_none_or(|parent| parent.level > next) {
            self.open.push(Open { level: next, start });
        }
    }

    /// Whether the cell's first items were added up already, because there were so many.
    fn begun(&self, level: u8, start: u32) -> bool {
        matches!(self.items.get(start as usize), Some(Item::Sum(sum)) if sum.level == level)
    }

    fn add_up(&mut self, level: u8, start: u32, sink: &mut impl Sink) {
        let start = start as usize;
        let cell = level::cell_of(self.items[start].begin(), level);
        let mut all = Sum::none(level, cell);
        for item in self.items.drain(start..) {
            let is_part = matches!(&item, Item::Sum(sum) if sum.level == level);
            if !is_part {
                hand_on(level, &item, sink);
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

    /// Any number of intervals without length may lie in a smallest cell.
    fn add_up_early(&mut self, sink: &mut impl Sink) {
        if let Some(open) = self.open.last().copied()
            && self.items.len() - open.start as usize > limits::HELD
        {
            self.add_up(open.level, open.start, sink);
        }
    }
}

fn hand_on(mark: u8, item: &Item, sink: &mut impl Sink) {
    match item {
        Item::Interval(interval) => sink.interval(mark, interval),
        Item::Sum(sum) => sink.sum(mark, sum),
    }
}
