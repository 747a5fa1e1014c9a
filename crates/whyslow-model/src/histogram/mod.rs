//! A mergeable histogram of durations, and the percentiles derived from it; used for answers about
//! recordings and for load reports. The recorder's BPF programs use the same [`LogBuckets`] with
//! fewer buckets per octave, as plain counts in a map of fixed size.
//!
//! Buckets: one per value below 64, then 32 equal ones per octave. A bucket of an octave `[2^k,
//! 2^(k+1))` is `2^(k-5)` wide, so its middle is within 1.6 % of any value in it. Percentiles of up
//! to [`EXACT_MAX`] values are exact. Up to [`KEPT_MAX`] values are stored unchanged and are
//! counted in buckets only on demand: an answer by file has tens of thousands of histograms, most
//! with a few dozen values, and buckets for each would use most of its memory.
//!
//! A percentile, in parts of a thousand so that its rank is an exact integer, is the value of rank
//! `ceil(permille × count / 1000)` (nearest rank): the value itself while exact, otherwise the
//! middle of its bucket, clamped to the minimum and maximum. Whether a percentile is exact depends
//! only on the number of values, never on the order in which histograms were merged.
//! histograms were merged.

mod buckets;
mod counts;

pub use buckets::LogBuckets;
use counts::Counts;

/// Sub-buckets per octave, as a power of two.
const SUB_BITS: u32 = 5;
/// Maximum number of values with exact percentiles.
pub const EXACT_MAX: usize = 64;
/// Maximum number of values that take no more memory than the buckets they would fill.
const KEPT_MAX: usize = 256;

/// Bucket of a value; negative values (the clock stepped backwards) go to the first.
#[inline]
pub const fn bucket_of(value: i64) -> usize {
    LogBuckets::<SUB_BITS>::of(if value < 0 { 0 } else { value as u64 })
}

/// Minimum and maximum value of a bucket, both inclusive.
pub const fn bucket_bounds(bucket: usize) -> (i64, i64) {
    let (low, high) = LogBuckets::<SUB_BITS>::bounds(bucket);
    (low as i64, high as i64)
}

/// Value that represents a bucket.
pub const fn middle(bucket: usize) -> i64 {
    let (low, high) = bucket_bounds(bucket);
    low + (high - low) / 2
}

/// A histogram of signed values, usually durations in ns.
#[derive(Debug, Clone, Default)]
pub struct Histogram(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The values, in any order. Nothing is summed until it is needed, so adding a value costs one
    /// memory access.
    Kept(Vec<i64>),
    Counted(Box<Buckets>),
}

/// Counts, and the sums that cannot be derived from them.
#[derive(Debug, Clone, Default)]
struct Buckets {
    counts: Counts,
    sums: Sums,
}

/// Summary statistics of the values other than their distribution.
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    sum_squares: u128,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            sum: 0,
            sum_squares: 0,
        }
    }
}

impl Sums {
    #[inline]
    fn add(&mut self, value: i64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
        let magnitude = u128::from(value.unsigned_abs());
        self.sum_squares = self.sum_squares.saturating_add(magnitude * magnitude);
    }

    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }

    /// Minimum.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// Maximum.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// Sum, saturating at the limits of `i64`.
    pub fn sum(&self) -> i64 {
        i64::try_from(self.sum).unwrap_or(i64::MAX)
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Sample standard deviation (divided by n - 1); `None` for fewer than two values.
    pub fn stdev(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let count = u128::from(self.count);
        // n × Σx² − (Σx)² in integers, if they fit, to avoid cancellation.
        let sum = self.sum.unsigned_abs();
        let spread = match (count.checked_mul(self.sum_squares), sum.checked_mul(sum)) {
            (Some(a), Some(b)) => a.saturating_sub(b) as f64,
            _ => count as f64 * self.sum_squares as f64 - sum as f64 * sum as f64,
        };
        let count = self.count as f64;
        Some((spread.max(0.0) / (count * (count - 1.0))).sqrt())
    }
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Kept(Vec::new())
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: i64) {
        match &mut self.0 {
            Kind::Counted(buckets) => buckets.add(value),
            Kind::Kept(values) if values.len() < values.capacity() => values.push(value),
            Kind::Kept(_) => self.add_growing(value),
        }
    }

    /// Grows by four at a time: a histogram with eight values is likely to get more.
    #[inline(never)]
    fn add_growing(&mut self, value: i64) {
        if let Kind::Kept(values) = &mut self.0
            && values.len() < KEPT_MAX
        {
            let more = (values.len() * 3).max(8).min(KEPT_MAX - values.len());
            values.reserve_exact(more);
            values.push(value);
            return;
        }
        self.count_all().add(value);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        match &other.0 {
            Kind::Kept(values) => values.iter().for_each(|value| self.add(*value)),
            Kind::Counted(more) => {
                let buckets = self.count_all();
                buckets.counts.merge(&more.counts);
                buckets.sums.merge(&more.sums);
            }
        }
    }

    /// Moves stored values into buckets, permanently.
    fn count_all(&mut self) -> &mut Buckets {
        if let Kind::Kept(values) = &self.0 {
            let mut buckets = Box::<Buckets>::default();
            for value in values {
                buckets.add(*value);
            }
            self.0 = Kind::Counted(buckets);
        }
        match &mut self.0 {
            Kind::Counted(buckets) => buckets,
            Kind::Kept(_) => unreachable!("converted above"),
        }
    }

    /// Summary statistics; computes them if values are only stored so far.
    pub fn sums(&self) -> Sums {
        match &self.0 {
            Kind::Counted(buckets) => buckets.sums,
            Kind::Kept(values) => {
                let mut sums = Sums::default();
                for value in values {
                    sums.add(*value);
                }
                sums
            }
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Kind::Counted(buckets) => buckets.sums.count,
            Kind::Kept(values) => values.len() as u64,
        }
    }

    /// The values in any order, as long as they are stored.
    pub fn values(&self) -> Option<&[i64]> {
        match &self.0 {
            Kind::Kept(values) => Some(values),
            Kind::Counted(_) => None,
        }
    }

    /// Percentiles in parts of a thousand: 990 is p99. `None` without values.
    pub fn percentiles<const N: usize>(&self, permille: [u32; N]) -> [Option<i64>; N] {
        match &self.0 {
            Kind::Kept(values) => {
                let mut values = values.clone();
                values.sort_unstable();
                let (Some(min), Some(max)) = (values.first(), values.last()) else {
                    return [None; N];
                };
                permille.map(|q| {
                    let value = *values.get(self.rank(q)? as usize - 1)?;
                    if values.len() <= EXACT_MAX {
                        return Some(value);
                    }
                    Some(middle(bucket_of(value)).clamp(*min, *max))
                })
            }
            Kind::Counted(buckets) => permille.map(|q| buckets.middle_at(self.rank(q)?)),
        }
    }

    /// Middle of the bucket that contains the value of this rank (1 is the minimum), clamped to the
    /// minimum and maximum; never the exact value, however few values there are.
    pub fn middle_at(&self, rank: u64) -> Option<i64> {
        match &self.0 {
            Kind::Kept(values) => {
                let mut values = values.clone();
                values.sort_unstable();
                let place = usize::try_from(rank.checked_sub(1)?).ok()?;
                let value = middle(bucket_of(*values.get(place)?));
                Some(value.clamp(*values.first()?, *values.last()?))
            }
            Kind::Counted(buckets) => buckets.middle_at(rank),
        }
    }

    /// A single one of [`Self::percentiles`].
    pub fn percentile(&self, permille: u32) -> Option<i64> {
        let [value] = self.percentiles([permille]);
        value
    }

    /// Counts by power of two: (`k`, count) for `[2^k, 2^(k+1))`, where `k = None` is 0 and below.
    pub fn octaves(&self) -> Vec<(Option<u32>, u64)> {
        let mut octaves: Vec<(Option<u32>, u64)> = Vec::new();
        let mut put = |value: i64, count: u64| {
            let octave = (value > 0).then(|| value.ilog2());
            match octaves.last_mut() {
                Some((last, sum)) if *last == octave => *sum += count,
                _ => octaves.push((octave, count)),
            }
        };
        match &self.0 {
            Kind::Kept(values) => {
                let mut values = values.clone();
                values.sort_unstable();
                for value in values {
                    put(value, 1);
                }
            }
            Kind::Counted(buckets) => {
                for (bucket, count) in buckets.counts.filled() {
                    put(bucket_bounds(bucket).0, count);
                }
            }
        }
        octaves
    }

    /// Non-empty buckets in ascending order, and their counts.
    pub fn buckets(&self) -> Vec<(usize, u64)> {
        match &self.0 {
            Kind::Kept(values) => {
                let mut places: Vec<usize> = values.iter().map(|v| bucket_of(*v)).collect();
                places.sort_unstable();
                let same = places.chunk_by(|a, b| a == b);
                same.map(|places| (places[0], places.len() as u64))
                    .collect()
            }
            Kind::Counted(buckets) => buckets.counts.filled().collect(),
        }
    }

    fn rank(&self, permille: u32) -> Option<u64> {
        let count = self.count();
        let rank = (u128::from(count) * u128::from(permille)).div_ceil(1000) as u64;
        (count > 0).then(|| rank.clamp(1, count))
    }
}

impl Buckets {
    #[inline]
    fn add(&mut self, value: i64) {
        self.sums.add(value);
        self.counts.add_one(bucket_of(value));
    }

    fn middle_at(&self, rank: u64) -> Option<i64> {
        let mut seen = 0;
        let (bucket, _) = self.counts.filled().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        Some(middle(bucket).clamp(self.sums.min, self.sums.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut expected = 0;
        for bucket in 0..=bucket_of(i64::MAX) {
            let (low, high) = bucket_bounds(bucket);
            assert_eq!(low, expected);
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(high), bucket);
            expected = high.wrapping_add(1);
        }
        assert_eq!(expected, i64::MIN, "the last bucket ends at i64::MAX");
    }

    #[test]
    fn few_values_have_exact_percentiles() {
        let mut histogram = Histogram::default();
        for value in [437_698, 28, 52] {
            histogram.add(value);
        }
        let [p50, p99] = histogram.percentiles([500, 990]);
        assert_eq!((p50, p99), (Some(52), Some(437_698)));
        assert_eq!(
            histogram.octaves(),
            [(Some(4), 1), (Some(5), 1), (Some(18), 1)]
        );
    }

    #[test]
    fn nothing_measured_has_no_figures() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), None);
        assert_eq!(histogram.sums().mean(), None);
        assert_eq!(histogram.sums().stdev(), None);
    }

    proptest! {
        #[test]
        fn merging_in_any_split_gives_the_same(
            values in prop::collection::vec(prop_oneof![0i64..200, 0i64..10_000_000_000], 0..300),
            split in 0usize..300,
        ) {
            let split = split.min(values.len());
            let (left, right) = values.split_at(split);
            let of = |values: &[i64]| {
                let mut histogram = Histogram::default();
                for value in values {
                    histogram.add(*value);
                }
                histogram
            };
            let whole = of(&values);
            let mut merged = of(right);
            merged.merge(&of(left));
            let permille = [0, 500, 900, 990, 999, 1000];
            prop_assert_eq!(whole.percentiles(permille), merged.percentiles(permille));
            prop_assert_eq!(whole.octaves(), merged.octaves());
            prop_assert_eq!(whole.buckets(), merged.buckets());
            prop_assert_eq!(whole.sums().stdev(), merged.sums().stdev());
        }

        #[test]
        fn percentiles_are_within_their_bound(
            mut values in prop::collection::vec(0i64..10_000_000_000, 1..500),
            permille in 0u32..1001,
        ) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(*value);
            }
            values.sort_unstable();
            let rank = (values.len() * permille as usize).div_ceil(1000).max(1);
            let exact = values[rank - 1] as f64;
            let found = histogram.percentile(permille).unwrap() as f64;
            prop_assert!((found - exact).abs() <= exact / 60.0 + 0.5, "{found} for {exact}");
        }
    }
}
