//! Overdispersion of slow requests: how much they come in bursts.
//!
//! Tests assume that requests are independent. A device that stalls for a second makes all requests
//! of that second slow, but they are a single event. The ratio of the variance of counts per time
//! slice to the variance under independence (Pearson's statistic divided by its degrees of freedom,
//! as for quasi-binomial models) estimates how many requests count as one; it stays near 1 for a
//! device whose slow requests are spread out, however many there are.
//!
//! A burst that is longer than a slice counts several times, so slices four times as long are used
//! too, and the greater ratio applies.

use std::collections::BTreeMap;

use whyslow_model::Ns;

/// Number of slices per time range, and limits of their length.
const COUNT: i64 = 50;
const LENGTH_MIN: Ns = 10_000_000;
const LENGTH_MAX: Ns = 1_000_000_000;
const LONGER: i64 = 4;

/// Requests of a device in time slices.
#[derive(Debug, Clone)]
pub(crate) struct Slices {
    length: Ns,
    slices: BTreeMap<i64, Slice>,
}

/// Requests of a time slice, and how many of them were slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Slice {
    requests: u64,
    slow: u64,
}

impl Slices {
    /// Slices for a time range of this length.
    pub(crate) fn new(time: Ns) -> Self {
        Self {
            length: (time / COUNT).clamp(LENGTH_MIN, LENGTH_MAX),
            slices: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, issue: Ns, is_slow: bool) {
        let slice = self.slices.entry(issue.div_euclid(self.length));
        let slice = slice.or_default();
        slice.requests += 1;
        slice.slow += u64::from(is_slow);
    }

    /// How many slow requests count as one; at least 1.
    pub(crate) fn dispersion(&self) -> f64 {
        let mut longer: BTreeMap<i64, Slice> = BTreeMap::new();
        for (number, slice) in &self.slices {
            let sum = longer.entry(number.div_euclid(LONGER)).or_default();
            sum.requests += slice.requests;
            sum.slow += slice.slow;
        }
        let short = dispersion(self.slices.values());
        short.max(dispersion(longer.values()))
    }
}

fn dispersion<'s>(slices: impl Iterator<Item = &'s Slice> + Clone) -> f64 {
    let count = slices.clone().count();
    let requests: u64 = slices.clone().map(|slice| slice.requests).sum();
    let slow: u64 = slices.clone().map(|slice| slice.slow).sum();
    // With all slow, none slow, or all in one slice, there is no variance to estimate.
    if count < 2 || slow == 0 || slow == requests {
        return 1.0;
    }
    let rate = slow as f64 / requests as f64;
    let term = |slice: &Slice| {
        let expected = slice.requests as f64 * rate;
        (slice.slow as f64 - expected).powi(2) / (expected * (1.0 - rate))
    };
    let sum: f64 = slices.map(term).sum();
    (sum / (count - 1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of 100 requests each.
    fn of(slow: impl IntoIterator<Item = u64>) -> f64 {
        let mut slices = Slices::new(COUNT * LENGTH_MIN);
        for (number, slow) in (0..).zip(slow) {
            for request in 0..100 {
                slices.add(number * LENGTH_MIN + request as Ns, request < slow);
            }
        }
        slices.dispersion()
    }

    #[test]
    fn a_burst_counts_for_little_and_spread_ones_each_for_one() {
        let burst = |length: u64| {
            (0..48).map(move |at| {
                if (20..20 + length).contains(&at) {
                    50
                } else {
                    0
                }
            })
        };
        assert!(of(burst(1)) > 49.0, "{}", of(burst(1)));
        assert!(of(burst(4)) > 150.0, "{}", of(burst(4)));
        assert_eq!(of([20; 48]), 1.0);
        assert_eq!(of((0..48).map(|slice| 18 + slice % 5)), 1.0);
    }

    #[test]
    fn nothing_is_told_of_one_slice_or_of_none_slow() {
        assert_eq!(of([50]), 1.0);
        assert_eq!(of([]), 1.0);
        assert_eq!(of([0, 0, 0]), 1.0);
        assert_eq!(of([100, 100]), 1.0);
    }

    /// 0 and 20 of 100 each: rate .1, (100 + 100) / (100 × .1 × .9) by one degree of freedom.
    #[test]
    fn the_figure_by_hand() {
        let found = of([0, 20]);
        assert!((found - 200.0 / 9.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn slices_are_neither_too_short_nor_too_long() {
        assert_eq!(Slices::new(0).length, LENGTH_MIN);
        assert_eq!(Slices::new(Ns::MAX).length, LENGTH_MAX);
        assert_eq!(Slices::new(5_000_000_000).length, 100_000_000);
    }
}
