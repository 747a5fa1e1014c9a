//! Quantiles, and the Mann-Whitney rank test.

use whyslow_model::sort::{IndexSort, float_key};

/// The quantile of sorted values, with linear interpolation; none without values.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Median absolute deviation from a value.
pub(super) fn deviation(values: impl Iterator<Item = f64>, from: f64) -> Option<f64> {
    median(values.map(|value| (value - from).abs()).collect())
}

/// Comparison of two samples by rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    /// Excess of the first over the second, in standard deviations if both were equal.
    pub(super) z: f64,
    /// Probability that a value of the first is greater than one of the second, minus the
    /// probability that it is smaller: rank-biserial correlation, or Cliff's delta.
    pub(super) delta: f64,
}

/// Pairs with the first greater than the second (ties count half) against the expectation, with its
/// exact variance including ties (Mann, Whitney 1947). `None` if one is empty.
pub(super) fn mann_whitney(first: &[f64], second: &[f64]) -> Option<Ranked> {
    let (ours, theirs) = (first.len() as f64, second.len() as f64);
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, true)).collect();
    all.extend(second.iter().map(|value| (*value, false)));
    all.index_sort_by_ints(|one| [float_key(one.0), 0, 0]);
    let (mut wins, mut ties, mut below) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let mine = equal.iter().filter(|(_, is_first)| *is_first).count() as f64;
        let count = equal.len() as f64;
        wins += mine * (below + (count - mine) / 2.0);
        below += count - mine;
        ties += count * count * count - count;
    }
    let all = ours + theirs;
    let spread = all + 1.0 - ties / (all * (all - 1.0));
    let variance = ours * theirs / 12.0 * spread;
    let z = if variance > 0.0 {
        (wins - ours * theirs / 2.0) / variance.sqrt()
    } else {
        0.0
    };
    Some(Ranked {
        z,
        delta: 2.0 * wins / (ours * theirs) - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let values = [1.0, 2.0, 4.0, 8.0];
        let of = |share| quantile(&values, share).unwrap();
        assert_eq!([of(0.0), of(0.5), of(1.0)], [1.0, 3.0, 8.0]);
        assert_eq!(of(0.9), 4.0 + 4.0 * (0.9 * 3.0 - 2.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(deviation([1.0, 5.0, 6.0].into_iter(), 4.0), Some(2.0));
    }

    /// 1, 3, 3 against 2, 3: wins 0, 1 + ½, 1 + ½ of 6; one tie of three.
    #[test]
    fn ranks_by_hand() {
        let found = mann_whitney(&[1.0, 3.0, 3.0], &[2.0, 3.0]).unwrap();
        assert!(found.delta.abs() < 1e-12 && found.z.abs() < 1e-12);
        let found = mann_whitney(&[4.0, 3.0, 3.0], &[2.0, 3.0]).unwrap();
        assert!((found.delta - (2.0 * 5.0 / 6.0 - 1.0)).abs() < 1e-12);
        let variance: f64 = 6.0 / 12.0 * (6.0 - 24.0 / 20.0);
        assert!((found.z - 2.0 / variance.sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(mann_whitney(&[1.0], &[]), None);
        assert_eq!(mann_whitney(&[1.0], &[1.0]).unwrap().z, 0.0);
    }
}
