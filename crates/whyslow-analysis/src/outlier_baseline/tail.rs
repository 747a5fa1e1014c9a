//! Tests whether a device has a heavier tail than its peers (exceedance test).
//!
//! In each stratum, the 99th percentile of the peers is the threshold; `k` of the device's `n`
//! requests exceed it. Under the null hypothesis, with `e` of the peers' `N` requests beyond,
//! another value is beyond with probability `(e + 1) / (N + 1)`, whatever the distribution. So the
//! counts of a stratum are beta-binomial with `e + 1` and `N - e`: binomial, with a probability
//! that is itself estimated from `N` requests. A plain binomial test treats the threshold as exact
//! and fires too often if peers have few requests.
//!
//! Strata are added: the expected counts, and the variances, from which one beta-binomial
//! distribution for the sum is derived (exact for one stratum). Combining strata keeps the power if
//! a device has few requests in each.
//!
//! Significance alone is not enough: a large `n` makes any difference significant. The device also
//! needs at least five requests beyond, five times as many as expected, and twice the rate of the
//! median peer: with two types of peers, half of them fast, all of the slow half would be
//! exceptional.

use super::strata::{Counts, Stratum};
use super::{LEVEL, Matched, Pair, median};
use crate::statistics::{beta_binomial_tail, binomial_tail};

/// Fewer are considered a coincidence, however improbable.
const OVER_MIN: u64 = 5;
/// Required ratio to the expected number …
const RISK_MIN: f64 = 5.0;
/// … and to the median peer.
const RISK_TO_PEER_MIN: f64 = 2.0;

/// Fault that a test should be able to find: a device with this share of requests beyond …
const SHARE_TO_FIND: f64 = 0.2;
/// … with this probability.
const POWER: f64 = 0.9;
/// Larger suggestions are not useful.
const ENOUGH_MAX: u64 = 1000;

/// A stratum with the counts of a device and its peers.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) stratum: Stratum,
    /// Requests of the device and of its peers, and the number of these peers.
    pub(crate) own: u64,
    pub(crate) peers: u64,
    pub(crate) devices: usize,
    /// Bucket of the peers' 99th percentile, and the device's requests beyond it.
    pub(crate) threshold: usize,
    pub(crate) over: u64,
    /// Expected number beyond under the null hypothesis.
    pub(crate) expected: f64,
    /// Buckets of the medians of the device and its peers.
    pub(crate) middles: [Option<usize>; 2],
}

/// Slow requests of a device, compared with its peers.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// Requests beyond the thresholds, and the number compared.
    pub(crate) over: u64,
    pub(crate) compared: u64,
    /// Expected number beyond under the null hypothesis.
    pub(crate) expected: f64,
    pub(crate) p: f64,
    /// Adjusted `p`.
    pub(crate) q: f64,
    /// Number of slow requests that count as one.
    pub(crate) dispersion: f64,
    /// Share of the median peer's requests beyond the same thresholds.
    peer_rate: f64,
    /// Correlation between requests that results from estimating the thresholds.
    correlation: f64,
    /// In stratum order.
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

    /// Whether it is beyond the threshold of its stratum; `None` without peers there.
    pub(crate) fn is_over(&self, stratum: Stratum, bucket: usize) -> Option<bool> {
        let found = self
            .evidence
            .binary_search_by_key(&stratum, |one| one.stratum);
        Some(bucket > self.evidence[found.ok()?].threshold)
    }

    /// Counts this many slow requests as one.
    pub(crate) fn disperse(&mut self, dispersion: f64) {
        self.dispersion = dispersion;
        self.p = self.chance_of_so_many();
    }

    /// Ratio to the expected number.
    pub(crate) fn relative_risk(&self) -> f64 {
        self.over as f64 / self.expected
    }

    pub(crate) fn fires(&self) -> bool {
        self.q <= LEVEL && self.stands_out()
    }

    /// Confirms a finding of another test, without correction for multiple tests.
    pub(super) fn agrees(&self) -> bool {
        self.p <= LEVEL && self.stands_out()
    }

    /// Whether the difference is relevant, provided that it is significant.
    pub(crate) fn stands_out(&self) -> bool {
        let rate = self.over as f64 / self.compared as f64;
        self.over >= OVER_MIN
            && self.relative_risk() >= RISK_MIN
            && rate >= RISK_TO_PEER_MIN * self.peer_rate
    }

    /// Number of such requests with which one slow in five would be found nine times in ten, among
    /// this many tests; `None` if its peers have too few for that.
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
        // Rounded in favour of the null hypothesis.
        let over = (self.over as f64 / self.dispersion).floor() as u64;
        let compared = (self.compared as f64 / self.dispersion).ceil() as u64;
        self.chance_of(over, compared, self.dispersion)
    }

    /// Probability of this many beyond under the null hypothesis.
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

    /// Variance of the number beyond: beta-binomial.
    fn variance(&self) -> f64 {
        let (count, peers) = (self.own as f64, self.peers as f64);
        let chance = self.expected / count;
        let each = chance * (1.0 - chance);
        count * each + count * (count - 1.0) * each / (peers + 2.0)
    }
}

/// The bucket beyond which at most one in a hundred is, and their number.
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

/// Correlation of a beta-binomial distribution with this mean and variance.
fn correlation(count: f64, expected: f64, variance: f64) -> f64 {
    if count < 2.0 {
        return 0.0;
    }
    let independent = expected * (1.0 - expected / count);
    (variance / independent - 1.0) / (count - 1.0)
}

/// Share of a peer's requests that would be beyond if it had as many in each stratum as the device:
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

    /// A device with these requests, against four peers with a hundred each of 100 typical times.
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
        // Four of 400 peer requests are beyond 198, so five of 401 are expected for each.
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

    /// The suggested number is sufficient, and one less is not.
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
        // If the threshold is very uncertain, nothing is significant among this number of tests.
        let vague = Tail {
            correlation: 0.02,
            ..tail
        };
        assert_eq!(vague.enough(1_000_000_000_000), None);
    }

    #[test]
    fn one_stratum_is_exactly_beta_binomial() {
        // Nine above in 1000 peers: probability 10 / 1001, so the correlation is one in 1002.
        let (count, peers, chance) = (200.0, 1000.0, 10.0 / 1001.0);
        let each: f64 = chance * (1.0 - chance);
        let variance = count * each + count * (count - 1.0) * each / (peers + 2.0);
        let found = correlation(count, count * chance, variance);
        assert!((found - 1.0 / 1002.0).abs() < 1e-12, "{found}");
    }
}
