//! Sorts records by time.
//!
//! perf writes the buffers of all CPUs one after the other, and marks the end of each such round:
//! records after the next mark are not older than records before this one.
//!
//! A file may have no marks, or few: pending records are limited in memory, and beyond the limit
//! the earliest is passed on.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::record::Header;

/// Of all pending records.
const BYTES_MAX: usize = 512 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// In the clock of the records.
    pub(super) ts: u64,
    number: u64,
    pub(super) header: Header,
    /// Index of the event's attributes.
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

#[derive(Debug)]
pub(super) struct Order {
    heap: BinaryHeap<Pending>,
    /// Size of the pending records, and its limit.
    bytes: usize,
    bytes_max: usize,
    /// Records that were passed on before it was certain that none of the following ones is
    /// earlier.
    pub(super) sorted_early: u64,
    number: u64,
    latest: u64,
    /// Records up to this time are in order.
    until: Option<u64>,
    /// The latest time when the last round ended.
    latest_before: Option<u64>,
}

impl Default for Order {
    fn default() -> Self {
        Self::within(BYTES_MAX)
    }
}

impl Order {
    fn within(bytes_max: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            bytes: 0,
            bytes_max,
            sorted_early: 0,
            number: 0,
            latest: 0,
            until: None,
            latest_before: None,
        }
    }

    pub(super) fn add(&mut self, ts: u64, header: Header, attr: usize, body: Box<[u8]>) {
        self.latest = self.latest.max(ts);
        self.bytes += cost(&body);
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

    /// All records were added.
    pub(super) fn end(&mut self) {
        self.until = Some(u64::MAX);
    }

    /// Timestamp of the next record, if one is ready.
    pub(super) fn ready(&self) -> Option<u64> {
        let first = self.heap.peek()?.ts;
        let is_due = self.until.is_some_and(|until| first <= until);
        (is_due || self.bytes > self.bytes_max).then_some(first)
    }

    pub(super) fn next(&mut self) -> Option<Pending> {
        let first = self.ready()?;
        self.sorted_early += u64::from(self.until.is_none_or(|until| first > until));
        let next = self.heap.pop()?;
        self.bytes -= cost(&next.body);
        Some(next)
    }
}

/// Memory use of a record.
fn cost(body: &[u8]) -> usize {
    size_of::<Pending>() + body.len()
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
        assert_eq!((order.bytes, order.sorted_early), (0, 0));
    }

    #[test]
    fn what_waits_is_bounded_where_nothing_ends_a_round() {
        let header = Header {
            kind: 9,
            misc: 0,
            size: 8,
        };
        let body = || vec![0; 100].into_boxed_slice();
        let mut order = Order::within(3 * cost(&body()));
        let mut out = Vec::new();
        for ts in [5, 3, 4, 2, 9, 8, 7, 6] {
            order.add(ts, header, 0, body());
            while let Some(next) = order.next() {
                out.push(next.ts);
            }
            assert!(order.bytes <= order.bytes_max);
        }
        assert_eq!(
            (out.as_slice(), order.sorted_early),
            (&[2, 3, 4, 5, 6][..], 5)
        );
        order.end();
        while let Some(next) = order.next() {
            out.push(next.ts);
        }
        assert_eq!((out[5..].to_vec(), order.sorted_early), (vec![7, 8, 9], 5));
    }
}
