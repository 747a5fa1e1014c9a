//! The kernel's ring buffers, from which records are taken in portions: a poll ends even if
//! programs write faster than it reads, so that the rest of the loop runs.
//!
//! A *round* takes what the rings held when it started. A ring never holds more than its capacity:
//! once that much was taken from it, or it was found empty, all that it held at the start has
//! arrived. A poll continues the round of the previous one, if that did not complete.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use crate::block_writer::BlockWriter;
use crate::clock;
use crate::error::RecordError;

/// Bytes taken from a ring before the next one.
const PORTION_BYTES: u64 = 256 << 10;
/// Maximum duration of a poll.
const POLL_MAX: Duration = Duration::from_millis(50);
/// Size of the kernel's header before each record, and alignment of records.
const RECORD_HEAD_BYTES: u64 = 8;
/// Makes libbpf stop.
const ENOUGH: i32 = -1;

pub(crate) struct Rings {
    each: Vec<One>,
    sink: Rc<RefCell<BlockWriter>>,
    round: Round,
}

struct One {
    ring: RingBuffer<'static>,
    /// Bytes taken in the current portion.
    taken: Rc<Cell<u64>>,
}

impl Rings {
    pub(crate) fn new(
        maps: &[MapHandle],
        bytes_each: u64,
        sink: &Rc<RefCell<BlockWriter>>,
    ) -> Result<Self, RecordError> {
        let one = |map: &MapHandle| {
            let taken = Rc::new(Cell::new(0));
            let (count, sink) = (Rc::clone(&taken), Rc::clone(sink));
            let take = move |record: &[u8]| {
                let bytes = (record.len() as u64).next_multiple_of(RECORD_HEAD_BYTES);
                count.set(count.get() + RECORD_HEAD_BYTES + bytes);
                let result = sink.borrow_mut().take(record);
                if count.get() >= PORTION_BYTES {
                    return ENOUGH;
                }
                result
            };
            let mut builder = RingBufferBuilder::new();
            builder.add(map, take).map_err(RecordError::Buffer)?;
            let ring = builder.build().map_err(RecordError::Buffer)?;
            Ok(One { ring, taken })
        };
        Ok(Self {
            each: maps.iter().map(one).collect::<Result<_, _>>()?,
            sink: Rc::clone(sink),
            round: Round::new(maps.len(), bytes_each),
        })
    }

    /// Takes records for a limited time; returns the time up to which they are complete, if the
    /// rings were emptied.
    pub(crate) fn poll(&mut self) -> Result<Option<u64>, RecordError> {
        let end = Instant::now() + POLL_MAX;
        let (rings, sink) = (&self.each, &self.sink);
        let portion = |ring: usize| rings[ring].portion(sink);
        let is_over = || Instant::now() >= end;
        self.round.poll(clock::monotonic(), portion, is_over)
    }

    /// Takes everything that has arrived until now; returns the time up to which that is complete.
    pub(crate) fn empty(&mut self) -> Result<u64, RecordError> {
        let begun = clock::monotonic();
        loop {
            if let Some(until) = self.poll()?.filter(|until| *until >= begun) {
                return Ok(until);
            }
        }
    }
}

/// What was taken from a ring.
struct Portion {
    bytes: u64,
    /// The ring was empty.
    is_empty: bool,
}

impl One {
    fn portion(&self, sink: &RefCell<BlockWriter>) -> Result<Portion, RecordError> {
        self.taken.set(0);
        let result = self.ring.consume_raw();
        let bytes = self.taken.get();
        let is_enough = bytes >= PORTION_BYTES;
        if result < 0 && !is_enough && sink.borrow().failed.is_none() {
            let error = libbpf_rs::Error::from_raw_os_error(-result);
            return Err(RecordError::Consume(error));
        }
        Ok(Portion {
            bytes,
            is_empty: !is_enough,
        })
    }
}

#[derive(Debug)]
struct Round {
    /// Capacity of each ring.
    capacity: u64,
    /// Maximum still to be taken from each ring.
    left: Vec<u64>,
    /// When the round started.
    until: u64,
}

impl Round {
    fn new(rings: usize, capacity: u64) -> Self {
        Self {
            capacity,
            left: vec![0; rings],
            until: 0,
        }
    }

    fn poll<E>(
        &mut self,
        now: u64,
        mut portion: impl FnMut(usize) -> Result<Portion, E>,
        mut is_over: impl FnMut() -> bool,
    ) -> Result<Option<u64>, E> {
        if self.left.iter().all(|left| *left == 0) {
            self.left.fill(self.capacity);
            self.until = now;
        }
        loop {
            for (ring, left) in self.left.iter_mut().enumerate() {
                if *left > 0 {
                    let Portion { bytes, is_empty } = portion(ring)?;
                    *left = if is_empty {
                        0
                    } else {
                        left.saturating_sub(bytes)
                    };
                }
            }
            if self.left.iter().all(|left| *left == 0) {
                return Ok(Some(self.until));
            }
            if is_over() {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Polled = Result<Option<u64>, ()>;

    /// Polls rings that hold `held`, for a number of iterations; `None` is a ring that never
    /// empties.
    fn poll(
        round: &mut Round,
        now: u64,
        held: &mut [Option<u64>],
        iterations: u32,
    ) -> (Polled, u64) {
        let (mut taken, mut iteration) = (0, 0);
        let portion = |ring: usize| {
            let held: &mut Option<u64> = &mut held[ring];
            let bytes = held.map_or(10, |held| held.min(10));
            *held = held.map(|held| held - bytes);
            taken += bytes;
            Ok(Portion {
                bytes,
                is_empty: *held == Some(0),
            })
        };
        let is_over = || {
            iteration += 1;
            iteration >= iterations
        };
        let polled = round.poll(now, portion, is_over);
        (polled, taken)
    }

    #[test]
    fn a_flood_ends_a_look_and_keeps_no_other_ring_waiting() {
        let mut round = Round::new(3, 100);
        let mut held = [None, Some(25), Some(0)];
        assert_eq!(poll(&mut round, 7, &mut held, 2), (Ok(None), 40));
        // The round is that of the first poll.
        assert_eq!(poll(&mut round, 8, &mut held, 7), (Ok(None), 75));
        assert_eq!(held[1], Some(0));
        // The most that it can have held when the round started.
        assert_eq!(poll(&mut round, 9, &mut held, 99), (Ok(Some(7)), 10));
        assert_eq!(poll(&mut round, 10, &mut held, 99), (Ok(Some(10)), 100));
    }

    #[test]
    fn rings_that_are_empty_are_done_with_at_once() {
        let mut round = Round::new(2, 1 << 20);
        for now in 1..4 {
            let polled = poll(&mut round, now, &mut [Some(3), Some(0)], 1);
            assert_eq!(polled, (Ok(Some(now)), 3));
        }
    }

    #[test]
    fn what_fails_is_told() {
        let mut round = Round::new(2, 100);
        let polled = round.poll(1, |_| Err("torn"), || false);
        assert_eq!(polled, Err("torn"));
    }
}
