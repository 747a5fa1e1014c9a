//! T7: are slow items a mode of their own, or the end of the usual ones?
//!
//! If times have a tail that falls like a power of the time (as heavy a one as is met), the logarithms
//! have an exponential tail, and the spacings between the greatest, each multiplied by its rank,
//! are like each other (Rényi 1953). One spacing that is far greater than those below it is a gap in
//! the distribution. Tails that fall faster have smaller spacings at their end, so that the test
//! errs less for them.

use whyslow_analysis::statistics::{Dice, f_tail_of_two};
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

/// A mode has so many items at least.
pub const ITEMS_MIN: usize = 5;
/// Spacings below the gap that it is compared with: so many, or so many times its rank.
const BELOW_MIN: usize = 10;
const BELOW_BY_RANK: usize = 3;
/// Over all ranks together.
const LEVEL: f64 = 0.005;
const GAP_MIN: f64 = 1.5;

/// The greatest gap among the slowest items.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Places of the items above it, the slowest first.
    pub above: Vec<usize>,
    /// The least item above in times of the greatest below.
    pub ratio: f64,
    /// Over all ranks together.
    pub p: f64,
    /// Mean ranked spacing of the items below.
    pub spacing: f64,
    /// Ranks that were looked at.
    pub ranks: usize,
}

impl Gap {
    /// Whether what is above is a mode of its own.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL && self.ratio >= GAP_MIN
    }

    /// How many items above a gap of this ratio would suffice, if the items below are spread as here;
    /// none if the gap is none to speak of.
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

/// The gap that is least probable by chance; the widest of those if several are next to impossible.
/// `logs` are logarithms of times, in any order. None with fewer than sixteen.
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
        // Nothing varies below: whatever is above is beyond compare.
        let ratio = rank as f64 * spacing(rank) / others(rank).max(f64::MIN_POSITIVE);
        let ratio = if spacing(rank) > 0.0 { ratio } else { 0.0 };
        (rank, f_tail_of_two(ratio, below(rank) as f64))
    };
    // A narrow gap, however improbable, is nothing that anybody would see.
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

/// Logarithms of times of which none is written finer than a unit (ms, µs): each is moved at random
/// inside its unit. Equal times would have no spacing, and any gap above them would be infinitely
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
        // Twenty-one values whose ranked spacings are all 1, but for one of 10 at rank 5: ranks 5 and
        // no other have ten below (15 of rank 5, so 21 values in all).
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
        // A gap of 1.6 times is not proven by five items.
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
