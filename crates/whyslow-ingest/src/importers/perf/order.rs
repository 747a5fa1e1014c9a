//! Records in the order of their times.
//!
//! perf writes what each CPU's buffer holds one after the other, and marks the end of each such round: what
//! comes after the next mark is not older than what came before this one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::record::Header;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// By the clock of the records.
    pub(super) ts: u64,
    number: u64,
    pub(super) header: Header,
    /// Place of the event's description.
    pub(super) attr: usize,
    pub(super) body: Box<[u8]>,
}

impl Ord for Pending {
    /// The greatest is the one that comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.ts, other.number).cmp(&(self.ts, self.number))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Default)]
pub(super) struct Order {
    heap: BinaryHeap<Pending>,
    number: u64,
    latest: u64,
    /// What is not later than that is in order.
    until: Option<u64>,
    /// The latest when the last round ended.
    latest_before: Option<u64>,
}

impl Order {
    pub(super) fn add(&mut self, ts: u64, header: Header, attr: usize, body: Box<[u8]>) {
        self.latest = self.latest.max(ts);
        self.heap.push(Pending {
            ts,
            number: self.number,
            header,
            attr,
            body,
        });
        self.number += 1;
    }

    pub(super) fn end_round(&mut self) {
        self.until = self.latest_before;
        self.latest_before = Some(self.latest);
    }

    /// No more come.
    pub(super) fn end(&mut self) {
        self.until = Some(u64::MAX);
    }

    /// When the next in order happened, if one is ready.
    pub(super) fn ready(&self) -> Option<u64> {
        let first = self.heap.peek()?.ts;
        self.until.filter(|until| first <= *until).map(|_| first)
    }

    pub(super) fn next(&mut self) -> Option<Pending> {
        self.ready()?;
        self.heap.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_merged() {
        let header = Header {
            kind: 9,
            misc: 0,
            size: 8,
        };
        let mut order = Order::default();
        let mut out = Vec::new();
        let rounds: [&[u64]; 3] = [&[1, 5, 2, 9], &[6, 11, 10], &[12, 12, 10]];
        for round in rounds {
            for ts in round {
                order.add(*ts, header, 0, Box::default());
            }
            order.end_round();
            while let Some(next) = order.next() {
                out.push(next.ts);
            }
        }
        assert_eq!(out, [1, 2, 5, 6, 9, 10, 10, 11]);
        order.end();
        while let Some(next) = order.next() {
            out.push(next.ts);
        }
        assert_eq!(out[8..], [12, 12]);
    }
}
