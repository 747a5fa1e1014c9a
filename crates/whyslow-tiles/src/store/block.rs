//! Blocks: items of one lane with the same mark, in order of time.
//!
//! A block starts with its mark, the kind of its items and the lowest level of its sums (a byte
//! each), followed by the number of items, the start time, the duration, the size of the rest in
//! bytes, and the columns of the items. Times are delta-encoded.
//!
//! | kind | columns |
//! |---|---|
//! | interval | gap after the previous end, duration, value, mix |
//! | sum | level, cells since the previous start, count, longest, its value, time of the four groups |
//! | heat map cell | columns since the previous one, octave, rows, ns |
//!
//! The time of a sum is in units of 2^-[`PARTS`] of its cell, which is finer than the shares of a
//! tile.

use crate::item::{Interval, Longest, Mix, Sum, WHOLE};
use crate::level;
use crate::limits;
use crate::store::columns::{self, Cursor, put, zigzag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Interval = 0,
    Sum = 1,
    Heat = 2,
}

/// Time units of a cell, as a power of two.
const PARTS: u8 = 12;

const INTERVAL: usize = 4;
const SUM: usize = 9;
const HEAT: usize = 4;

/// Rows in one column of a heat map with durations in the same octave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeatItem {
    pub(crate) column: u64,
    pub(crate) octave: u8,
    pub(crate) count: u64,
    pub(crate) intensity: u64,
}

/// Items of a block that is not full yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) mark: u8,
    pub(crate) kind: ItemKind,
    /// Lowest level of the sums: only tiles at least as coarse can use them.
    pub(crate) finest: u8,
    items: u32,
    pub(crate) first: u64,
    reached: u64,
    pub(crate) end: u64,
    records: Vec<u8>,
}

impl Pending {
    pub(crate) fn new(mark: u8, kind: ItemKind) -> Self {
        Self {
            mark,
            kind,
            finest: if kind == ItemKind::Sum { u8::MAX } else { 0 },
            items: 0,
            first: 0,
            reached: 0,
            end: 0,
            records: Vec::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items >= limits::BLOCK_ITEMS || self.records.len() >= limits::BLOCK_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Memory size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.records.capacity()
    }

    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.begin(interval.begin);
        let mix = match interval.mix {
            Mix::Of(group) => u64::from(group),
            Mix::Parts(second, third) => 4 + (u64::from(second) | u64::from(third) << 8),
        };
        self.record([
            interval.begin - self.reached,
            interval.end - interval.begin,
            zigzag(i64::from(interval.value)),
            mix,
        ]);
        self.reached = interval.end;
        self.end = self.end.max(interval.end);
    }

    pub(crate) fn sum(&mut self, sum: &Sum) {
        let begin = level::begin_of(sum.cell, sum.level);
        self.begin(begin);
        self.finest = self.finest.min(sum.level);
        let unit = WHOLE << unit_bits(sum.level);
        let [a, b, c, d] = sum
            .times
            .map(|time| time / unit + (time % unit) / unit.div_ceil(2));
        self.record([
            u64::from(sum.level),
            sum.cell - level::cell_of(self.reached, sum.level),
            sum.count,
            sum.longest.length,
            zigzag(i64::from(sum.longest.value)),
            a,
            b,
            c,
            d,
        ]);
        self.reached = begin;
        let length = 1 << (2 * sum.level);
        self.end = self.end.max(begin.saturating_add(length));
    }

    pub(crate) fn heat(&mut self, item: &HeatItem) {
        self.begin(item.column);
        self.record([
            item.column - self.reached,
            u64::from(item.octave),
            item.count,
            item.intensity,
        ]);
        self.reached = item.column;
        self.end = self.end.max(item.column.saturating_add(1));
    }

    fn begin(&mut self, first: u64) {
        if self.items == 0 {
            (self.first, self.reached, self.end) = (first, first, first);
        }
        self.items += 1;
    }

    fn record<const N: usize>(&mut self, numbers: [u64; N]) {
        for number in numbers {
            put(&mut self.records, number);
        }
    }

    /// Appends the encoded block, and clears it.
    pub(crate) fn encode(&mut self, block: &mut Vec<u8>) {
        block.extend([self.mark, self.kind as u8, self.finest]);
        put(block, u64::from(self.items));
        put(block, self.first);
        put(block, self.end - self.first);
        match self.kind {
            ItemKind::Interval => append::<INTERVAL>(&self.records, block),
            ItemKind::Sum => append::<SUM>(&self.records, block),
            ItemKind::Heat => append::<HEAT>(&self.records, block),
        }
        *self = Self {
            records: std::mem::take(&mut self.records),
            ..Self::new(self.mark, self.kind)
        };
        self.records.clear();
    }
}

/// Time unit of sums of a level, as a power of two in ns.
fn unit_bits(level: u8) -> u8 {
    (2 * level).saturating_sub(PARTS)
}

fn append<const N: usize>(records: &[u8], block: &mut Vec<u8>) {
    let mut columns = [const { Vec::new() }; N];
    columns::transpose(records, &mut columns);
    let mut lengths = Vec::new();
    for column in &columns {
        put(&mut lengths, column.len() as u64);
    }
    put(block, (lengths.len() + records.len()) as u64);
    block.extend(lengths);
    for column in &columns {
        block.extend_from_slice(column);
    }
}

/// A decoded block header with its encoded items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'b> {
    pub(crate) mark: u8,
    pub(crate) kind: ItemKind,
    pub(crate) finest: u8,
    items: u64,
    pub(crate) first: u64,
    pub(crate) end: u64,
    content: Cursor<'b>,
}

impl<'b> Block<'b> {
    /// Reads the next block of a segment. `None` at the end, or if it is damaged.
    pub(crate) fn next(segment: &mut Cursor<'b>) -> Option<Self> {
        let mark = segment.byte()?;
        let kind = match segment.byte()? {
            0 => ItemKind::Interval,
            1 => ItemKind::Sum,
            2 => ItemKind::Heat,
            _ => return None,
        };
        let finest = segment.byte()?;
        let items = segment.number()?;
        let first = segment.number()?;
        let end = first.checked_add(segment.number()?)?;
        let length = usize::try_from(segment.number()?).ok()?;
        Some(Self {
            mark,
            kind,
            finest,
            items,
            first,
            end,
            content: Cursor(segment.take(length)?),
        })
    }

    /// Visits the intervals that start before `until`. `None` if the block is damaged.
    pub(crate) fn intervals(mut self, until: u64, each: &mut impl FnMut(&Interval)) -> Option<()> {
        let [mut gaps, mut lengths, mut values, mut mixes] =
            columns::split::<INTERVAL>(&mut self.content)?;
        let mut reached = self.first;
        for _ in 0..self.items {
            let begin = reached.checked_add(gaps.number()?)?;
            if begin >= until {
                break;
            }
            let end = begin.checked_add(lengths.number()?)?;
            let mix = match mixes.number()? {
                group @ 0..4 => Mix::Of(group as u8),
                parts => {
                    let parts = u16::try_from(parts - 4).ok()?;
                    Mix::Parts(parts as u8, (parts >> 8) as u8)
                }
            };
            each(&Interval {
                begin,
                end,
                value: i32::try_from(values.signed()?).ok()?,
                mix,
            });
            reached = end;
        }
        Some(())
    }

    /// Visits the sums whose cell starts before `until`. `None` if the block is damaged.
    pub(crate) fn sums(mut self, until: u64, each: &mut impl FnMut(&Sum)) -> Option<()> {
        let [mut levels, mut cells, mut rest @ ..] = columns::split::<SUM>(&mut self.content)?;
        let mut reached = self.first;
        for _ in 0..self.items {
            let level = u8::try_from(levels.number()?).ok()?;
            if !(level::LOWEST..level::TOP).contains(&level) {
                return None;
            }
            let cell = level::cell_of(reached, level).checked_add(cells.number()?)?;
            if cell > level::cell_of(u64::MAX, level) {
                return None;
            }
            if level::begin_of(cell, level) >= until {
                break;
            }
            let [counts, lengths, values, times @ ..] = &mut rest;
            let mut sum = Sum {
                level,
                cell,
                count: counts.number()?,
                longest: Longest {
                    length: lengths.number()?,
                    value: i32::try_from(values.signed()?).ok()?,
                },
                times: [0; 4],
            };
            for (time, column) in sum.times.iter_mut().zip(times) {
                *time = column.number()?.checked_mul(WHOLE << unit_bits(level))?;
            }
            each(&sum);
            reached = level::begin_of(cell, level);
        }
        Some(())
    }

    /// Visits the heat map cells. `None` if the block is damaged.
    pub(crate) fn heat(mut self, each: &mut impl FnMut(HeatItem)) -> Option<()> {
        let [mut columns, mut octaves, mut counts, mut intensities] =
            columns::split::<HEAT>(&mut self.content)?;
        let mut reached = self.first;
        for _ in 0..self.items {
            reached = reached.checked_add(columns.number()?)?;
            each(HeatItem {
                column: reached,
                octave: u8::try_from(octaves.number()?).ok()?,
                count: counts.number()?,
                intensity: intensities.number()?,
            });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(bytes: &[u8], kind: Option<u8>) {
        let mut bytes = bytes.to_vec();
        if let (Some(kind), Some(place)) = (kind, bytes.get_mut(1)) {
            *place = kind;
        }
        let mut rest = Cursor(&bytes);
        while let Some(block) = Block::next(&mut rest) {
            let _ = block.intervals(u64::MAX, &mut |_| ());
            let _ = block.sums(u64::MAX, &mut |_| ());
            let _ = block.heat(&mut |_| ());
        }
    }

    fn intervals() -> impl Strategy<Value = Vec<Interval>> {
        let mix = prop_oneof![
            (0u8..4).prop_map(Mix::Of),
            (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Mix::Parts(a, b)),
        ];
        let one = (0u64..1 << 50, 0u64..1 << 50, any::<i32>(), mix);
        proptest::collection::vec(one, 1..30).prop_map(|drawn| {
            let mut at = 0;
            let interval = |(gap, length, value, mix)| {
                let begin = at + gap;
                at = begin + length;
                Interval {
                    begin,
                    end: at,
                    value,
                    mix,
                }
            };
            drawn.into_iter().map(interval).collect()
        })
    }

    proptest! {
        #[test]
        fn intervals_come_back(intervals in intervals()) {
            let mut pending = Pending::new(9, ItemKind::Interval);
            for interval in &intervals {
                pending.interval(interval);
            }
            let mut bytes = Vec::new();
            pending.encode(&mut bytes);
            let mut rest = Cursor(&bytes);
            let block = Block::next(&mut rest).expect("a block");
            prop_assert!(rest.0.is_empty());
            let first = intervals.first().map(|interval| interval.begin);
            prop_assert_eq!((block.mark, Some(block.first)), (9, first));
            prop_assert_eq!(Some(block.end), intervals.last().map(|interval| interval.end));
            let mut read = Vec::new();
            block.intervals(u64::MAX, &mut |interval| read.push(*interval)).expect("whole");
            prop_assert_eq!(read, intervals);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, kind in proptest::option::of(0u8..3)) {
            read_all(&bytes, kind);
        }

        #[test]
        fn any_change_is_survived(intervals in intervals(), at: usize, change: u8, kind in 0u8..3) {
            let mut pending = Pending::new(9, ItemKind::Interval);
            for interval in &intervals {
                pending.interval(interval);
            }
            let mut bytes = Vec::new();
            pending.encode(&mut bytes);
            let at = at % bytes.len();
            bytes[at] ^= change;
            read_all(&bytes, Some(kind));
            read_all(&bytes[..at], None);
        }
    }
}
