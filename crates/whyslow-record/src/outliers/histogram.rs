//! Counters of a device in the BPF map, and the statistics derived from them.
//!
//! This is not `whyslow_model`'s `Histogram`: the counters are in a BPF map, so their number is
//! fixed, and they only grow, so that an interval is the difference of two readings.

use std::time::Duration;

use whyslow_model::histogram::LogBuckets;

/// See `outliers.bpf.c`.
const SUB_BITS: u32 = 4;
pub(super) const BUCKETS: usize = (41 - SUB_BITS as usize + 1) << SUB_BITS;
type Buckets = LogBuckets<SUB_BITS>;
const EPOCH_SHIFT: u32 = 44;
const VALUE_MASK: u64 = (1 << EPOCH_SHIFT) - 1;

/// Counters of a device since the start, in the layout of the BPF map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) sum: u64,
    pub(super) slow: u64,
    max: [u64; 2],
    min: [u64; 2],
    pub(super) counts: Vec<u64>,
}

impl Counters {
    pub(super) fn zero() -> Self {
        Self {
            sum: 0,
            slow: 0,
            max: [0; 2],
            min: [0; 2],
            counts: vec![0; BUCKETS],
        }
    }

    /// `None` if the size differs.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let (head, counts) = words.split_at_checked(6)?;
        (rest.is_empty() && counts.len() == BUCKETS).then(|| Self {
            sum: head[0],
            slow: head[1],
            max: [head[2], head[3]],
            min: [head[4], head[5]],
            counts: counts.to_vec(),
        })
    }

    /// Minimum and maximum of an interval; `None` if it had no requests.
    pub(super) fn extremes(&self, epoch: u64) -> Option<(u64, u64)> {
        let half = (epoch & 1) as usize;
        let of_epoch = |value: u64| {
            let is_its = value >> EPOCH_SHIFT == epoch & (u64::MAX >> EPOCH_SHIFT);
            (is_its && value != 0).then_some(value & VALUE_MASK)
        };
        Some((
            VALUE_MASK - of_epoch(self.min[half])?,
            of_epoch(self.max[half])?,
        ))
    }

    /// The increase since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let counts = self.counts.iter().zip(&before.counts);
        Self {
            sum: self.sum.wrapping_sub(before.sum),
            slow: self.slow.wrapping_sub(before.slow),
            counts: counts.map(|(now, then)| now.wrapping_sub(*then)).collect(),
            ..*self
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Middle of the bucket that contains the percentile.
    pub(super) fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut so_far = 0;
        let bucket = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= rank
        })?;
        let (low, high) = Buckets::bounds(bucket);
        Some(Duration::from_nanos(low + (high - low).div_ceil(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in the BPF program.
    fn bucket_of(ns: u64) -> usize {
        let power = ns.max(1).ilog2();
        if power < SUB_BITS {
            return ns as usize;
        }
        let bucket = ((power - SUB_BITS + 1) << SUB_BITS) as u64;
        let sub = (ns >> (power - SUB_BITS)) & ((1 << SUB_BITS) - 1);
        (bucket + sub).min(BUCKETS as u64 - 1) as usize
    }

    #[test]
    fn every_length_lies_in_its_bucket() {
        let mut end = 0;
        for bucket in 0..BUCKETS {
            let (low, high) = Buckets::bounds(bucket);
            let width = high - low + 1;
            assert_eq!(low, end, "{bucket}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert_eq!((Buckets::of(low), Buckets::of(high)), (bucket, bucket));
            assert!(width == 1 || width * 16 <= low, "{bucket}");
            end = low + width;
        }
        assert_eq!(end, 1 << 41);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_what_came_since() {
        let mut before = Counters::zero();
        before.counts[bucket_of(1_000_000)] = 1_000;
        let mut now = before.clone();
        for ns in 1..=100 {
            now.counts[bucket_of(ns * 1_000)] += 1;
            now.sum += ns * 1_000;
        }
        let new = now.since(&before);
        assert_eq!((new.count(), new.sum), (100, 5_050_000));
        let about = |percent, ns: u64| {
            let found = new.percentile(percent).expect("there are some").as_nanos() as u64;
            assert!(found.abs_diff(ns) * 32 <= ns, "{percent} %: {found}");
        };
        about(50, 50_000);
        about(99, 99_000);
        assert_eq!(now.since(&now).percentile(50), None);
    }

    #[test]
    fn extremes_belong_to_their_interval() {
        let mut counters = Counters::zero();
        assert_eq!(counters.extremes(0), None);
        let tagged = |epoch: u64, value: u64| epoch << EPOCH_SHIFT | value;
        counters.max[1] = tagged(7, 900);
        counters.min[1] = tagged(7, VALUE_MASK - 20);
        assert_eq!(counters.extremes(7), Some((20, 900)));
        assert_eq!((counters.extremes(9), counters.extremes(6)), (None, None));
    }

    #[test]
    fn what_is_no_device_is_not_taken_for_one() {
        assert_eq!(Counters::parse(&[]), None);
        assert_eq!(Counters::parse(&[0; 48]), None);
        let whole = vec![0; (6 + BUCKETS) * 8];
        assert_eq!(Counters::parse(&whole), Some(Counters::zero()));
        assert_eq!(Counters::parse(&whole[1..]), None);
    }
}
