//! T7: are slow items a mode of their own, or the end of the usual ones?
//!
//! If times have a tail that falls like a power of the time (as heavy a one as is met), the logarithms
//! have an exponential tail, and the spacings between the greatest, each multiplied by its rank,
//! are like each other (Rényi 1953). One spacing that is far greater than those below it is a gap in
//! the distribution. Tails that fall faster have smaller spacings at their end, so that the test
//! errs less for them.

use whyslow_analysis::statistics::{Dice, f_tail_of_two};
use whyslow_model::Ns;

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
}

impl Gap {
    /// Whether what is above is a mode of its own.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL && self.ratio >= GAP_MIN
    }

    /// How many items above a gap of this ratio would suffice, if the items below are spread as here
    /// and so many ranks are looked at; none if no number does.
    pub fn enough(&self, spacing: f64, ranks: usize) -> Option<usize> {
        let gap = self.ratio.ln();
        if self.ratio < GAP_MIN {
            return None;
        }
        (ITEMS_MIN..1000).find(|rank| {
            let below = BELOW_MIN.max(BELOW_BY_RANK * rank) as f64;
            f_tail_of_two(*rank as f64 * gap / spacing, below) * (ranks as f64) < LEVEL
        })
    }
}

/// The gap that is least probable by chance; the widest of those if several are next to impossible.
/// `logs` are logarithms of times, in any order. None with fewer than sixteen.
pub fn gap(logs: &[f64]) -> Option<Gap> {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by(|a, b| logs[*b].total_cmp(&logs[*a]));
    let spacing = |rank: usize| logs[order[rank - 1]] - logs[order[rank]];
    let mut sums = vec![0.0; logs.len()];
    for rank in 1..logs.len() {
        sums[rank] = sums[rank - 1] + rank as f64 * spacing(rank);
    }
    let below = |rank: usize| BELOW_MIN.max(BELOW_BY_RANK * rank);
    let ranks = (ITEMS_MIN..logs.len()).take_while(|rank| rank + below(*rank) < logs.len());
    let count = ranks.clone().count() as f64;
    let one = |rank: usize| {
        let others = (sums[rank + below(rank)] - sums[rank]) / below(rank) as f64;
        let ratio = if others > 0.0 {
            rank as f64 * spacing(rank) / others
        } else {
            0.0
        };
        (rank, f_tail_of_two(ratio, below(rank) as f64))
    };
    let wide = |rank: usize| spacing(rank) >= GAP_MIN.ln();
    let least = ranks.map(one).min_by(|a, b| {
        // A wide gap first: a narrow one, however improbable, is nothing that anybody would see.
        let by_width = wide(b.0).cmp(&wide(a.0));
        by_width
            .then(a.1.total_cmp(&b.1))
            .then(spacing(b.0).total_cmp(&spacing(a.0)))
    });
    let (rank, p) = least?;
    Some(Gap {
        ratio: spacing(rank).exp(),
        p: (p * count).min(1.0),
        above: order[..rank].to_vec(),
    })
}

/// Logarithms of times of which none is written finer than a unit (ms, µs): each is moved at random
/// inside its unit. Equal times would have no spacing, and any gap above them would be infinitely
/// improbable.
pub fn unrounded(times: &[Ns], divide_by: impl Fn(usize) -> f64) -> Vec<f64> {
    let units = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10];
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
        // Twenty values, spacing by rank 1, so that all ranked spacings are equal, and a gap at 5.
        let mut value = 10.0;
        let mut logs = Vec::new();
        for rank in 1..=20 {
            logs.push(value);
            value -= if rank == 5 { 2.0 } else { 1.0 / f64::from(rank) };
        }
        let found = gap(&logs).unwrap();
        assert_eq!(found.above, [0, 1, 2, 3, 4]);
        assert!((found.ratio - 2f64.exp()).abs() < 1e-9);
        // Ten times the mean of fifteen others would need 20 items: with 20, ranks 5 only.
        assert!((found.p - (1.0f64 + 10.0 / 14.0).powi(-14)).abs() < 0.05, "{found:?}");
        assert_eq!(gap(&logs[..15]), None);
        assert_eq!(gap(&[]), None);
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
