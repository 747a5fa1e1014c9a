//! What slow requests have in common that others lack: column values, and what threads did for
//! them.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::statistics::{adjusted, hypergeometric_tail};
use whyslow_model::sort::IndexSort;

use crate::patterns::LEVEL;

/// Minimum ratio of the frequency among slow requests to that among the others.
const RISK_MIN: f64 = 2.0;
/// Columns with more distinct values are not useful.
const VALUES_MAX: usize = 2000;
/// Maximum number of contrasts.
const CONTRASTS_MAX: usize = 5;
/// Minimum number of independent slow requests.
const SLOW_MIN: f64 = 5.0;

/// Values of the requests as text, by column: `worker`, `3`.
#[derive(Debug, Default)]
pub(super) struct Columns {
    values: BTreeMap<&'static str, FxHashMap<String, Counts>>,
    slow: f64,
    usual: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    slow: f64,
    usual: f64,
}

/// A value that is correlated with slowness.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contrast {
    pub(super) column: &'static str,
    pub(super) value: String,
    /// Share of the slow requests with it, and of the others.
    pub(super) slow: f64,
    pub(super) usual: f64,
    /// Adjusted for all values of all columns.
    pub(super) p: f64,
}

impl Columns {
    /// Adds one request; each value counts once.
    pub(super) fn add(&mut self, is_slow: bool, values: &[(&'static str, String)]) {
        let (slow, usual) = if is_slow { (1.0, 0.0) } else { (0.0, 1.0) };
        self.slow += slow;
        self.usual += usual;
        let mut seen: FxHashSet<(&str, &str)> = FxHashSet::default();
        for (column, value) in values {
            if !seen.insert((column, value)) {
                continue;
            }
            let of_column = self.values.entry(column).or_default();
            if of_column.len() >= VALUES_MAX && !of_column.contains_key(value) {
                continue;
            }
            let counts = of_column.entry(value.clone()).or_default();
            counts.slow += slow;
            counts.usual += usual;
        }
    }

    /// Values that are more frequent among slow requests, the most certain first. The design effect
    /// is the number of slow requests that count as one.
    pub(super) fn contrasts(&self, design_effect: f64) -> Vec<Contrast> {
        let effect = design_effect.max(1.0);
        if self.slow / effect < SLOW_MIN || self.usual == 0.0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (column, values) in &self.values {
            if values.len() >= VALUES_MAX {
                continue;
            }
            for (value, counts) in values {
                found.push(Contrast {
                    column,
                    value: value.clone(),
                    slow: counts.slow / self.slow,
                    usual: counts.usual / self.usual,
                    p: self.chance(counts, effect),
                });
            }
        }
        found.index_sort_by(|a, b| (a.column, &a.value).cmp(&(b.column, &b.value)));
        let levels = adjusted(&found.iter().map(|one| one.p).collect::<Vec<_>>());
        for (one, level) in found.iter_mut().zip(levels) {
            one.p = level;
        }
        let half = 0.5 / (self.slow + self.usual);
        found.retain(|one| one.p <= LEVEL && one.slow + half >= RISK_MIN * (one.usual + half));
        found.index_sort_by(|a, b| a.p.total_cmp(&b.p).then(b.slow.total_cmp(&a.slow)));
        found.truncate(CONTRASTS_MAX);
        found
    }

    /// Fisher's exact test, with counts divided by the design effect and rounded against the value.
    fn chance(&self, counts: &Counts, effect: f64) -> f64 {
        let fewer = |count: f64| (count / effect).floor() as u64;
        let slow = fewer(counts.slow);
        let without = ((self.slow - counts.slow) / effect).ceil() as u64;
        let (usual, others) = (fewer(counts.usual), fewer(self.usual - counts.usual));
        let marked = slow + without;
        hypergeometric_tail(slow, slow + usual, marked, marked + usual + others)
    }
}

impl Contrast {
    pub(super) fn summary(&self) -> String {
        format!(
            "{} {}: {:.0} % of the slow requests, {:.0} % of the others",
            self.column,
            self.value,
            100.0 * self.slow,
            100.0 * self.usual
        )
    }
}

#[cfg(test)]
mod tests {
    use whyslow_analysis::statistics::Dice;

    use super::Columns;

    fn columns(runs: u64, bad: Option<usize>) -> f64 {
        let found = (0..runs).filter(|run| {
            let dice = &mut Dice::new(*run);
            let mut columns = Columns::default();
            for _ in 0..600 {
                let worker = dice.below(12);
                let chance = if bad == Some(worker) { 0.4 } else { 0.03 };
                let values = [
                    ("worker", worker.to_string()),
                    ("client", dice.below(40).to_string()),
                    ("connection", dice.below(3).to_string()),
                ];
                columns.add(dice.happens(chance), &values);
            }
            let found = columns.contrasts(1.0);
            match bad {
                Some(bad) => found
                    .first()
                    .is_some_and(|one| one.column == "worker" && one.value == bad.to_string()),
                None => !found.is_empty(),
            }
        });
        found.count() as f64 / runs as f64
    }

    #[test]
    fn one_worker_that_is_slow_is_found_and_nothing_is_where_none_is() {
        let (found, for_nothing) = (columns(200, Some(7)), columns(400, None));
        println!("| one worker of 12 slow in 40 %, others 3 %, of 600 | {found} |");
        println!("| all alike, 55 values | {for_nothing} |");
        assert!(found >= 0.95, "{found}");
        assert!(for_nothing <= 0.02, "{for_nothing}");
    }
}
