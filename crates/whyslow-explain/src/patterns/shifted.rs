//! T1: whether everything is slower than before.
//!
//! The tenth percentile is tested, too, because load slows down even the fastest operations,
//! whereas occasional waits do not. The rank test guards keys with few items: their percentiles
//! vary by half by chance.

use std::collections::BTreeMap;

use whyslow_analysis::statistics::normal_tail;

use whyslow_model::sort::{IndexSort, float_key};

use super::Item;
use super::normal::ITEMS_MIN;
use super::ranks::{mann_whitney, quantile};

const RATIO_MIN: f64 = 1.5;
const SHARE_MIN: f64 = 0.7;

/// Durations compared with those of the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shifted {
    /// Share of items of keys with p10 and p50 of at least 1.5 times the baseline's.
    pub share: f64,
    /// Medians of the ratios over items: p10, p50, p90.
    pub ratios: [f64; 3],
    /// Keys with twenty items in both.
    pub keys: usize,
    /// Significance of the rank test over all keys, one-sided.
    pub p: f64,
}

impl Shifted {
    /// Whether enough of the items are slower, whatever `p` is.
    pub fn is_much(&self) -> bool {
        self.share >= SHARE_MIN
    }
}

/// None if no key has twenty items in both.
pub fn shifted(items: &[Item], baseline: &[Item]) -> Option<Shifted> {
    let (now, before) = (times_by_key(items), times_by_key(baseline));
    let (mut all, mut much, mut z_sum, mut variance) = (0.0, 0.0, 0.0, 0.0);
    let mut ratios: [Vec<(f64, f64)>; 3] = Default::default();
    let mut keys = 0;
    for (key, ours) in &now {
        let Some(theirs) = before.get(key) else {
            continue;
        };
        if ours.len() < ITEMS_MIN || theirs.len() < ITEMS_MIN {
            continue;
        }
        let weight = ours.len() as f64;
        let ratio = |share| Some(quantile(ours, share)? / quantile(theirs, share)?.max(1.0));
        let found = [ratio(0.1)?, ratio(0.5)?, ratio(0.9)?];
        keys += 1;
        all += weight;
        if found[0] >= RATIO_MIN && found[1] >= RATIO_MIN {
            much += weight;
        }
        for (ratios, ratio) in ratios.iter_mut().zip(found) {
            ratios.push((ratio, weight));
        }
        // Each key is weighted by the square root of its items (Stouffer, Liptak).
        z_sum += weight.sqrt() * mann_whitney(ours, theirs)?.z;
        variance += weight;
    }
    (keys > 0).then(|| Shifted {
        share: much / all,
        ratios: ratios.map(weighted_median),
        keys,
        p: normal_tail(z_sum / variance.sqrt()),
    })
}

/// Sorted durations by key and result.
fn times_by_key(items: &[Item]) -> BTreeMap<(u32, u32), Vec<f64>> {
    let mut times: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for item in items.iter().filter(|item| !item.failed) {
        let time = item.dur.max(1) as f64;
        times.entry((item.key, item.result)).or_default().push(time);
    }
    for times in times.values_mut() {
        times.sort_unstable_by(f64::total_cmp);
    }
    times
}

fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.index_sort_by_ints(|one| [float_key(one.0), 0, 0]);
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut before = 0.0;
    for (value, weight) in &values {
        before += weight;
        if before >= half {
            return *value;
        }
    }
    1.0
}
