//! Tests whether a device is slower throughout (stratified Mann-Whitney test).
//!
//! In each stratum, `U` counts the pairs of a request of the device and one of its peers in which
//! the device took longer, ties as half. Strata are added with the weights `1 / (n + N + 1)` (van
//! Elteren), which are optimal against a shift that is the same in all strata. Mean and variance of
//! the sum under the null hypothesis are known exactly, ties included, and the sum is approximately
//! normal.
//!
//! The effect size is measured against the median peer rather than against all peers together: a
//! peer with most of the requests, or one fast device among four, would decide alone. Cliff's delta
//! is the probability that the device took longer minus the probability that the peer did. The
//! ratio is that of the medians, with the peer's requests weighted so that each stratum counts as
//! for the device. A device that is always 6 % slower has a delta of 1 if times vary little, but
//! this is irrelevant; so delta only counts from a ratio of 1.25.

use super::strata::Counts;
use super::{LEVEL, Matched, median};
use crate::statistics::normal_tail;
use whyslow_model::histogram::middle;

/// With fewer requests, chance deviations are large, and the sum is not yet normal.
pub(crate) const REQUESTS_MIN: u64 = 100;
const DELTA_MIN: f64 = 0.33;
/// Delta counts from this ratio …
const RATIO_OF_DELTA_MIN: f64 = 1.25;
/// … and this ratio counts by itself.
const RATIO_MIN: f64 = 1.5;

/// How a device's times compare with its peers'.
#[derive(Debug, Clone)]
pub(crate) struct Shift {
    pub(crate) p: f64,
    /// Adjusted `p`.
    pub(crate) q: f64,
    /// Cliff's delta to the median peer.
    pub(crate) delta: f64,
    /// Ratio of the median to that of the median peer.
    pub(crate) ratio: f64,
}

impl Shift {
    /// `None` with too few requests.
    pub(super) fn of(matched: &Matched<'_>) -> Option<Self> {
        if matched.compared() < REQUESTS_MIN {
            return None;
        }
        let p = normal_tail(van_elteren(matched));
        let ours = Ours::of(matched);
        let peers = matched.peers.iter();
        Some(Self {
            p,
            q: p,
            delta: median(peers.clone().map(|peer| ours.delta(*peer)))?,
            ratio: median(peers.map(|peer| ours.ratio(*peer)))?,
        })
    }

    pub(crate) fn fires(&self) -> bool {
        self.q <= LEVEL && self.stands_out()
    }

    /// Confirms a finding of another test, without correction for multiple tests.
    pub(super) fn agrees(&self) -> bool {
        self.p <= LEVEL && self.stands_out()
    }

    fn stands_out(&self) -> bool {
        let by_delta = self.delta > DELTA_MIN && self.ratio >= RATIO_OF_DELTA_MIN;
        by_delta || self.ratio >= RATIO_MIN
    }
}

/// Standard deviations by which the device is slower than expected under the null hypothesis.
fn van_elteren(matched: &Matched<'_>) -> f64 {
    let (mut sum, mut variance) = (0.0, 0.0);
    for pair in &matched.pairs {
        let (wins, ties) = wins(pair.own, &pair.peers);
        let (ours, theirs) = (pair.own.total as f64, pair.peers.total as f64);
        let all = ours + theirs;
        let weight = 1.0 / (all + 1.0);
        sum += weight * (wins - ours * theirs / 2.0);
        let spread = all + 1.0 - ties / (all * (all - 1.0));
        variance += weight * weight * ours * theirs / 12.0 * spread;
    }
    // All values are equal: no difference.
    if variance > 0.0 {
        sum / variance.sqrt()
    } else {
        0.0
    }
}

/// Pairs in which ours is greater, ties as half; and the sum of `t^3 - t` over groups of `t` tied
/// values.
fn wins(ours: &Counts, theirs: &Counts) -> (f64, f64) {
    let (mut wins, mut ties, mut below) = (0.0, 0.0, 0.0);
    let mut left = theirs.buckets.iter().peekable();
    let tied = |count: f64| count * count * count - count;
    for (bucket, count) in &ours.buckets {
        while let Some((_, fewer)) = left.next_if(|(other, _)| other < bucket) {
            below += *fewer as f64;
            ties += tied(*fewer as f64);
        }
        let equal = left.next_if(|(other, _)| other == bucket);
        let equal = equal.map_or(0.0, |(_, count)| *count as f64);
        wins += *count as f64 * (below + equal / 2.0);
        ties += tied(*count as f64 + equal);
        below += equal;
    }
    ties += left.map(|(_, count)| tied(*count as f64)).sum::<f64>();
    (wins, ties)
}

/// A device, prepared for the comparison with each of its peers: there are as many comparisons as
/// pairs of devices.
struct Ours<'m> {
    matched: &'m Matched<'m>,
    /// By stratum.
    longer: Vec<Longer>,
    all: Weights,
    middle: f64,
}

impl<'m> Ours<'m> {
    fn of(matched: &'m Matched<'m>) -> Self {
        let own = || matched.pairs.iter().map(|pair| pair.own);
        let mut all = Weights::default();
        for counts in own() {
            all.add(counts, 1.0);
        }
        Self {
            matched,
            longer: own().map(Longer::of).collect(),
            middle: all.middle(),
            all,
        }
    }

    fn delta(&self, peer: usize) -> f64 {
        let (mut delta, mut weight) = (0.0, 0.0);
        for (pair, longer) in self.matched.pairs.iter().zip(&self.longer) {
            if let Some(theirs) = pair.of(peer) {
                let ours = pair.own.total as f64;
                let pairs = ours * theirs.total as f64;
                delta += ours * (2.0 * longer.wins(theirs) / pairs - 1.0);
                weight += ours;
            }
        }
        delta / weight
    }

    fn ratio(&self, peer: usize) -> f64 {
        let mut theirs = Weights::default();
        let mut alone = Vec::new();
        for pair in &self.matched.pairs {
            match pair.of(peer) {
                Some(counts) => theirs.add(counts, pair.own.total as f64 / counts.total as f64),
                None => alone.push(pair.own),
            }
        }
        let ours = if alone.is_empty() {
            self.middle
        } else {
            let mut ours = self.all.clone();
            // Request counts are integers, so subtraction leaves no rounding errors.
            for counts in alone {
                ours.add(counts, -1.0);
            }
            ours.middle()
        };
        // A time of 0 ns is below the clock resolution.
        ours.max(1.0) / theirs.middle().max(1.0)
    }
}

/// Number of a device's requests in a stratum that took longer than each bucket, those in it as
/// half.
struct Longer {
    /// The first bucket with a request: all requests took longer than earlier buckets.
    first: usize,
    from_first: Vec<f64>,
    all: f64,
}

impl Longer {
    fn of(counts: &Counts) -> Self {
        let first = counts.buckets.first().map_or(0, |(first, _)| *first);
        let after = counts.buckets.last().map_or(0, |(last, _)| last + 1);
        let mut left = counts.total as f64;
        let mut from_first = Vec::with_capacity(after - first);
        for (bucket, count) in &counts.buckets {
            from_first.resize(bucket - first, left);
            from_first.push(left - *count as f64 / 2.0);
            left -= *count as f64;
        }
        Self {
            first,
            from_first,
            all: counts.total as f64,
        }
    }

    /// Pairs of these and `theirs` in which ours is greater, ties as half.
    fn wins(&self, theirs: &Counts) -> f64 {
        let longer = |bucket: usize| match bucket.checked_sub(self.first) {
            None => self.all,
            Some(place) => self.from_first.get(place).copied().unwrap_or(0.0),
        };
        let buckets = theirs.buckets.iter();
        buckets
            .map(|(bucket, count)| *count as f64 * longer(*bucket))
            .sum()
    }
}

/// Weight of each bucket: sorting the buckets of all strata would dominate the run time with a
/// hundred disks.
#[derive(Default, Clone)]
struct Weights {
    by_bucket: Vec<f64>,
    /// Earlier buckets have no weight.
    first: usize,
}

impl Weights {
    fn add(&mut self, counts: &Counts, weight: f64) {
        let (Some((first, _)), Some((last, _))) = (counts.buckets.first(), counts.buckets.last())
        else {
            return;
        };
        if self.by_bucket.is_empty() {
            self.first = *first;
        }
        self.first = self.first.min(*first);
        if self.by_bucket.len() <= *last {
            self.by_bucket.resize(last + 1, 0.0);
        }
        for (bucket, count) in &counts.buckets {
            self.by_bucket[*bucket] += *count as f64 * weight;
        }
    }

    /// The median, ns.
    fn middle(&self) -> f64 {
        let weights = self.by_bucket.get(self.first..).unwrap_or_default();
        let half = weights.iter().sum::<f64>() / 2.0;
        let mut seen = 0.0;
        let found = weights.iter().position(|weight| {
            seen += weight;
            *weight > 0.0 && seen >= half
        });
        found.map_or(0.0, |place| middle(self.first + place) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::super::strata::{Stratum, counts};
    use super::*;

    /// For all ways to choose which of seven values, with ties, are ours: mean and variance of the
    /// number of pairs won match the formula.
    #[test]
    fn mean_and_variance_are_those_of_all_arrangements() {
        let values = [1, 2, 2, 3, 5, 5, 5];
        let split = |ours: u32, wanted: u32| {
            let mut buckets: Vec<(usize, u64)> = Vec::new();
            for (at, value) in values.iter().enumerate() {
                if (ours >> at) & 1 == wanted {
                    match buckets.last_mut() {
                        Some((last, count)) if last == value => *count += 1,
                        _ => buckets.push((*value, 1)),
                    }
                }
            }
            counts(&buckets)
        };
        let choices: Vec<u32> = (0..1 << 7)
            .filter(|ours: &u32| ours.count_ones() == 3)
            .collect();
        let all = choices
            .iter()
            .map(|ours| wins(&split(*ours, 1), &split(*ours, 0)));
        let all: Vec<(f64, f64)> = all.collect();
        let mean = all.iter().map(|(wins, _)| wins).sum::<f64>() / all.len() as f64;
        assert!((mean - 6.0).abs() < 1e-12, "{mean}");
        let squares = all.iter().map(|(wins, _)| (wins - mean).powi(2));
        let variance = squares.sum::<f64>() / all.len() as f64;
        // 2 twos and 3 fives: 6 + 24.
        assert!(all.iter().all(|(_, ties)| *ties == 30.0));
        let formula = 3.0 * 4.0 / 12.0 * (8.0 - 30.0 / 42.0);
        assert!((variance - formula).abs() < 1e-12, "{variance} {formula}");
    }

    #[test]
    fn pairs_won_are_those_counted_one_by_one() {
        let some = [
            counts(&[]),
            counts(&[(3, 2)]),
            counts(&[(0, 1), (5, 2), (9, 1)]),
            counts(&[(4, 7), (5, 1), (6, 3), (40, 2)]),
        ];
        for ours in &some {
            for theirs in &some {
                assert_eq!(Longer::of(ours).wins(theirs), wins(ours, theirs).0);
            }
        }
    }

    /// A peer without requests in one of two strata is compared in the other one only.
    #[test]
    fn strata_that_a_peer_lacks_do_not_count() {
        let (few, many) = (counts(&[(96, 3)]), counts(&[(256, 900)]));
        let (both, one) = (counts(&[(96, 8)]), counts(&[(128, 5)]));
        let first = [(1, both.clone()), (2, one)];
        let second = [(1, both)];
        let matched = Matched {
            pairs: vec![pair(&few, &first, 1), pair(&many, &second, 2)],
            peers: vec![1, 2],
        };
        let ours = Ours::of(&matched);
        // 128..132 ns against 256..264, and most of 4096..4224 against 128..132.
        assert!((ours.ratio(2) - 0.5).abs() < 0.01, "{}", ours.ratio(2));
        assert!((ours.ratio(1) - 32.0).abs() < 0.5, "{}", ours.ratio(1));
    }

    fn pair<'c>(own: &'c Counts, members: &'c [(usize, Counts)], depth: u64) -> Pair<'c> {
        Pair {
            stratum: Stratum::new(0, 4096, depth),
            own,
            peers: Counts::merged(members.iter().map(|(_, counts)| counts)),
            members,
        }
    }

    /// In each of two strata the device is like its peers, but most of its requests are in the
    /// slower one: pooled, it would be slower.
    #[test]
    fn strata_are_compared_one_by_one() {
        let (few, many) = (counts(&[(100, 10)]), counts(&[(200, 90)]));
        let fast = [(1, counts(&[(100, 90)]))];
        let slow = [(1, counts(&[(200, 10)]))];
        let matched = Matched {
            pairs: vec![pair(&few, &fast, 1), pair(&many, &slow, 2)],
            peers: vec![1],
        };
        assert_eq!(van_elteren(&matched), 0.0);
        assert_eq!(Ours::of(&matched).delta(1), 0.0);
        assert_eq!(Ours::of(&matched).ratio(1), 1.0);
    }

    #[test]
    fn a_slower_device_by_hand() {
        // Bucket 96 is 128..132 ns, bucket 128 is 256..264: twice that.
        let own = counts(&[(96, 1), (128, 3)]);
        let peer = [(1, counts(&[(96, 2)]))];
        let matched = Matched {
            pairs: vec![pair(&own, &peer, 1)],
            peers: vec![1],
        };
        // Of 8 pairs, 6 are won and 2 are ties.
        assert_eq!(Ours::of(&matched).delta(1), 0.75);
        assert!((Ours::of(&matched).ratio(1) - 2.0).abs() < 0.02);
        // U is 7, expected 4; ties 24 + 24: variance 8 / 12 × (7 − 48 / 30).
        let variance: f64 = 8.0 / 12.0 * (7.0 - 48.0 / 30.0);
        let z = 3.0 / variance.sqrt();
        assert!((van_elteren(&matched) - z).abs() < 1e-12);
    }
}
