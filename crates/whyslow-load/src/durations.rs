//! Lengths of time, counted in buckets: one per ns below 64, then 32 equal ones an octave. Memory
//! does not grow with the load, and a value is at most 3.1 % from its bucket's edge.

const SUB_BITS: u32 = 5;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;

#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    buckets: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum: u128,
    min: u64,
    max: u64,
}

impl Durations {
    pub(crate) fn add(&mut self, ns: u64) {
        self.add_in(bucket_of(ns), ns);
    }

    /// The same of a length whose bucket is known.
    pub(crate) fn add_in(&mut self, bucket: usize, ns: u64) {
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.min = if self.count == 0 {
            ns
        } else {
            self.min.min(ns)
        };
        self.max = self.max.max(ns);
        self.count += 1;
        self.sum += u128::from(ns);
    }

    /// The value of rank `ceil(share × count)`, as near as its bucket tells; none of nothing.
    pub(crate) fn percentile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut reached = 0;
        let bucket = self.buckets.iter().position(|count| {
            reached += count;
            reached >= rank
        })?;
        let middle = u64::midpoint(edge_of(bucket), edge_of(bucket + 1) - 1);
        Some(match rank {
            1 => self.min,
            rank if rank == self.count => self.max,
            _ => middle.clamp(self.min, self.max),
        })
    }

    /// How many were at least so long; exact if it is the edge of a bucket.
    pub(crate) fn from(&self, ns: u64) -> u64 {
        let buckets = self.buckets.iter().skip(bucket_of(ns));
        buckets.sum()
    }

    /// Powers of two with what lies in them: lower and upper edge, and count.
    pub(crate) fn octaves(&self) -> Vec<(u64, u64, u64)> {
        let mut octaves: Vec<(u64, u64, u64)> = Vec::new();
        let filled = self.buckets.iter().enumerate();
        for (bucket, count) in filled.skip_while(|(_, count)| **count == 0) {
            let (from, to) = octave_of(edge_of(bucket));
            match octaves.last_mut() {
                Some(last) if last.0 == from => last.2 += count,
                _ => octaves.push((from, to, *count)),
            }
        }
        octaves
    }
}

/// Edges of the power of two in which a length lies.
pub(crate) fn octave_of(ns: u64) -> (u64, u64) {
    match ns {
        0 => (0, 1),
        ns => (1 << ns.ilog2(), (1_u64 << ns.ilog2()).saturating_mul(2)),
    }
}

/// The least edge of a bucket that is not below.
pub(crate) fn edge_from(ns: u64) -> u64 {
    let bucket = bucket_of(ns);
    match edge_of(bucket) {
        edge if edge == ns => ns,
        _ => edge_of(bucket + 1),
    }
}

pub(crate) fn bucket_of(ns: u64) -> usize {
    if ns < 2 * SUB_BUCKETS {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    (u64::from(shift) * SUB_BUCKETS + (ns >> shift)) as usize
}

fn edge_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB_BUCKETS {
        return bucket;
    }
    let shift = bucket / SUB_BUCKETS - 1;
    let place = u128::from(bucket % SUB_BUCKETS + SUB_BUCKETS) << shift;
    u64::try_from(place).unwrap_or(u64::MAX)
}

/// Bounds of a share that was seen as `some` of `all`, right in 95 of 100 cases (Wilson).
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
            let bucket = bucket_of(ns);
            assert!(edge_of(bucket) <= ns, "{ns}");
            assert!(ns < edge_of(bucket + 1) || ns == u64::MAX, "{ns}");
            assert!(edge_from(ns) >= ns && bucket_of(edge_from(ns)) <= bucket + 1);
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

    /// Table I of Brown, Cai and DasGupta (2001) has its like; these are of R's
    /// `prop.test(correct = FALSE)`.
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
