//! Comparability of requests: the same operation, a similar size, a similar number in flight.
//!
//! Size and depth classes are half octaves: 1, 2, 3, 4, 5–6, 7–8, 9–12, 13–16, … Whole octaves are
//! too wide: a device that is mostly at the upper end of 9–16 is half as slow again as one at the
//! lower end, though both are healthy.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use whyslow_model::histogram::Histogram;

/// Requests of one operation, of similar size, issued with a similar number in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stratum {
    /// Index of the operation among those of `block`.
    pub(crate) op: u8,
    size: u8,
    depth: u8,
}

const SECTOR: u64 = 512;

impl Stratum {
    /// `depth` includes the request itself.
    pub(crate) fn new(op: u8, bytes: i64, depth: u64) -> Self {
        Self {
            op,
            size: half_octave(bytes.max(0).unsigned_abs().div_ceil(SECTOR)),
            depth: half_octave(depth),
        }
    }

    /// For operations of any kind without a size.
    pub(super) fn of_kind(kind: u8, depth: u64) -> Self {
        Self {
            op: 0,
            size: kind,
            depth: half_octave(depth),
        }
    }

    /// Minimum and maximum size, bytes.
    pub(crate) fn sizes(self) -> (u64, u64) {
        let (least, most) = class_bounds(self.size);
        (least.saturating_mul(SECTOR), most.saturating_mul(SECTOR))
    }

    /// Minimum and maximum number in flight.
    pub(crate) fn depths(self) -> (u64, u64) {
        class_bounds(self.depth)
    }

    /// The stratum for any number in flight.
    pub(super) fn at_any_depth(self) -> Self {
        Self { depth: 0, ..self }
    }
}

/// Number of the half octave: (2^k, 1.5 × 2^k], (1.5 × 2^k, 2^(k + 1)].
fn half_octave(value: u64) -> u8 {
    if value <= 2 {
        return value as u8;
    }
    let below = value - 1;
    let octave = below.ilog2();
    let is_upper = (below >> (octave - 1)) & 1;
    (1 + 2 * octave) as u8 + is_upper as u8
}

/// Minimum and maximum value of a half octave.
fn class_bounds(class: u8) -> (u64, u64) {
    if class <= 2 {
        return (class.into(), class.into());
    }
    let (octave, is_upper) = ((class - 1) / 2, (class - 1) % 2);
    let half = 1u128 << (octave - 1);
    let before = (2 + u128::from(is_upper)) * half;
    let bound = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    (bound(before + 1), bound(before + half))
}

/// Device times of one device's requests, as histograms: ten million requests take no more memory
/// than ten thousand.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    times: FxHashMap<Stratum, [Histogram; 2]>,
    /// All requests of the device, and the sum of those just before each of them.
    arrived: u64,
    preceded: u64,
}

impl Sample {
    /// Adds a request to be compared: its device time, and the time that it would have needed
    /// alone.
    pub(crate) fn add(&mut self, stratum: Stratum, device_ns: Ns, alone_ns: Ns) {
        let [times, alone] = self.times.entry(stratum).or_default();
        times.add(device_ns);
        alone.add(alone_ns);
    }

    /// Counts any request, and those just before it.
    pub(crate) fn count_arrival(&mut self, preceded: u64) {
        self.arrived += 1;
        self.preceded += preceded;
    }

    pub(super) fn has_arrivals(&self) -> bool {
        self.arrived > 0
    }

    /// Average number of requests just before each.
    pub(super) fn demand(&self) -> f64 {
        self.preceded as f64 / self.arrived.max(1) as f64
    }

    pub(super) fn times(&self) -> BTreeMap<Stratum, Counts> {
        let strata = self.times.iter();
        let counts = strata.map(|(stratum, [times, _])| (*stratum, Counts::of(times)));
        counts.collect()
    }

    pub(super) fn times_alone(&self) -> BTreeMap<Stratum, Counts> {
        let strata = self.times.iter();
        let counts = strata.map(|(stratum, [_, alone])| (*stratum, Counts::of(alone)));
        counts.collect()
    }
}

/// Requests by bucket of their time, ascending. Times in the same bucket count as equal; a bucket
/// is 3 % wide, which is irrelevant for a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) total: u64,
    pub(super) buckets: Vec<(usize, u64)>,
}

impl Counts {
    fn of(times: &Histogram) -> Self {
        Self {
            total: times.count(),
            buckets: times.buckets(),
        }
    }

    pub(super) fn merged<'c>(all: impl IntoIterator<Item = &'c Counts>) -> Self {
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        let mut total = 0;
        for counts in all {
            total += counts.total;
            for (bucket, count) in &counts.buckets {
                *buckets.entry(*bucket).or_default() += count;
            }
        }
        Self {
            total,
            buckets: buckets.into_iter().collect(),
        }
    }

    /// These without `some`, which are among them.
    pub(super) fn without(&self, some: &Counts) -> Self {
        let mut some_left = some.buckets.iter().peekable();
        let rest = |(bucket, count): &(usize, u64)| {
            let taken = some_left.next_if(|(other, _)| other == bucket);
            let left = count - taken.map_or(0, |(_, count)| *count);
            (left > 0).then_some((*bucket, left))
        };
        Self {
            total: self.total - some.total,
            buckets: self.buckets.iter().filter_map(rest).collect(),
        }
    }

    /// Bucket of the median; `None` if empty.
    pub(super) fn middle(&self) -> Option<usize> {
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen * 2 >= self.total
        });
        found.map(|(bucket, _)| *bucket)
    }

    /// Requests in later buckets.
    pub(super) fn beyond(&self, bucket: usize) -> u64 {
        let later = self.buckets.iter().rev();
        let later = later.take_while(|(other, _)| *other > bucket);
        later.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
pub(super) fn counts(buckets: &[(usize, u64)]) -> Counts {
    Counts {
        total: buckets.iter().map(|(_, count)| count).sum(),
        buckets: buckets.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_half_octaves() {
        let mut firsts = Vec::new();
        for value in 0..=100 {
            if firsts.len() <= usize::from(half_octave(value)) {
                assert_eq!(firsts.len(), usize::from(half_octave(value)), "a gap");
                firsts.push(value);
            }
        }
        assert_eq!(firsts, [0, 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97]);
        assert_eq!(half_octave(u64::MAX), 128);
        let bounds: Vec<_> = (0..=8).map(class_bounds).collect();
        let pairs = [(5, 6), (7, 8), (9, 12), (13, 16)];
        assert_eq!(bounds[..5], [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
        assert_eq!(bounds[5..], pairs);
        for value in (0..5000).chain([1 << 40, (1 << 40) + 1, u64::MAX]) {
            let (least, most) = class_bounds(half_octave(value));
            assert!(least <= value && value <= most, "{value}");
        }
    }

    #[test]
    fn like_requests_share_a_stratum() {
        let page = Stratum::new(0, 4096, 1);
        assert_eq!(page, Stratum::new(0, 3584, 1));
        assert_ne!(page, Stratum::new(0, 4608, 1));
        assert_ne!(page, Stratum::new(1, 4096, 1));
        assert_ne!(page, Stratum::new(0, 4096, 2));
        assert_eq!(page.at_any_depth(), Stratum::new(0, 4096, 9).at_any_depth());
    }

    #[test]
    fn some_taken_out_of_all_leave_the_others() {
        let (ours, theirs) = (counts(&[(3, 2), (7, 1)]), counts(&[(1, 1), (3, 1), (9, 4)]));
        let all = Counts::merged([&ours, &theirs]);
        assert_eq!(all, counts(&[(1, 1), (3, 3), (7, 1), (9, 4)]));
        assert_eq!(all.without(&ours), theirs);
        assert_eq!(all.without(&theirs), ours);
        assert_eq!((all.beyond(3), all.beyond(8), all.beyond(9)), (5, 4, 0));
    }
}
