//! Where slow operations spend time that others of the same kind do not.
//!
//! For each category (a mechanism and its culprit), the mean of slow operations minus that of the
//! baseline, as a share of the sum over all categories. The confidence interval of that share is
//! bootstrapped, with slow operations and the baseline resampled separately: a single extreme
//! operation makes it wide.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

const DRAWS: usize = 1000;
/// Share that the interval leaves out at each end.
const ENDS: f64 = 0.025;
const SHARE_MIN: f64 = 0.25;
/// The mean of this many operations is exact enough: more are thinned out.
const ROWS_MAX: usize = 2000;

/// Time that one operation spent: category, ns. Categories may repeat.
pub type Spent = Vec<(u32, Ns)>;

/// The excess of one category.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excess {
    /// Number of the category, chosen by the caller.
    pub category: u32,
    /// Mean of slow operations minus that of the baseline.
    pub delta_ns: f64,
    /// Share of the sum over all categories; below 0 or above 1 if some are negative.
    pub share: f64,
    /// Lower end of its 95 % confidence interval.
    pub share_low: f64,
    /// Upper end of that interval.
    pub share_high: f64,
    /// Share of the slow operations in which no category has a greater excess.
    pub dominance: f64,
}

impl Excess {
    /// Whether it is reported: at least a quarter of the excess.
    pub fn is_much(&self) -> bool {
        self.share_low >= SHARE_MIN
    }
}

/// The excesses, greatest first. Empty if nothing is slow or slow operations take no longer on
/// average. Without a baseline all time is excess.
pub fn decompose(slow: &[Spent], baseline: &[Spent]) -> Vec<Excess> {
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for (category, _) in slow.iter().chain(baseline).flatten() {
        places.entry(*category).or_default();
    }
    for (place, found) in places.values_mut().enumerate() {
        *found = place;
    }
    let (slow, baseline) = (Rows::of(slow, &places), Rows::of(baseline, &places));
    let usual = baseline.mean();
    let deltas = less(&slow.mean(), &usual);
    let all: f64 = deltas.iter().sum();
    if slow.rows.is_empty() || all <= 0.0 {
        return Vec::new();
    }
    let shares = drawn(&slow, &baseline);
    let dominance = dominance(&slow, &usual);
    let one = |(category, place): (&u32, &usize)| {
        let mut drawn: Vec<f64> = shares.iter().map(|shares| shares[*place]).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let end = |share| super::ranks::quantile(&drawn, share).unwrap_or(0.0);
        Excess {
            category: *category,
            delta_ns: deltas[*place],
            share: deltas[*place] / all,
            share_low: end(ENDS),
            share_high: end(1.0 - ENDS),
            dominance: dominance[*place],
        }
    };
    let mut found: Vec<Excess> = places.iter().map(one).collect();
    found.index_sort_by(|a, b| b.delta_ns.total_cmp(&a.delta_ns));
    found
}

/// Operations by what they spent on each category.
struct Rows {
    rows: Vec<Vec<f64>>,
    categories: usize,
}

impl Rows {
    fn of(spent: &[Spent], places: &BTreeMap<u32, usize>) -> Self {
        let every = spent.len().div_ceil(ROWS_MAX).max(1);
        let row = |spent: &Spent| {
            let mut row = vec![0.0; places.len()];
            for (category, ns) in spent {
                row[places[category]] += *ns as f64;
            }
            row
        };
        Self {
            rows: spent.iter().step_by(every).map(row).collect(),
            categories: places.len(),
        }
    }

    fn mean(&self) -> Vec<f64> {
        self.mean_of(self.rows.iter())
    }

    fn mean_of<'r>(&'r self, rows: impl Iterator<Item = &'r Vec<f64>>) -> Vec<f64> {
        let mut sum = vec![0.0; self.categories];
        for row in rows {
            for (sum, ns) in sum.iter_mut().zip(row) {
                *sum += ns;
            }
        }
        let count = self.rows.len().max(1) as f64;
        sum.into_iter().map(|sum| sum / count).collect()
    }

    fn draw(&self, dice: &mut Dice) -> Vec<f64> {
        let count = self.rows.len();
        self.mean_of((0..count).map(|_| &self.rows[dice.below(count)]))
    }
}

fn less(slow: &[f64], usual: &[f64]) -> Vec<f64> {
    slow.iter()
        .zip(usual)
        .map(|(slow, usual)| slow - usual)
        .collect()
}

/// Shares of the categories in each draw; 0 in a draw without any excess.
fn drawn(slow: &Rows, baseline: &Rows) -> Vec<Vec<f64>> {
    let mut dice = Dice::new(10);
    let mut draw = |_| {
        let deltas = less(&slow.draw(&mut dice), &baseline.draw(&mut dice));
        let all: f64 = deltas.iter().sum();
        let share = |delta: f64| if all > 0.0 { delta / all } else { 0.0 };
        deltas.into_iter().map(share).collect()
    };
    (0..DRAWS).map(&mut draw).collect()
}

fn dominance(slow: &Rows, usual: &[f64]) -> Vec<f64> {
    let mut counts: FxHashMap<usize, f64> = FxHashMap::default();
    for row in &slow.rows {
        let excess = less(row, usual);
        let most = excess.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((place, _)) = most {
            *counts.entry(place).or_default() += 1.0;
        }
    }
    let count = slow.rows.len().max(1) as f64;
    let share = |place| counts.get(&place).copied().unwrap_or(0.0) / count;
    (0..slow.categories).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_by_hand() {
        // Slow operations have 100 more of lock each, and 20 more of disk on average.
        let slow = vec![vec![(1, 110), (2, 40)], vec![(1, 110), (2, 20)]];
        let baseline = vec![vec![(1, 10), (2, 10)], vec![(1, 5), (1, 5), (2, 10)]];
        let found = decompose(&slow, &baseline);
        assert_eq!(found[0].category, 1);
        assert_eq!((found[0].delta_ns, found[1].delta_ns), (100.0, 20.0));
        assert!((found[0].share - 100.0 / 120.0).abs() < 1e-12);
        assert_eq!((found[0].dominance, found[1].dominance), (1.0, 0.0));
        // Draws have disk excesses of 10, 20 or 30.
        assert!(
            (found[0].share_low - 100.0 / 130.0).abs() < 1e-9,
            "{found:?}"
        );
        assert!((found[0].share_high - 100.0 / 110.0).abs() < 1e-9);
        assert!(found[0].is_much() && !found[1].is_much());
    }

    #[test]
    fn one_extreme_operation_is_not_the_rule() {
        let mut slow: Vec<Spent> = (0..9).map(|at| vec![(1, 100 + at), (2, 10)]).collect();
        slow.push(vec![(2, 2000)]);
        let baseline = vec![vec![(1, 1), (2, 1)]; 50];
        let found = decompose(&slow, &baseline);
        let disk = found.iter().find(|one| one.category == 2).unwrap();
        assert!(disk.share > 0.6 && !disk.is_much(), "{disk:?}");
        assert!(disk.dominance < 0.2);
    }

    #[test]
    fn nothing_in_excess_is_nothing_to_tell() {
        assert_eq!(decompose(&[], &[vec![(1, 5)]]), []);
        assert_eq!(decompose(&[vec![(1, 5)]], &[vec![(1, 5)]]), []);
        let all = decompose(&[vec![(1, 5)]], &[]);
        assert_eq!((all[0].share, all[0].share_low), (1.0, 1.0));
    }

    /// The interval contains the true share in about 95 of 100 drawn sets.
    #[test]
    fn the_interval_holds_the_true_share() {
        let mut held = 0;
        for run in 0..60 {
            let mut dice = Dice::new(run);
            let mut spent = |lock: f64, disk: f64| -> Spent {
                let mut one = |mean: f64| (mean * dice.exponential()) as Ns;
                vec![(1, one(lock)), (2, one(disk))]
            };
            let slow: Vec<Spent> = (0..30).map(|_| spent(7000.0, 4000.0)).collect();
            let baseline: Vec<Spent> = (0..30).map(|_| spent(1000.0, 2000.0)).collect();
            let found = decompose(&slow, &baseline);
            let lock = found.iter().find(|one| one.category == 1).unwrap();
            held += u32::from((lock.share_low..=lock.share_high).contains(&0.75));
        }
        assert!((52..=60).contains(&held), "{held} of 60");
    }
}
