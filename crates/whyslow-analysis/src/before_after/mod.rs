//! Whether a change helped: requests before it and after it.
//!
//! Latencies of one run are no independent values: a stall makes slow whatever comes in it, and a
//! worker keeps its connection. So a run is cut into blocks, by time at several scales and by worker
//! (`blocks`), and what counts is how much blocks differ: of all these ways to cut it the one that
//! makes a figure least certain. Whether a quantile has moved is asked of the share of requests beyond
//! a common limit, which needs no density and no shape; how far it has moved is told by drawing whole
//! blocks again (`quantiles`). At which rate this finds a shift, and at which it fires for nothing,
//! is what the tests of `simulation` ask.

mod assertions;
mod blocks;
mod means;
mod quantiles;
mod read;
#[cfg(test)]
mod replayed;
mod shares;
#[cfg(test)]
mod simulation;
mod spread;
mod tables;
mod verdict;

pub use assertions::{Assertion, Outcome, check, check_table};
pub use read::{Request, Requests};
pub use tables::{Asked, Compared, compare_requests};
pub use verdict::Verdict;

use whyslow_model::Ns;

use crate::statistics::adjusted;
use blocks::Both;
use means::Means;
use quantiles::Quantile;
use shares::Share;

/// Share of false alarms, over all tests of one comparison.
pub const LEVEL: f64 = 0.05;

/// What is asked for: percentiles.
pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A request as the comparison sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// When it began, ns since the epoch.
    pub ts: Ns,
    /// ns; none of one that failed before anything could be timed.
    pub dur: Option<Ns>,
    /// Whether it counts as an error.
    pub failed: bool,
    /// Who did it, one after another; requests of one may have things in common.
    pub worker: u32,
    /// ns, by place among the names of phases.
    pub phases: [Ns; read::PHASES_MAX],
}

/// One side: what was measured, in order of time.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    latencies: Vec<Latency>,
    /// Those with a length.
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

/// All that is compared of two sets of requests.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub(crate) quantiles: Vec<Quantile>,
    /// Slower than the limit, and failed.
    pub(crate) over: Option<Share>,
    pub(crate) failed: Share,
    pub(crate) means: Option<Means>,
}

pub(crate) fn compare(before: &Side, after: &Side, limit: Option<Ns>) -> Comparison {
    let requests = [&before.timed, &after.timed].map(Vec::as_slice);
    let all = Both::of([&before.latencies, &after.latencies]);
    let timed = Both::of(requests);
    let lengths = requests.map(quantiles::Lengths::of);
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
        over: limit.map(|limit| {
            let is_over = |one: &Latency| one.dur.is_some_and(|dur| dur > limit);
            share(&timed, requests, &is_over)
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
    /// p values of all tests that could be made, to be adjusted together with those of others.
    pub(crate) fn p_values(&mut self) -> impl Iterator<Item = &mut f64> {
        let quantiles = self.quantiles.iter_mut().filter_map(|one| one.p.as_mut());
        let over = self.over.iter_mut().filter_map(|one| one.p.as_mut());
        quantiles.chain(over).chain(self.failed.p.as_mut())
    }
}

/// Makes p values of several comparisons the least level at which each counts among all.
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
