//! Correction for multiple tests: false discovery rate by Benjamini and Hochberg.

use whyslow_model::sort::{IndexSort, float_key};

/// Adjusted p values: the smallest level at which each test is significant among all of them.
///
/// With the p values in ascending order, the `i`-th of `m` becomes the minimum of `p_j m / j` over
/// all `j >= i` (Benjamini, Hochberg 1995).
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.index_sort_by_ints(|at| [float_key(p[*at]), 0, 0]);
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (place, number) in order.into_iter().enumerate().rev() {
        least = least.min(p[number] * p.len() as f64 / (place + 1) as f64);
        adjusted[number] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::adjusted;

    /// The fifteen p values of Benjamini and Hochberg's own example: four are significant at .05.
    #[test]
    fn the_example_of_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let adjusted = adjusted(&p);
        assert_eq!(adjusted.iter().filter(|q| **q <= 0.05).count(), 4);
        for (found, expected) in adjusted.iter().zip([0.0015, 0.003, 0.0095, 0.035_625]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn a_greater_value_never_counts_for_more_than_a_less_one() {
        let close = |found: Vec<f64>, expected: &[f64]| {
            let pairs = found.iter().zip(expected);
            assert!(
                pairs.clone().all(|(a, b)| (a - b).abs() < 1e-12),
                "{found:?}"
            );
        };
        close(adjusted(&[0.04, 0.01, 0.03, 0.02]), &[0.04; 4]);
        close(adjusted(&[0.9, 0.9]), &[0.9, 0.9]);
        close(adjusted(&[0.5]), &[0.5]);
        assert!(adjusted(&[]).is_empty());
    }
}
