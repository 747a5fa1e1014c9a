//! Is the slow end of a device fatter than that of its peers? (Exceedance test.)
//!
//! In each stratum the 99th percentile of the peers is the threshold; `k` of the device's `n`
//! requests are beyond. If the device is like its peers, of which `e` in `N` are beyond, one more
//! value is beyond with chance `(e + 1) / (N + 1)`, whatever the distribution, so that the counts
//! of a stratum are beta-binomial with `e + 1` and `N - e`: binomial, with the chance itself known
//! from `N` requests only. A plain binomial takes the threshold for exact and fires too often where
//! peers are few.
//!
//! Strata are added: the expected counts as they are, and the variances, of which one beta-binomial
//! for the sum is made (exact for one stratum). Taking strata together keeps the power where a
//! device has a few requests in each.
//!
//! Significance alone is not enough: a large `n` makes any difference significant. The device has to
//! be beyond five times as often as expected, five times at least, and twice as often as the median
//! peer: peers of two sorts, half of them fast, would make all of the slow half exceptional.

use super::strata::{Counts, Stratum};
use super::{LEVEL, Matched, Pair, median};
use crate::statistics::{beta_binomial_tail, binomial_tail};

/// Less than this is a coincidence, however improbable.
const OVER_MIN: u64 = 5;
/// So many times as often as expected …
const RISK_MIN: f64 = 5.0;
/// … and as the median peer.
const RISK_TO_PEER_MIN: f64 = 2.0;

/// What a test should be able to find: a device of whose requests such a share is beyond …
const SHARE_TO_FIND: f64 = 0.2;
/// … with such a chance.
const POWER: f64 = 0.9;
/// More requests than this are no advice.
const ENOUGH_MAX: u64 = 1000;

/// A stratum as a device and its peers share it.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) stratum: Stratum,
    /// Requests of the device, of its peers, and how many peers these are.
    pub(crate) own: u64,
    pub(crate) peers: u64,
    pub(crate) devices: usize,
    /// Bucket of the 99th percentile of the peers, and the device's requests beyond.
    pub(crate) threshold: usize,
    pub(crate) over: u64,
    /// Those that would be if the device was like its peers.
    pub(crate) expected: f64,
    /// Buckets of the medians, of the device and its peers.
    pub(crate) middles: [Option<usize>; 2],
}

/// The slow requests of a device, against its peers.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// Requests beyond the thresholds, of so many.
    pub(crate) over: u64,
    pub(crate) compared: u64,
    /// Requests that would be beyond if the device was like its peers.
    pub(crate) expected: f64,
    pub(crate) p: f64,
    /// `p` among all tests.
    pub(crate) q: f64,
    /// Slow requests that count as one.
    pub(crate) dispersion: f64,
    /// Share of the median peer's requests beyond the same thresholds.
    peer_rate: f64,
    /// How much one request tells of another because the thresholds are estimates.
    correlation: f64,
    /// In order of the strata.
    pub(crate) evidence: Vec<Evidence>,
}

impl Tail {
    pub(super) fn of(matched: &Matched<'_>) -> Self {
        let evidence: Vec<Evidence> = matched.pairs.iter().map(Evidence::of).collect();
        let over = evidence.iter().map(|one| one.over).sum();
        let compared = evidence.iter().map(|one| one.own).sum();
        let expected = evidence.iter().map(|one| one.expected).sum();
        let variance = evidence.iter().map(Evidence::variance).sum();
        let mut tail = Self {
            over,
            compared,
            expected,
            p: 1.0,
            q: 1.0,
            dispersion: 1.0,
            peer_rate: peer_rate(matched, &evidence),
            correlation: correlation(compared as f64, expected, variance),
            evidence,
        };
        tail.p = tail.chance_of_so_many();
        tail
    }

    /// Beyond the threshold of its stratum; none where no peers are.
    pub(crate) fn is_over(&self, stratum: Stratum, bucket: usize) -> Option<bool> {
        let found = self
            .evidence
            .binary_search_by_key(&stratum, |one| one.stratum);
        Some(bucket > self.evidence[found.ok()?].threshold)
    }

    /// Counts so many slow requests as one.
    pub(crate) fn disperse(&mut self, dispersion: f64) {
        self.dispersion = dispersion;
        self.p = self.chance_of_so_many();
    }

    /// Times as many as expected.
    pub(crate) fn relative_risk(&self) -> f64 {
        self.over as f64 / self.expected
    }

    pub(crate) fn fires(&self) -> bool {
        self.q <= LEVEL && self.stands_out()
    }

    /// As one that is asked when another already fired.
    pub(super) fn agrees(&self) -> bool {
        self.p <= LEVEL && self.stands_out()
    }

    /// Whether the difference is one to speak of, if it is no coincidence.
    pub(crate) fn stands_out(&self) -> bool {
        let rate = self.over as f64 / self.compared as f64;
        self.over >= OVER_MIN
            && self.relative_risk() >= RISK_MIN
            && rate >= RISK_TO_PEER_MIN * self.peer_rate
    }

    /// Of how many such requests one slow in five would be found, nine times in ten, among so many
    /// tests; none if its peers have too few for that.
    pub(crate) fn enough(&self, tests: usize) -> Option<u64> {
        let level = LEVEL / tests.max(1) as f64;
        let chance = self.expected / self.compared as f64;
        let mut over = OVER_MIN;
        (super::REQUESTS_MIN..=ENOUGH_MAX).find(|count| {
            over = over.max((RISK_MIN * chance * *count as f64).ceil() as u64);
            while over <= *count && self.chance_of(over, *count, 1.0) > level {
                over += 1;
            }
            binomial_tail(over, *count, SHARE_TO_FIND) >= POWER
        })
    }

    fn chance_of_so_many(&self) -> f64 {
        // Rounded against the device.
        let over = (self.over as f64 / self.dispersion).floor() as u64;
        let compared = (self.compared as f64 / self.dispersion).ceil() as u64;
        self.chance_of(over, compared, self.dispersion)
    }

    /// Chance of so many beyond if the device is like its peers.
    fn chance_of(&self, over: u64, compared: u64, dispersion: f64) -> f64 {
        let chance = self.expected / self.compared as f64;
        let correlation = (self.correlation * dispersion).clamp(1e-9, 0.5);
        let known = 1.0 / correlation - 1.0;
        beta_binomial_tail(over, compared, (known * chance, known * (1.0 - chance)))
    }
}

impl Evidence {
    fn of(pair: &Pair<'_>) -> Self {
        let (threshold, above) = p99(&pair.peers);
        let chance = (above + 1) as f64 / (pair.peers.total as f64 + 1.0);
        Self {
            stratum: pair.stratum,
            own: pair.own.total,
            peers: pair.peers.total,
            devices: pair.members.len() - 1,
            threshold,
            over: pair.own.beyond(threshold),
            expected: pair.own.total as f64 * chance,
            middles: [pair.own.middle(), pair.peers.middle()],
        }
    }

    /// Of the number beyond: beta-binomial.
    fn variance(&self) -> f64 {
        let (count, peers) = (self.own as f64, self.peers as f64);
        let chance = self.expected / count;
        let each = chance * (1.0 - chance);
        count * each + count * (count - 1.0) * each / (peers + 2.0)
    }
}

/// The bucket beyond which at most one of a hundred is, and how many those are.
fn p99(counts: &Counts) -> (usize, u64) {
    let mut above = 0;
    for (bucket, count) in counts.buckets.iter().rev() {
        if (above + count) * 100 > counts.total {
            return (*bucket, above);
        }
        above += count;
    }
    (0, above)
}

/// That of a beta-binomial distribution with this mean and variance.
fn correlation(count: f64, expected: f64, variance: f64) -> f64 {
    if count < 2.0 {
        return 0.0;
    }
    let independent = expected * (1.0 - expected / count);
    (variance / independent - 1.0) / (count - 1.0)
}

/// What share of a peer's requests would be beyond, if it had as many in each stratum as the device:
/// the median over all peers that have some.
fn peer_rate(matched: &Matched<'_>, evidence: &[Evidence]) -> f64 {
    let rate = |peer: usize| {
        let (mut beyond, mut weight) = (0.0, 0.0);
        for (pair, Evidence { threshold, .. }) in matched.pairs.iter().zip(evidence) {
            if let Some(theirs) = pair.of(peer) {
                let ours = pair.own.total as f64;
                beyond += ours * theirs.beyond(*threshold) as f64 / theirs.total as f64;
                weight += ours;
            }
        }
        beyond / weight
    };
    let rates = matched.peers.iter().map(|peer| rate(*peer));
    median(rates).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::strata::counts;
    use super::*;

    #[test]
    fn the_threshold_leaves_one_of_a_hundred_beyond() {
        let check =
            |buckets: &[(usize, u64)], expected| assert_eq!(p99(&counts(buckets)), expected);
        check(&[(5, 99), (6, 1)], (5, 1));
        check(&[(5, 98), (6, 2)], (6, 0));
        check(&[(5, 990), (6, 4), (7, 6)], (5, 10));
        check(&[(5, 1)], (5, 0));
    }

    /// A device with so many requests, against four peers with a hundred each of 100 usual times.
    fn tail(own: &[(usize, u64)]) -> Tail {
        let peers: Vec<(usize, u64)> = (100..200).map(|bucket| (bucket, 1)).collect();
        let mut members = vec![(0, counts(own))];
        members.extend((1..=4).map(|peer| (peer, counts(&peers))));
        let pair = Pair {
            stratum: Stratum::new(0, 4096, 1),
            own: &members[0].1,
            peers: Counts::merged(members[1..].iter().map(|(_, counts)| counts)),
            members: &members,
        };
        Tail::of(&Matched {
            pairs: vec![pair],
            peers: (1..=4).collect(),
        })
    }

    #[test]
    fn the_figures_of_a_device_by_hand() {
        let tail = tail(&[(150, 40), (300, 10)]);
        // Four of 400 peers are beyond 198, so five of 401 are expected for each.
        let [evidence] = tail.evidence.as_slice() else {
            panic!("{tail:?}");
        };
        assert_eq!(
            (evidence.threshold, evidence.own, evidence.peers),
            (198, 50, 400)
        );
        assert_eq!(
            (evidence.devices, evidence.middles),
            (4, [Some(150), Some(149)])
        );
        assert_eq!((tail.over, tail.compared), (10, 50));
        assert!((tail.expected - 50.0 * 5.0 / 401.0).abs() < 1e-12);
        assert!(
            (tail.p / 8.576_685_624_5e-8 - 1.0).abs() < 1e-6,
            "{}",
            tail.p
        );
    }

    /// What is told to be enough is, and one less is not.
    #[test]
    fn enough_requests_find_one_slow_in_five_nine_times_in_ten() {
        let tail = tail(&[(150, 30)]);
        for tests in [1, 10, 100, 1000] {
            let enough = tail.enough(tests).unwrap();
            let level = LEVEL / tests as f64;
            let found = |count: u64| {
                let fires = |over: u64| {
                    over >= 5
                        && over as f64 >= 5.0 * count as f64 * 5.0 / 401.0
                        && tail.chance_of(over, count, 1.0) <= level
                };
                (0..=count)
                    .find(|over| fires(*over))
                    .map_or(0.0, |over| binomial_tail(over, count, 0.2))
            };
            assert!(
                found(enough) >= 0.9 && found(enough - 1) < 0.9,
                "{tests}: {enough}"
            );
        }
        // Where the threshold is hardly known nothing is improbable enough among so many tests.
        let vague = Tail {
            correlation: 0.02,
            ..tail
        };
        assert_eq!(vague.enough(1_000_000_000_000), None);
    }

    #[test]
    fn one_stratum_is_exactly_beta_binomial() {
        // Nine above in 1000 peers: chance 10 / 1001, so one in 1002 of it is shared by all requests.
        let (count, peers, chance) = (200.0, 1000.0, 10.0 / 1001.0);
        let each: f64 = chance * (1.0 - chance);
        let variance = count * each + count * (count - 1.0) * each / (peers + 2.0);
        let found = correlation(count, count * chance, variance);
        assert!((found - 1.0 / 1002.0).abs() < 1e-12, "{found}");
    }
}
