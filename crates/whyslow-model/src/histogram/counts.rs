//! Number of values in each bucket.
//!
//! Answers with many groups have many histograms, and accesses to them are random: the cost of
//! counting is memory latency. Counts are therefore small, and the overflow is stored separately.

use std::collections::BTreeMap;

use super::SUB_BITS;

/// Maximum of a small count, plus one.
const CARRY: u64 = 1 << 16;

/// Counts of the buckets `first..`.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    first: usize,
    low: Vec<u16>,
    /// Overflow by bucket, in units of [`CARRY`].
    high: BTreeMap<usize, u64>,
}

impl Counts {
    #[inline]
    pub(super) fn add_one(&mut self, bucket: usize) {
        if bucket >= self.first
            && let Some(place) = self.low.get_mut(bucket - self.first)
            && let Some(more) = place.checked_add(1)
        {
            *place = more;
            return;
        }
        self.add(bucket, 1);
    }

    #[inline(never)]
    pub(super) fn add(&mut self, bucket: usize, count: u64) {
        self.make_room(bucket);
        let place = &mut self.low[bucket - self.first];
        let sum = u64::from(*place) + count % CARRY;
        *place = (sum % CARRY) as u16;
        let carried = sum / CARRY + count / CARRY;
        if carried > 0 {
            *self.high.entry(bucket).or_default() += carried;
        }
    }

    pub(super) fn merge(&mut self, other: &Counts) {
        for (bucket, count) in other.filled() {
            self.add(bucket, count);
        }
    }

    /// Non-empty buckets in ascending order, and their counts.
    pub(super) fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = (self.first..).zip(&self.low).map(|(bucket, low)| {
            let carried = self.high.get(&bucket).map_or(0, |high| high * CARRY);
            (bucket, carried + u64::from(*low))
        });
        counts.filter(|(_, count)| *count > 0)
    }

    /// Grows by whole octaves, so that growth is rare.
    fn make_room(&mut self, bucket: usize) {
        let Self { first, low, .. } = self;
        let octave = 1 << SUB_BITS;
        let begin = bucket / octave * octave;
        if low.is_empty() {
            *first = begin;
        }
        if begin < *first {
            low.splice(0..0, std::iter::repeat_n(0, *first - begin));
            *first = begin;
        }
        let length = begin + octave - *first;
        if low.len() < length {
            low.resize(length, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_what_is_kept_small_are_exact() {
        let mut counts = Counts::default();
        for _ in 0..3 * CARRY + 5 {
            counts.add_one(70);
        }
        counts.add(3, 2 * CARRY - 1);
        counts.add_one(3);
        counts.add(200, u64::from(u32::MAX));
        let expected = [
            (3, 2 * CARRY),
            (70, 3 * CARRY + 5),
            (200, u64::from(u32::MAX)),
        ];
        assert_eq!(counts.filled().collect::<Vec<_>>(), expected);
        let mut twice = counts.clone();
        twice.merge(&counts);
        let doubled = expected.map(|(bucket, count)| (bucket, 2 * count));
        assert_eq!(twice.filled().collect::<Vec<_>>(), doubled);
    }
}
