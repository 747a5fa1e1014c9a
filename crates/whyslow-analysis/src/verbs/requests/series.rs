//! Requests and failures of one client per part of the time, and bursts of them. For the test, see
//! `burst_test`.

use whyslow_model::Ns;

use super::burst_test::{
    CHANCE_MAX, TIMES_MIN, chance_of_errors, chance_of_flood, densest, median,
};

/// Default number of parts.
const PARTS: i64 = 200;
/// Shorter parts would turn clusters of related requests into bursts.
const WIDTH_MIN: Ns = 10_000_000;
/// Minimum number of requests of a flood, and of failures of a burst.
pub(super) const REQUESTS_MIN: u64 = 20;
pub(super) const ERRORS_MIN: u64 = 5;
/// A flood with a smaller share of all requests in its time is irrelevant.
const SHARE_MIN: f64 = 0.3;

/// Width of a part for this time range, ns.
pub fn part_width(whole: Ns) -> Ns {
    let whole = whole.max(1);
    ((whole + PARTS - 1) / PARTS).max(WIDTH_MIN).min(whole)
}

/// Requests and failures per part of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Requests that started in each part.
    pub requests: Vec<u64>,
    /// Those of them that failed.
    pub errors: Vec<u64>,
}

/// What exceeds its usual rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstOf {
    /// More requests than usual.
    Requests,
    /// More failures than usual.
    Errors,
}

/// Parts `first..=last` of a series with more than usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// What exceeds its usual rate.
    pub of: BurstOf,
    /// First part, counted from 0.
    pub first: usize,
    /// Last part, inclusive.
    pub last: usize,
    /// Number of requests or failures in it …
    pub count: u64,
    /// … and the number of requests it is compared with: of all clients in that time, or of this
    /// one.
    pub among: u64,
    /// For requests the usual number per part; for failures the share of others' requests that
    /// fail.
    pub usual: f64,
    /// Ratio to the usual number; `None` if that is zero.
    pub times: Option<f64>,
    /// Upper bound of the p value, over all stretches and series.
    pub chance: f64,
    /// Number of requests or failures above the usual number.
    pub excess: f64,
}

impl Series {
    /// A series without requests.
    pub fn empty(parts: usize) -> Self {
        Self {
            requests: vec![0; parts],
            errors: vec![0; parts],
        }
    }

    /// Whether it has enough requests or failures for a test.
    pub fn is_enough(&self) -> bool {
        self.count() >= REQUESTS_MIN || self.errors() >= ERRORS_MIN
    }

    /// A flood and an error burst of one client among `series` clients; `total` has the requests of
    /// all.
    pub fn bursts(&self, total: &Series, series: usize) -> impl Iterator<Item = Burst> + use<> {
        let both = [self.flood(total, series), self.failing(total, series)];
        both.into_iter().flatten()
    }

    fn count(&self) -> u64 {
        self.requests.iter().sum()
    }

    fn errors(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// A stretch with far more requests than the rest.
    fn flood(&self, total: &Series, series: usize) -> Option<Burst> {
        let parts = self.requests.len();
        let even = vec![1; parts];
        let mean = self.count() as f64 / parts as f64;
        let rate = (TIMES_MIN * median(&self.requests)).max(mean);
        let stretch = densest(&self.requests, &even, rate)?;
        let (count, among) = (stretch.sum(&self.requests), stretch.sum(&total.requests));
        let inside = stretch.sum(&even);
        let rest = parts as u64 - inside;
        let usual = (rest > 0).then(|| (self.count() - count) as f64 / rest as f64)?;
        let times = (usual > 0.0).then(|| count as f64 / inside as f64 / usual);
        let chance = chance_of_flood(&self.requests, stretch, series);
        let is_one = count >= REQUESTS_MIN
            && count as f64 >= SHARE_MIN * among as f64
            && times.is_none_or(|times| times >= TIMES_MIN)
            && chance < CHANCE_MAX;
        is_one.then_some(Burst {
            of: BurstOf::Requests,
            first: stretch.first,
            last: stretch.last,
            count,
            among,
            usual,
            times,
            chance,
            excess: count as f64 - usual * inside as f64,
        })
    }

    /// A stretch in which its requests failed far more often than at other times, and than those of
    /// others at the same time.
    fn failing(&self, total: &Series, series: usize) -> Option<Burst> {
        let share = |failed: u64, all: u64| (failed + 1) as f64 / (all + 2) as f64;
        let own = self.errors() as f64 / self.count().max(1) as f64;
        let others = share(total.errors() - self.errors(), total.count() - self.count());
        let has_others = total.count() > self.count();
        let rate = if has_others {
            (TIMES_MIN * others).max(own / 2.0)
        } else {
            own / 2.0
        };
        let stretch = densest(&self.errors, &self.requests, rate.min(0.5))?;
        let (count, among) = (stretch.sum(&self.errors), stretch.sum(&self.requests));
        let (errors, requests) = (stretch.sum(&total.errors), stretch.sum(&total.requests));
        let elsewhere = share(total.errors() - count, total.count() - among);
        let then = if requests > among {
            share(errors - count, requests - among)
        } else {
            0.0
        };
        let usual = elsewhere.max(then);
        let chance = chance_of_errors((count, among), usual, (self.errors.len(), series));
        let times = count as f64 / among.max(1) as f64 / usual;
        let is_one = count >= ERRORS_MIN && chance < CHANCE_MAX;
        is_one.then_some(Burst {
            of: BurstOf::Errors,
            first: stretch.first,
            last: stretch.last,
            count,
            among,
            usual,
            times: Some(times),
            chance,
            excess: count as f64 - usual * among as f64,
        })
    }
}
