//! T7: whether slow items are a separate mode, or the tail of the usual ones.
//!
//! If durations have a power-law tail (as heavy as occurs in practice), their logarithms have an
//! exponential tail, and the spacings between the largest values, each multiplied by its rank, have
//! the same distribution (Rényi 1953). A spacing that is far larger than those below it is a gap in
//! the distribution. Lighter tails have smaller spacings at their end, so the test is conservative
//! for them.

use whyslow_analysis::statistics::{Dice, f_tail_of_two};
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

/// Minimum number of items of a mode.
pub const ITEMS_MIN: usize = 5;
/// Number of spacings below the gap that it is compared with: at least this many, or this many
/// times its rank.
const BELOW_MIN: usize = 10;
const BELOW_BY_RANK: usize = 3;
/// Significance level over all ranks together.
const LEVEL: f64 = 0.005;
const GAP_MIN: f64 = 1.5;

/// The greatest gap among the slowest items.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Indexes of the items above it, the slowest first.
    pub above: Vec<usize>,
    /// The smallest item above divided by the largest below.
    pub ratio: f64,
    /// Probability over all ranks together.
    pub p: f64,
    /// Mean ranked spacing of the items below.
    pub spacing: f64,
    /// Number of examined ranks.
    pub ranks: usize,
}

impl Gap {
    /// Whether the items above are a separate mode.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL && self.ratio >= GAP_MIN
    }

    /// Number of items above a gap of this ratio that would suffice, with the spacing of the items
    /// below; none if the gap is too small.
    pub fn enough(&self) -> Option<usize> {
        let gap = self.ratio.ln();
        if self.ratio < GAP_MIN {
            return None;
        }
        (ITEMS_MIN..1000).find(|rank| {
            let below = BELOW_MIN.max(BELOW_BY_RANK * rank) as f64;
            let ratio = *rank as f64 * gap / self.spacing;
            f_tail_of_two(ratio, below) * (self.ranks as f64) < LEVEL
        })
    }
}

/// The gap with the smallest probability by chance; the widest if several probabilities are
/// practically zero. `logs` are logarithms of durations, in any order. `None` with fewer than
/// sixteen.
pub fn gap(logs: &[f64]) -> Option<Gap> {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    // The greatest first.
    order.index_sort_by_ints(|at| [!float_key(logs[*at]), 0, 0]);
    let spacing = |rank: usize| logs[order[rank - 1]] - logs[order[rank]];
    let mut sums = vec![0.0; logs.len()];
    for rank in 1..logs.len() {
        sums[rank] = sums[rank - 1] + rank as f64 * spacing(rank);
    }
    let below = |rank: usize| BELOW_MIN.max(BELOW_BY_RANK * rank);
    let others = |rank: usize| (sums[rank + below(rank)] - sums[rank]) / below(rank) as f64;
    let ranks = (ITEMS_MIN..logs.len()).take_while(|rank| rank + below(*rank) < logs.len());
    let count = ranks.clone().count();
    let one = |rank: usize| {
        // If nothing varies below, any gap is significant.
        let ratio = rank as f64 * spacing(rank) / others(rank).max(f64::MIN_POSITIVE);
        let ratio = if spacing(rank) > 0.0 { ratio } else { 0.0 };
        (rank, f_tail_of_two(ratio, below(rank) as f64))
    };
    // A narrow gap is irrelevant, however improbable it is.
    let is_wide = |rank: usize| spacing(rank) >= GAP_MIN.ln();
    let least = ranks.map(one).min_by(|a, b| {
        let by_width = is_wide(b.0).cmp(&is_wide(a.0));
        let by_chance = by_width.then(a.1.total_cmp(&b.1));
        by_chance.then(spacing(b.0).total_cmp(&spacing(a.0)))
    });
    let (rank, p) = least?;
    Some(Gap {
        ratio: spacing(rank).exp(),
        p: (p * count as f64).min(1.0),
        above: order[..rank].to_vec(),
        spacing: others(rank),
        ranks: count,
    })
}

/// Logarithms of durations that were rounded to a unit (ms, µs): each is moved at random within its
/// unit. Equal durations would have no spacing, and any gap above them would be infinitely
/// improbable.
pub fn unrounded(times: &[Ns], divide_by: impl Fn(usize) -> f64) -> Vec<f64> {
    let units = [
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1000,
        100,
        10,
    ];
    let divides = |unit: &Ns| times.iter().all(|time| time % unit == 0);
    let unit = units.into_iter().find(divides).unwrap_or(1) as f64;
    let mut dice = Dice::new(7);
    let one = |(place, time): (usize, &Ns)| {
        let moved = *time as f64 + unit * (dice.unit() - 0.5);
        (moved.max(unit / 2.0) / divide_by(place).max(1.0)).ln()
    };
    times.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_by_hand() {
        // 21 values with ranked spacings of 1, except for one of 10 at rank 5, which is the only
        // rank with enough spacings below it (15).
        let mut value = 10.0;
        let mut logs = Vec::new();
        for rank in 1..=21 {
            logs.push(value);
            value -= if rank == 5 {
                2.0
            } else {
                1.0 / f64::from(rank)
            };
        }
        let found = gap(&logs).unwrap();
        assert_eq!(
            (found.above.as_slice(), found.ranks),
            ([0, 1, 2, 3, 4].as_slice(), 1)
        );
        assert!((found.ratio - 2f64.exp()).abs() < 1e-9 && (found.spacing - 1.0).abs() < 1e-9);
        assert!(
            (found.p - (1.0f64 + 10.0 / 15.0).powi(-15)).abs() < 1e-9,
            "{found:?}"
        );
        assert!(found.is_much() && found.enough() == Some(5));
        assert_eq!(gap(&logs[..20]), None);
        assert_eq!(gap(&[]), None);
        // Five items do not prove a gap with a ratio of 1.6.
        let close: Vec<f64> = logs
            .iter()
            .map(|log| if *log > 7.0 { log - 1.53 } else { *log })
            .collect();
        let found = gap(&close).unwrap();
        assert!(
            !found.is_much() && found.enough().is_some_and(|enough| enough > 5),
            "{found:?}"
        );
    }

    #[test]
    fn what_does_not_vary_below_makes_any_gap_a_mode() {
        let mut logs = vec![0.0; 40];
        assert!(!gap(&logs).unwrap().is_much());
        logs[..6].fill(1.0);
        let found = gap(&logs).unwrap();
        assert!(found.is_much() && found.above.len() == 6);
    }

    #[test]
    fn rounded_times_are_no_mode() {
        let mut dice = Dice::new(1);
        let mut times: Vec<Ns> = (0..400)
            .map(|_| ((0.5 * dice.normal()).exp() * 2.0).round() as Ns * 1_000_000)
            .collect();
        let logs = |times: &[Ns]| unrounded(times, |_| 1.0);
        assert!(!gap(&logs(&times)).unwrap().is_much());
        times.extend([5_002_000_000; 8]);
        let found = gap(&logs(&times)).unwrap();
        assert!(found.is_much() && found.above.len() == 8, "{found:?}");
    }
}
