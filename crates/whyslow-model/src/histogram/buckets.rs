//! Maps a value to its bucket: buckets of equal width within each power of two.
//!
//! A power of two (an octave) has `1 << SUB_BITS` buckets; below `2 << SUB_BITS` each value has its
//! own. A bucket of `[2^k, 2^(k+1))` is `2^(k-SUB_BITS)` wide. Bucket numbers are consecutive.

/// Buckets of histograms with `1 << SUB_BITS` buckets per octave.
#[derive(Debug, Clone, Copy)]
pub struct LogBuckets<const SUB_BITS: u32>;

impl<const SUB_BITS: u32> LogBuckets<SUB_BITS> {
    const SUB_BUCKETS: u64 = 1 << SUB_BITS;

    /// Number of the bucket of a value.
    #[inline]
    pub const fn of(value: u64) -> usize {
        if value < 2 * Self::SUB_BUCKETS {
            return value as usize;
        }
        let shift = value.ilog2() - SUB_BITS;
        shift as usize * Self::SUB_BUCKETS as usize + (value >> shift) as usize
    }

    /// Minimum and maximum value of a bucket, both inclusive.
    pub const fn bounds(bucket: usize) -> (u64, u64) {
        let bucket = bucket as u64;
        if bucket < 2 * Self::SUB_BUCKETS {
            return (bucket, bucket);
        }
        let shift = bucket / Self::SUB_BUCKETS - 1;
        let low = (Self::SUB_BUCKETS + bucket % Self::SUB_BUCKETS) << shift;
        (low, low + ((1 << shift) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::LogBuckets;

    fn follow_each_other<const SUB_BITS: u32>() {
        let mut expected = 0;
        for bucket in 0..=LogBuckets::<SUB_BITS>::of(u64::MAX) {
            let (low, high) = LogBuckets::<SUB_BITS>::bounds(bucket);
            assert_eq!(low, expected);
            assert_eq!(LogBuckets::<SUB_BITS>::of(low), bucket);
            assert_eq!(LogBuckets::<SUB_BITS>::of(high), bucket);
            expected = high.wrapping_add(1);
        }
        assert_eq!(expected, 0, "the last bucket ends at u64::MAX");
    }

    #[test]
    fn buckets_follow_each_other_up_to_the_greatest_value() {
        follow_each_other::<4>();
        follow_each_other::<5>();
    }
}
