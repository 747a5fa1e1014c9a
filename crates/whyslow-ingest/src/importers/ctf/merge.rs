//! Merges the events of all streams by time.
//!
//! Streams wait in a heap, ordered by the time of their current event. The earliest one is read
//! until another is earlier; at equal times the stream with the lower index is first, and the
//! events of one stream keep their order. So the result depends on the input only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::ops::ControlFlow;

use super::consumer::{Consumer, Progress};
use super::error::CtfError;
use super::stream::{Shared, StreamReader};

/// Time and index of a stream: the sort key of the heap.
type Key = (i64, usize);

pub(super) struct Merge<'a> {
    readers: Vec<StreamReader>,
    shared: Shared<'a>,
    bytes_total: u64,
    delivered: u64,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        readers: Vec<StreamReader>,
        shared: Shared<'a>,
        bytes_total: u64,
    ) -> Merge<'a> {
        Merge {
            readers,
            shared,
            bytes_total,
            delivered: 0,
        }
    }

    /// Number of events delivered to the consumer.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Reads all streams to their ends, or until the consumer stops.
    pub(super) fn run<C: Consumer + ?Sized>(
        &mut self,
        consumer: &mut C,
    ) -> Result<ControlFlow<()>, CtfError> {
        let mut waiting = BinaryHeap::with_capacity(self.readers.len());
        for (index, reader) in self.readers.iter_mut().enumerate() {
            if reader.advance(&mut self.shared)? {
                waiting.push(Reverse((reader.ts(), index)));
            }
        }
        report(&mut self.shared, self.bytes_total, consumer);
        let mut present = waiting.pop();
        while let Some(Reverse((_, index))) = present {
            let next = waiting
                .peek()
                .map_or((i64::MAX, usize::MAX), |Reverse(next)| *next);
            let (flow, key) = self.read_until(index, next, consumer)?;
            if flow.is_break() {
                return Ok(flow);
            }
            present = match key {
                None => waiting.pop(),
                Some(key) => match waiting.peek_mut() {
                    Some(mut first) => Some(mem::replace(&mut *first, Reverse(key))),
                    None => Some(Reverse(key)),
                },
            };
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers events of one stream as long as no other stream is earlier. Returns the time of its
    /// current event, none at its end.
    fn read_until<C: Consumer + ?Sized>(
        &mut self,
        index: usize,
        next: Key,
        consumer: &mut C,
    ) -> Result<(ControlFlow<()>, Option<Key>), CtfError> {
        let reader = &mut self.readers[index];
        loop {
            if reader.decode_body(&mut self.shared)? {
                self.delivered += 1;
                let flow = consumer.event(&reader.event(&self.shared));
                if flow.is_break() {
                    return Ok((flow, None));
                }
            }
            let has_more = reader.advance(&mut self.shared)?;
            if self.shared.report.is_changed {
                report(&mut self.shared, self.bytes_total, consumer);
            }
            if !has_more {
                return Ok((ControlFlow::Continue(()), None));
            }
            let key = (reader.ts(), index);
            if key > next {
                return Ok((ControlFlow::Continue(()), Some(key)));
            }
        }
    }
}

/// Passes on losses and progress.
fn report<C: Consumer + ?Sized>(shared: &mut Shared<'_>, bytes_total: u64, consumer: &mut C) {
    let report = &mut *shared.report;
    report.is_changed = false;
    for loss in report.losses.drain(..) {
        consumer.lost(&loss);
    }
    let bytes_done = report.bytes_done.min(bytes_total);
    consumer.progress(Progress {
        bytes_done,
        bytes_total,
    });
}
