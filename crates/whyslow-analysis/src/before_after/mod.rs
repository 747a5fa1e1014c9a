//! Compares requests before and after a change.
//!
//! Latencies of one run are not independent: a stall slows every request in it, and a worker keeps
//! its connection. So a run is split into blocks, by time at several scales and by worker
//! (`blocks`), and the variation between blocks is used, with the split that gives the largest
//! justified uncertainty. Whether a quantile has moved is tested with the share of requests beyond
//! a common limit, which requires no density and no shape; by how much is estimated by a bootstrap
//! over whole blocks (`quantiles`). The tests of `simulation` measure detection and false positive
//! rates.

mod assertions;
mod blocks;
mod latency;
mod means;
mod quantiles;
#[cfg(test)]
mod rare;
mod read;
#[cfg(test)]
mod replayed;
mod shares;
#[cfg(test)]
mod simulation;
mod slow_mode;
mod spread;
mod tables;
mod verdict;

pub use assertions::{Assertion, Outcome, check, check_table};
pub use latency::Latency;
pub use read::{Request, Requests, UNKNOWN_ENDPOINT};
pub use tables::{CompareOptions, Compared, compare_requests};
pub use verdict::{LEVEL, Verdict};

use whyslow_model::Ns;

use crate::statistics::adjusted;
use blocks::Both;
use means::Means;
use quantiles::Quantile;
use shares::Share;

/// Percentiles that are compared.
pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// One side: measured requests in time order.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    latencies: Vec<Latency>,
    /// Requests with a duration.
    timed: Vec<Latency>,
}

impl Side {
    pub(crate) fn of(mut latencies: Vec<Latency>) -> Self {
        latencies.sort_by_key(|one| (one.ts, one.worker, one.dur));
        let timed = latencies.iter().filter(|one| one.dur.is_some());
        Self {
            timed: timed.copied().collect(),
            latencies,
        }
    }
}

/// The comparison of two sets of requests.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub(crate) quantiles: Vec<Quantile>,
    /// Minimum and maximum of each side, ns; `None` if one has no durations.
    pub(crate) extremes: Option<[(f64, f64); 2]>,
    /// Limit, and shares of requests over it.
    pub(crate) over: Option<(Ns, Share)>,
    /// Shares of failed requests.
    pub(crate) failed: Share,
    pub(crate) means: Option<Means>,
}

/// `limit`: requests that take longer are slow; by default, it is chosen from their durations.
pub(crate) fn compare(before: &Side, after: &Side, limit: Option<Ns>) -> Comparison {
    let requests = [&before.timed, &after.timed].map(Vec::as_slice);
    let limit = limit.or_else(|| slow_mode::limit(requests));
    let all = Both::of([&before.latencies, &after.latencies]);
    let timed = Both::of(requests);
    let lengths = requests.map(quantiles::Lengths::of);
    let extremes = match lengths.each_ref().map(quantiles::Lengths::extremes) {
        [Some(before), Some(after)] => Some([before, after]),
        _ => None,
    };
    let quantiles = QUANTILES.iter();
    let share = |blocks: &Both, of: [&[Latency]; 2], is: &dyn Fn(&Latency) -> bool| {
        shares::compare(
            blocks,
            of.map(|side| side.iter().map(|one| f64::from(is(one))).collect()),
        )
    };
    Comparison {
        quantiles: quantiles
            .map(|quantile| quantiles::compare(*quantile, &timed, &lengths))
            .collect(),
        extremes,
        over: limit.map(|limit| {
            let is_over = |one: &Latency| one.dur.is_some_and(|dur| dur > limit);
            (limit, share(&timed, requests, &is_over))
        }),
        failed: share(
            &all,
            [&before.latencies, &after.latencies].map(Vec::as_slice),
            &|one| one.failed,
        ),
        means: means::compare(&timed, requests),
    }
}

impl Comparison {
    /// p values of all tests that could be run, for joint adjustment with others.
    pub(crate) fn p_values(&mut self) -> impl Iterator<Item = &mut f64> {
        let quantiles = self.quantiles.iter_mut().filter_map(|one| one.p.as_mut());
        let over = self.over.iter_mut();
        let over = over.filter_map(|(_, share)| share.p.as_mut());
        let mean = self.means.iter_mut().filter_map(|means| means.p.as_mut());
        quantiles
            .chain(over)
            .chain(self.failed.p.as_mut())
            .chain(mean)
    }

    /// The verdict over all statistics, with adjusted p values.
    pub(crate) fn verdict(&self, least: f64) -> Verdict {
        let quantiles = self.quantiles.iter().map(Quantile::difference);
        let mean = self.means.as_ref().map(Means::difference);
        let relative = quantiles.chain(mean).map(|one| Verdict::of(one, least));
        let shares = self
            .over
            .iter()
            .map(|(_, share)| share)
            .chain([&self.failed]);
        let shares = shares.map(|one| Verdict::of(one.difference(), 0.0));
        relative.chain(shares).fold(Verdict::TooFew, Verdict::and)
    }
}

/// Adjusts the p values of several comparisons jointly.
pub(crate) fn adjust(comparisons: &mut [Comparison]) {
    let mut all: Vec<&mut f64> = comparisons
        .iter_mut()
        .flat_map(Comparison::p_values)
        .collect();
    let values: Vec<f64> = all.iter().map(|p| **p).collect();
    for (p, adjusted) in all.iter_mut().zip(adjusted(&values)) {
        **p = adjusted;
    }
}
