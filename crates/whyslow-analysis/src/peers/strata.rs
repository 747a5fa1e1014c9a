//! What may be compared with what: the same operation, a like size, a like number in flight.
//!
//! Classes of sizes and numbers are half octaves: 1, 2, 3, 4, 5–6, 7–8, 9–12, 13–16, … Whole
//! octaves were too wide: a device that is mostly at the upper end of 9–16 is half as slow again as
//! one at its lower end though both are well.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use whyslow_model::histogram::Histogram;

/// Requests of one operation, of like size, issued while a like number was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stratum {
    /// Place of the operation among those of `block`.
    pub(crate) op: u8,
    size: u8,
    depth: u8,
}

const SECTOR: u64 = 512;

impl Stratum {
    /// `depth` counts the request itself.
    pub(crate) fn new(op: u8, bytes: i64, depth: u64) -> Self {
        Self {
            op,
            size: half_octave(bytes.max(0).unsigned_abs().div_ceil(SECTOR)),
            depth: half_octave(depth),
        }
    }

    /// Of operations of any kind that have no size.
    pub(super) fn of_kind(kind: u8, depth: u64) -> Self {
        Self {
            op: 0,
            size: kind,
            depth: half_octave(depth),
        }
    }

    /// Least and greatest size, bytes.
    pub(crate) fn sizes(self) -> (u64, u64) {
        let (least, most) = class_bounds(self.size);
        (least.saturating_mul(SECTOR), most.saturating_mul(SECTOR))
    }

    /// Least and greatest number in flight.
    pub(crate) fn depths(self) -> (u64, u64) {
        class_bounds(self.depth)
    }

    /// The same whatever was in flight.
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

/// Least and greatest value of a half octave.
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

/// Times in the device of one device's requests, as histograms: ten million requests take no more
/// memory than ten thousand.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    times: FxHashMap<Stratum, [Histogram; 2]>,
    /// All requests the device got, and those that each of them got just before it.
    asked: u64,
    preceded: u64,
}

impl Sample {
    /// A request to be compared: its time in the device, and that which it would have needed alone.
    pub(crate) fn add(&mut self, stratum: Stratum, device_ns: Ns, alone_ns: Ns) {
        let [times, alone] = self.times.entry(stratum).or_default();
        times.add(device_ns);
        alone.add(alone_ns);
    }

    /// Any request, and how many there were just before it.
    pub(crate) fn ask(&mut self, preceded: u64) {
        self.asked += 1;
        self.preceded += preceded;
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked > 0
    }

    /// How many requests come just before each, on average.
    pub(super) fn demand(&self) -> f64 {
        self.preceded as f64 / self.asked.max(1) as f64
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

/// Requests by bucket of their time, ascending. Two times in one bucket count as equal; a bucket is
/// 3 % wide, so that nothing is lost that a verdict would be about.
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

    /// What is left of these without `some`, which are among them.
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

    /// The median's bucket; none of nothing.
    pub(super) fn middle(&self) -> Option<usize> {
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen * 2 >= self.total
        });
        found.map(|(bucket, _)| *bucket)
    }

    /// Requests in later buckets than this.
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
