//! Recent records in memory: blocks of a spool that is written only on demand.
//!
//! The ring is a series of chapters. Each starts like a spool: with the clocks, the calls in
//! progress and a snapshot. So the oldest chapter can be dropped at any time, and the rest is a
//! recording.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use whyslow_model::spool::{ELSEWHERE, Encoder, Kind};

use crate::memory::KEPT_BYTES_MIN;
use crate::packed::{Packed, Packer};
use crate::saving::SaveRequest;
use crate::spool::SpoolWriter;
use crate::when::Trigger;

/// A chapter is full at this fraction of the memory, regardless of its duration: chapters are
/// dropped as a whole.
const CHAPTERS: u64 = 6;

/// Where a block belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Start of a chapter; a spool only needs that of its first chapter.
    Head,
    Snapshot,
    Events,
}

#[derive(Debug)]
struct Chapter {
    begin: u64,
    /// Head, then snapshot.
    first: Vec<Arc<Packed>>,
    events: VecDeque<Arc<Packed>>,
    bytes: u64,
    /// Records dropped between the snapshot and the first block, and the time of the last one.
    dropped: (u64, u64),
}

#[derive(Debug)]
pub(crate) struct Ring {
    chapters: VecDeque<Chapter>,
    /// How far back the ring is to reach.
    length: Duration,
    bytes_max: u64,
    bytes: u64,
    /// Start of the very first chapter.
    began: u64,
}

impl Ring {
    pub(crate) fn new(length: Duration, bytes_max: u64) -> Self {
        Self {
            chapters: VecDeque::new(),
            length,
            bytes_max,
            bytes: 0,
            began: u64::MAX,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Time since which the ring is complete.
    pub(crate) fn begin(&self) -> Option<u64> {
        let first = self.chapters.front()?;
        Some(first.begin.max(first.dropped.1))
    }

    pub(crate) fn begin_chapter(&mut self, now: u64) {
        self.began = self.began.min(now);
        self.chapters.push_back(Chapter {
            begin: now,
            first: Vec::new(),
            events: VecDeque::new(),
            bytes: 0,
            dropped: (0, 0),
        });
        self.forget(now);
    }

    /// Whether the current chapter is complete.
    pub(crate) fn is_chapter_full(&self) -> bool {
        let last = self.chapters.back();
        last.is_some_and(|last| last.bytes >= self.bytes_max / CHAPTERS)
    }

    pub(crate) fn push(&mut self, part: Part, block: Arc<Packed>) {
        let Some(chapter) = self.chapters.back_mut() else {
            return;
        };
        let bytes = block.bytes();
        chapter.bytes += bytes;
        self.bytes += bytes;
        match part {
            Part::Head | Part::Snapshot => chapter.first.push(block),
            Part::Events => chapter.events.push_back(block),
        }
        self.shrink();
    }

    /// Lowers the memory limit, down to a minimum.
    pub(crate) fn give_up(&mut self, bytes: u64) {
        let least = self.bytes_max.min(KEPT_BYTES_MIN);
        self.bytes_max = self.bytes_max.saturating_sub(bytes).max(least);
        self.shrink();
    }

    /// Drops chapters older than the requested time.
    pub(crate) fn forget(&mut self, now: u64) {
        let since = now.saturating_sub(self.length.as_nanos() as u64);
        while self.chapters.get(1).is_some_and(|next| next.begin <= since) {
            self.drop_chapter();
        }
    }

    fn drop_chapter(&mut self) {
        if let Some(chapter) = self.chapters.pop_front() {
            self.bytes -= chapter.bytes;
        }
    }

    /// Drops what exceeds the memory limit, oldest first.
    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            if self.chapters.len() > 1 {
                self.drop_chapter();
                continue;
            }
            let Some(only) = self.chapters.front_mut() else {
                return;
            };
            let Some(block) = only.events.pop_front() else {
                return;
            };
            let (count, until) = only.dropped;
            let records = u64::from(block.records);
            only.dropped = (count + records, until.max(block.complete_until));
            only.bytes -= block.bytes();
            self.bytes -= block.bytes();
        }
    }

    /// Everything kept, for a spool.
    pub(crate) fn window(&self, now: u64, trigger: Trigger) -> Window {
        let mut window = Window {
            trigger,
            requests: Vec::new(),
            begin: self.begin().unwrap_or(now),
            end: now,
            wanted: self.length,
            is_all: self.begin() <= Some(self.began),
            dropped: (0, 0, 0),
            first: Vec::new(),
            events: Vec::new(),
        };
        if let Some(first) = self.chapters.front() {
            let (count, until) = first.dropped;
            window.dropped = (count, first.begin, until);
            window.first.extend(first.first.iter().cloned());
        }
        let events = self.chapters.iter().flat_map(|chapter| &chapter.events);
        window.events.extend(events.cloned());
        window
    }
}

/// Records around a trigger; writing them does not affect the running recording.
#[derive(Debug)]
pub struct Window {
    /// Why it was saved.
    pub trigger: Trigger,
    /// Processes that wait for it.
    pub requests: Vec<SaveRequest>,
    begin: u64,
    end: u64,
    wanted: Duration,
    /// Nothing was recorded before it.
    is_all: bool,
    /// Records dropped for lack of memory, and their time range.
    dropped: (u64, u64, u64),
    first: Vec<Arc<Packed>>,
    events: Vec<Arc<Packed>>,
}

impl Window {
    /// Size of the resulting spool in bytes.
    pub fn bytes(&self) -> u64 {
        let blocks = self.first.iter().chain(&self.events);
        blocks.map(|block| block.bytes()).sum()
    }

    /// Time that it covers.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.begin))
    }

    /// The requested time, if memory did not suffice for it.
    pub fn cut(&self) -> Option<Duration> {
        (!self.is_all && self.length() < self.wanted).then_some(self.wanted)
    }

    /// Writes it as a spool.
    pub fn write(&self, spool: &Path) -> io::Result<()> {
        let mut writer = SpoolWriter::create(spool, u64::MAX)?;
        let mut packer = Packer::new()?;
        let (head, snapshot) = self.first.split_at(self.first.len().min(1));
        for block in head {
            writer.write(block)?;
        }
        let begin = head.first().map_or(0, |head| head.complete_until);
        let mut encoder = Encoder::default();
        self.trigger.write(&mut encoder, self.begin);
        self.write_dropped(&mut encoder);
        writer.write(&packer.pack_all(&encoder, begin)?)?;
        for block in snapshot.iter().chain(&self.events) {
            writer.write(block)?;
        }
        encoder.clear();
        writer.write(&packer.pack_all(&encoder, u64::MAX)?)?;
        writer.sync()
    }

    /// Writes what was dropped for lack of memory.
    fn write_dropped(&self, encoder: &mut Encoder) {
        let (count, from, to) = self.dropped;
        if count > 0 {
            encoder
                .begin_on(Kind::Lost, from, (0, 0), (0, ELSEWHERE))
                .u64(from)
                .u64(to)
                .u64(count)
                .end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ring(seconds: u64, bytes_max: u64) -> Ring {
        Ring::new(Duration::from_secs(seconds), bytes_max)
    }

    /// A block of about this size that does not compress.
    fn block(ts: u64, bytes: usize) -> Arc<Packed> {
        let mut noise = ts | 1;
        let payload: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (noise >> 56) as u8
        })
        .take(bytes)
        .collect();
        Arc::new(Packer::new().unwrap().pack(&payload, 10, ts).unwrap())
    }

    fn trigger() -> Trigger {
        Trigger::requested(1)
    }

    #[test]
    fn chapters_are_dropped_when_the_next_one_reaches_far_enough() {
        let mut ring = ring(10, 1 << 20);
        for second in 0..30 {
            if second % 4 == 0 {
                ring.begin_chapter(second * SECOND);
                ring.push(Part::Head, block(second * SECOND, 100));
                ring.push(Part::Snapshot, block(second * SECOND, 100));
            }
            ring.push(Part::Events, block(second * SECOND, 1000));
            ring.forget(second * SECOND);
            let begin = ring.begin().unwrap();
            let since = (second * SECOND).saturating_sub(10 * SECOND);
            assert!(begin <= since && since - begin < 4 * SECOND || since == 0);
        }
        let window = ring.window(29 * SECOND, trigger());
        assert_eq!(window.begin, 16 * SECOND);
        assert_eq!((window.first.len(), window.events.len()), (2, 14));
        assert_eq!(window.cut(), None);
    }

    #[test]
    fn memory_is_bounded_and_what_it_cost_is_told() {
        let mut ring = ring(1000, 100_000);
        let mut chapters = 0;
        for second in 0..200 {
            if second == 0 || ring.is_chapter_full() {
                ring.begin_chapter(second * SECOND);
                ring.push(Part::Head, block(second * SECOND, 100));
                chapters += 1;
            }
            ring.push(Part::Events, block(second * SECOND, 2000));
            assert!(ring.bytes() <= 100_000);
        }
        assert!(chapters > 6, "{chapters}");
        let kept = 200 - ring.begin().unwrap() / SECOND;
        assert!((30..=50).contains(&kept), "{kept}");
    }

    #[test]
    fn memory_that_is_given_up_is_not_taken_again() {
        let mut ring = ring(1000, 3 * KEPT_BYTES_MIN);
        for second in 0..200 {
            if second % 10 == 0 {
                ring.begin_chapter(second * SECOND);
            }
            ring.push(Part::Events, block(second * SECOND, 100_000));
            match second {
                100 => ring.give_up(KEPT_BYTES_MIN),
                150 => ring.give_up(u64::MAX),
                _ => {}
            }
            let max = [3, 2, 1][usize::from(second >= 100) + usize::from(second >= 150)];
            assert!(ring.bytes() <= max * KEPT_BYTES_MIN);
        }
        assert!(ring.bytes() > KEPT_BYTES_MIN / 2);
    }

    #[test]
    fn a_chapter_that_is_too_large_loses_its_oldest_blocks() {
        let mut ring = ring(1000, 10_000);
        ring.begin_chapter(0);
        ring.push(Part::Head, block(0, 100));
        for second in 1..100 {
            ring.push(Part::Events, block(second * SECOND, 2000));
            assert!(ring.bytes() <= 10_000);
        }
        let window = ring.window(100 * SECOND, trigger());
        assert_eq!(window.first.len(), 1);
        assert_eq!(window.events.len(), 4);
        assert_eq!(window.dropped, (95 * 10, 0, 95 * SECOND));
        assert_eq!(window.cut(), Some(Duration::from_secs(1000)));
        assert_eq!(window.length(), Duration::from_secs(5));
    }
}
