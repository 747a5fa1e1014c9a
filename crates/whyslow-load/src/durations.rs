//! Durations of a load. Memory does not grow with the load, and a value is at most 3.1 % from the
//! edge of its bucket.

use whyslow_model::histogram::{Histogram, bucket_bounds, bucket_of};

/// A histogram without negative values, for the reports of loads. Unlike the percentiles of query
/// results, these are of any share, and the minimum and maximum are exact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations(Histogram);

impl Durations {
    pub(crate) fn add(&mut self, ns: u64) {
        self.0.add(signed(ns));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.count()
    }

    /// The value of rank `ceil(share × count)`, rounded to its bucket; `None` if empty.
    pub(crate) fn percentile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((share * count as f64).ceil() as u64).clamp(1, count.max(1));
        let value = match rank {
            1 => self.0.sums().min(),
            rank if rank == count => self.0.sums().max(),
            rank => self.0.middle_at(rank),
        };
        value.map(i64::cast_unsigned)
    }

    /// Number of values that are at least `ns`; exact if it is the edge of a bucket.
    pub(crate) fn from(&self, ns: u64) -> u64 {
        let first = bucket_of(signed(ns));
        let buckets = self.0.buckets().into_iter();
        let long = buckets.filter(|(bucket, _)| *bucket >= first);
        long.map(|(_, count)| count).sum()
    }

    /// Octaves and their counts, including empty ones between the first and the last: lower edge,
    /// upper edge, count.
    pub(crate) fn octaves(&self) -> Vec<(u64, u64, u64)> {
        let mut octaves: Vec<(u64, u64, u64)> = Vec::new();
        for (octave, count) in self.0.octaves() {
            let from = octave.map_or(0, |octave| 1 << octave);
            while let Some((_, to, _)) = octaves.last().filter(|(_, to, _)| *to < from) {
                octaves.push((*to, to * 2, 0));
            }
            octaves.push((from, octave_of(from).1, count));
        }
        octaves
    }
}

/// No duration exceeds 292 years.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Edges of the octave that contains a duration.
pub(crate) fn octave_of(ns: u64) -> (u64, u64) {
    match ns {
        0 => (0, 1),
        ns => (1 << ns.ilog2(), (1_u64 << ns.ilog2()).saturating_mul(2)),
    }
}

/// The smallest bucket edge that is not below `ns`.
pub(crate) fn edge_from(ns: u64) -> u64 {
    let (low, high) = bucket_bounds(bucket_of(signed(ns)));
    match low.cast_unsigned() {
        edge if edge == ns => ns,
        _ => ns.max(high.cast_unsigned().saturating_add(1)),
    }
}

/// 95 % confidence interval (Wilson) of a proportion that was observed as `some` of `all`.
pub(crate) fn bounds_of_share(some: u64, all: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_963_984_540_054;
    if all == 0 {
        return None;
    }
    let (n, share) = (all as f64, some as f64 / all as f64);
    let scale = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_lies_in_its_bucket() {
        for ns in [
            0,
            1,
            63,
            64,
            65,
            127,
            128,
            1_000,
            999_999,
            1 << 40,
            u64::MAX,
        ] {
            let bucket = bucket_of(signed(ns));
            let (low, high) = bucket_bounds(bucket);
            assert!(low.cast_unsigned() <= ns, "{ns}");
            assert!(ns <= high.cast_unsigned() || ns == u64::MAX, "{ns}");
            assert!(edge_from(ns) >= ns && bucket_of(signed(edge_from(ns))) <= bucket + 1);
        }
    }

    #[test]
    fn percentiles_are_near_those_of_the_values() {
        let mut durations = Durations::default();
        let values: Vec<u64> = (1..=10_000).map(|value| value * 997).collect();
        for ns in &values {
            durations.add(*ns);
        }
        for (share, rank) in [(0.5, 5_000), (0.9, 9_000), (0.99, 9_900)] {
            let (exact, got) = (values[rank - 1], durations.percentile(share).expect("some"));
            assert!(
                got.abs_diff(exact) * 50 <= exact,
                "{share}: {got}, not {exact}"
            );
        }
        assert_eq!(durations.percentile(1.0), Some(9_970_000));
        assert_eq!(durations.percentile(0.0), Some(997));
        assert_eq!(Durations::default().percentile(0.5), None);
        let counted: u64 = durations.octaves().iter().map(|octave| octave.2).sum();
        assert_eq!(counted, 10_000);
    }

    /// Like table I of Brown, Cai and DasGupta (2001); these values are from R's `prop.test(correct
    /// = FALSE)`.
    #[test]
    fn bounds_of_a_share_are_wilsons() {
        let check = |some, all, low: f64, high: f64| {
            let (got_low, got_high) = bounds_of_share(some, all).expect("some");
            assert!((got_low - low).abs() < 5e-4, "{some}/{all}: {got_low}");
            assert!((got_high - high).abs() < 5e-4, "{some}/{all}: {got_high}");
        };
        check(0, 10, 0.0, 0.2775);
        check(5, 10, 0.2366, 0.7634);
        check(31, 200, 0.1114, 0.2116);
        assert_eq!(bounds_of_share(0, 0), None);
    }
}
