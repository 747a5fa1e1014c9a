//! The usual durations of a key, and which items are slow.
//!
//! Durations are skewed, so logarithms are used: their median, and the median absolute deviation
//! (MAD), which are robust against slow items up to half of all. An item is slow if it is beyond
//! four standard deviations (estimated from the MAD) and beyond three times the median, because
//! smaller differences do not matter where durations hardly vary.

use std::collections::BTreeMap;

use whyslow_model::Ns;

use super::Item;
use super::ranks::{deviation, median, quantile};

/// Keys with fewer items are pooled.
pub const ITEMS_MIN: usize = 20;
/// Standard deviation of a normal distribution divided by its MAD.
pub const MAD_TO_SIGMA: f64 = 1.4826;
const SIGMAS: f64 = 4.0;
const TIMES_MIN: f64 = 3.0;

/// The usual durations of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// Median duration, ns.
    pub median: f64,
    /// Median absolute deviation, ns.
    pub mad: f64,
    /// Standard deviation of the logarithm, from its MAD.
    pub sigma: f64,
    /// Items with a longer duration are slow, ns.
    pub limit: f64,
    /// Number of items it is computed from.
    pub count: usize,
    /// Computed from all keys with few items.
    pub is_pooled: bool,
}

/// The usual durations of all keys, and which items are slow.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    by_key: BTreeMap<u32, Usual>,
    /// By key and result, for keys whose items have different results.
    by_result: BTreeMap<(u32, u32), Usual>,
    rest: Option<Usual>,
    objective: f64,
    /// Whether each item is slow.
    pub slow: Vec<bool>,
}

impl Normal {
    /// Classifies items by the baseline, or by the items themselves for keys with few items in it;
    /// durations up to `objective` (ns) are never slow.
    pub fn of(items: &[Item], baseline: &[Item], objective: Option<Ns>) -> Self {
        let mut times = times_by_key(baseline);
        times.retain(|_, times| times.len() >= ITEMS_MIN);
        for (key, own) in times_by_key(items) {
            times.entry(key).or_insert(own);
        }
        let objective = objective.unwrap_or(0) as f64;
        let (many, few): (Vec<_>, Vec<_>) = times
            .into_iter()
            .partition(|(_, times)| times.len() >= ITEMS_MIN);
        let mut rest: Vec<f64> = few.into_iter().flat_map(|(_, times)| times).collect();
        if rest.len() < ITEMS_MIN {
            // With too few items, those of all keys are the best estimate.
            rest.extend(many.iter().flat_map(|(_, times)| times));
        }
        let mut normal = Self {
            by_key: BTreeMap::new(),
            by_result: by_result(items, baseline, objective),
            objective,
            rest: Usual::of(rest, objective).map(|usual| Usual {
                is_pooled: true,
                ..usual
            }),
            slow: Vec::new(),
        };
        for (key, times) in many {
            if let Some(usual) = Usual::of(times, objective) {
                normal.by_key.insert(key, usual);
            }
        }
        let is_slow = |item: &Item| {
            let usual = normal.usual_of(item);
            usual.is_some_and(|usual| item.dur as f64 > usual.limit)
        };
        let slow = items.iter().map(is_slow).collect();
        Self { slow, ..normal }
    }

    /// The usual durations of a key; for a key with too few items those of all such keys, or of all
    /// items if even these are too few. `None` without items.
    pub fn usual(&self, key: u32) -> Option<Usual> {
        self.by_key.get(&key).copied().or(self.rest)
    }

    /// The usual durations of items with the key and the result of this one; of its key, if there
    /// are too few with that result, or if it failed.
    fn usual_of(&self, item: &Item) -> Option<Usual> {
        let same = self.by_result.get(&(item.key, item.result));
        let same = same.filter(|_| !item.failed).copied();
        same.or_else(|| self.usual(item.key))
    }

    /// Whether an item counts as slow if it belongs to a slow mode.
    pub fn may_be_slow(&self, item: &Item) -> bool {
        let dur = item.dur as f64;
        let is_long = |usual: Usual| dur > TIMES_MIN * usual.median && dur > self.objective;
        self.usual_of(item).is_some_and(is_long)
    }

    /// Duration of an item minus the median of its key and result, ns.
    pub fn excess(&self, item: &Item) -> f64 {
        item.dur as f64 - self.usual_of(item).map_or(0.0, |usual| usual.median)
    }

    /// Logarithm of the duration of an item divided by the median of its key and result.
    pub fn log_ratio(&self, item: &Item) -> f64 {
        let usual = self.usual_of(item).map_or(1.0, |usual| usual.median);
        (at_least_one(item.dur) / usual.max(1.0)).ln()
    }
}

impl Usual {
    fn of(mut times: Vec<f64>, objective: f64) -> Option<Self> {
        times.sort_unstable_by(f64::total_cmp);
        let middle = quantile(&times, 0.5)?;
        let log = median(times.iter().map(|time| time.ln()).collect())?;
        let logs = times.iter().map(|time| time.ln());
        let sigma = MAD_TO_SIGMA * deviation(logs, log)?;
        let limit = middle * (SIGMAS * sigma).exp().max(TIMES_MIN);
        Some(Self {
            median: middle,
            mad: deviation(times.iter().copied(), middle)?,
            sigma,
            limit: limit.max(objective),
            count: times.len(),
            is_pooled: false,
        })
    }
}

fn times_by_key(items: &[Item]) -> BTreeMap<u32, Vec<f64>> {
    times_by(items, |item| item.key)
}

/// Durations of items that did not fail.
fn times_by<K: Ord>(items: &[Item], key: impl Fn(&Item) -> K) -> BTreeMap<K, Vec<f64>> {
    let mut times: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for item in items.iter().filter(|item| !item.failed) {
        let of_key = times.entry(key(item)).or_default();
        of_key.push(at_least_one(item.dur));
    }
    times
}

/// The usual durations by key and result, of keys with several results.
fn by_result(items: &[Item], baseline: &[Item], objective: f64) -> BTreeMap<(u32, u32), Usual> {
    let both = |item: &Item| (item.key, item.result);
    let mut times = times_by(baseline, both);
    times.retain(|_, times| times.len() >= ITEMS_MIN);
    for (key, own) in times_by(items, both) {
        times.entry(key).or_insert(own);
    }
    let mut results: BTreeMap<u32, usize> = BTreeMap::new();
    for (key, _) in times.keys() {
        *results.entry(*key).or_default() += 1;
    }
    let times = times.into_iter();
    let times = times.filter(|((key, _), times)| times.len() >= ITEMS_MIN && results[key] > 1);
    times
        .filter_map(|(both, times)| Some((both, Usual::of(times, objective)?)))
        .collect()
}

/// A duration of 0 ns is below the clock's resolution.
fn at_least_one(dur: Ns) -> f64 {
    dur.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: u32, dur: Ns) -> Item {
        Item {
            ts: 0,
            dur,
            key,
            object: super::super::UNIDENTIFIED,
            worker: super::super::UNIDENTIFIED,
            failed: false,
            result: 0,
            wait_ns_max: None,
        }
    }

    #[test]
    fn slow_is_beyond_three_times_and_four_deviations() {
        // Durations of 100 ± 10 %: σ of the logarithm is about .07, so three times the median
        // decides.
        let mut items: Vec<Item> = (90..=110).map(|dur| item(1, dur)).collect();
        items.extend([item(1, 299), item(1, 310)]);
        let normal = Normal::of(&items, &[], None);
        assert_eq!(normal.slow.iter().filter(|slow| **slow).count(), 1);
        assert!(normal.slow[22]);
        // The objective takes precedence.
        assert!(!Normal::of(&items, &[], Some(310)).slow[22]);
        // Powers of two from 1 to 1024: median 32, MAD of the logarithm ln 8.
        let items: Vec<Item> = (0..=20).map(|at| item(2, 1 << (at / 2))).collect();
        let usual = Normal::of(&items, &[], None).usual(2).unwrap();
        assert_eq!((usual.median, usual.count), (32.0, 21));
        let sigma = MAD_TO_SIGMA * 8f64.ln();
        assert!((usual.sigma - sigma).abs() < 1e-9, "{usual:?}");
        assert!((usual.limit / (32.0 * (4.0 * sigma).exp()) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn keys_with_few_items_are_judged_together() {
        let mut items: Vec<Item> = (0..5).flat_map(|key| vec![item(key, 100); 6]).collect();
        items.push(item(5, 1000));
        let normal = Normal::of(&items, &[], None);
        assert!(normal.usual(5).unwrap().is_pooled && normal.slow[30]);
        assert_eq!(normal.excess(&items[30]), 900.0);
    }

    #[test]
    fn a_baseline_tells_what_is_usual() {
        let baseline = vec![item(1, 100); 20];
        let items = [vec![item(1, 1000); 30], vec![item(2, 1000); 30]].concat();
        let normal = Normal::of(&items, &baseline, None);
        assert!(normal.slow[..30].iter().all(|slow| *slow));
        assert!(!normal.slow[30..].contains(&true));
        // Early failures are not usual.
        let failed = |dur| Item {
            failed: true,
            ..item(1, dur)
        };
        let items = [
            vec![failed(1); 40],
            vec![item(1, 100); 20],
            vec![failed(900)],
        ]
        .concat();
        let normal = Normal::of(&items, &[], None);
        assert_eq!(normal.usual(1).unwrap().median, 100.0);
        assert!(normal.slow[60] && !normal.slow[0]);
    }
    #[test]
    fn items_with_another_result_do_not_show_what_is_usual() {
        let with = |result, dur| Item {
            result,
            ..item(1, dur)
        };
        // 304 replies of 1 ms and 200 replies of 100 ms: none is slow, except for one of each.
        let (short, long) = (1_000_000, 100_000_000);
        let mut items = [vec![with(3, short); 400], vec![with(2, long); 40]].concat();
        items.extend([with(3, long), with(2, 9 * long)]);
        let normal = Normal::of(&items, &[], None);
        let slow: Vec<usize> = (0..items.len()).filter(|at| normal.slow[*at]).collect();
        assert_eq!(slow, [440, 441]);
        assert_eq!(normal.excess(&items[400]), 0.0);
        // With fewer than 20 of a result, there is only the key to compare with.
        let normal = Normal::of(&items[..410], &[], None);
        assert!(normal.slow[409]);
    }
}
