//! The test of Mann and Whitney (1947): are the values of one sample larger than those of another?

use super::normal_tail;

/// Up to this many steps, the distribution is computed exactly.
const STEPS_MAX: u64 = 20_000_000;

/// Two-sided p value. It is exact for few values, also with ties: the share of all choices of as
/// many values whose sum of ranks is at least as far from its mean; for many values, it is that of
/// the normal distribution with the variance of tied ranks. `None` if a sample is empty.
pub fn rank_test(a: &[f64], b: &[f64]) -> Option<f64> {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if few.is_empty() {
        return None;
    }
    let (ranks, chosen) = doubled_ranks(few, many);
    let count = ranks.len() as u64;
    // Twice the sum of the ranks of `few`, and its mean.
    let sum: u64 = chosen.iter().sum();
    let mean = few.len() as u64 * (count + 1);
    let off = sum.abs_diff(mean);
    let sums_max = 2 * count * few.len() as u64;
    if count * few.len() as u64 * sums_max <= STEPS_MAX {
        return Some(exact(&ranks, few.len(), (mean, off)));
    }
    let (k, n) = (few.len() as f64, count as f64);
    let squares: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0).powi(2)).sum();
    let spread = squares / n - f64::midpoint(n, 1.0).powi(2);
    let variance = k * (n - k) / (n - 1.0) * spread;
    if variance <= 0.0 {
        return Some(1.0);
    }
    // The sum of ranks changes in steps of one: half of one is subtracted.
    let z = (off as f64 / 2.0 - 0.5).max(0.0) / variance.sqrt();
    Some((2.0 * normal_tail(z)).min(1.0))
}

/// Twice the rank of each value of both samples, ties sharing their mean rank, and those of the
/// first sample.
fn doubled_ranks(few: &[f64], many: &[f64]) -> (Vec<u64>, Vec<u64>) {
    let of_few = few.iter().map(|value| (*value, true));
    let mut all: Vec<(f64, bool)> = of_few
        .chain(many.iter().map(|value| (*value, false)))
        .collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut chosen) = (Vec::with_capacity(all.len()), Vec::new());
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let first = ranks.len() as u64 + 1;
        let doubled = 2 * first + tied.len() as u64 - 1;
        for (_, is_few) in tied {
            ranks.push(doubled);
            if *is_few {
                chosen.push(doubled);
            }
        }
    }
    (ranks, chosen)
}

/// Share of all choices of `few` ranks whose sum is at least `off` from the mean.
fn exact(ranks: &[u64], few: usize, (mean, off): (u64, u64)) -> f64 {
    let sums = 2 * ranks.len() * few + 1;
    // Number of choices by how many were chosen and their sum; with at most STEPS_MAX steps, far
    // below the largest float.
    let mut ways = vec![vec![0.0f64; sums]; few + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in ranks.iter().enumerate() {
        let rank = *rank as usize;
        for count in (1..=few.min(seen + 1)).rev() {
            let (fewer, same) = ways.split_at_mut(count);
            let (fewer, same) = (&fewer[count - 1], &mut same[0]);
            for sum in (rank..sums).rev() {
                same[sum] += fewer[sum - rank];
            }
        }
    }
    let chosen = &ways[few];
    let all: f64 = chosen.iter().sum();
    let far = chosen.iter().enumerate();
    let far = far.filter(|(sum, _)| (*sum as u64).abs_diff(mean) >= off);
    (far.map(|(_, ways)| ways).sum::<f64>() / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::rank_test;

    fn check(a: &[f64], b: &[f64], p: f64) {
        for (a, b) in [(a, b), (b, a)] {
            let found = rank_test(a, b).expect("values");
            assert!((found - p).abs() < 1e-9, "{a:?} {b:?}: {found}, not {p}");
        }
    }

    /// By counting choices: of 455 choices of 3 of 15, one is lowest and one highest.
    #[test]
    fn separated_samples() {
        let high: Vec<f64> = (0..12).map(|value| 200.0 + f64::from(value)).collect();
        check(&[1.0, 2.0, 3.0], &high, 2.0 / 455.0);
        check(&[1.0], &[2.0], 1.0);
        check(&[1.0, 2.0], &[3.0, 4.0], 2.0 / 6.0);
    }

    /// Of 20 choices of 3 of ranks 1 to 6 (mean 10.5): sums 6 and 15 once, 7 and 14 once.
    #[test]
    fn overlapping_samples() {
        check(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0], 4.0 / 20.0);
        check(&[1.0, 4.0, 5.0], &[2.0, 3.0, 6.0], 20.0 / 20.0);
    }

    /// Ranks 1.5, 1.5, 3.5, 3.5: sums of two are 3 (1), 5 (4) and 7 (1).
    #[test]
    fn ties_share_their_rank() {
        check(&[1.0, 1.0], &[2.0, 2.0], 2.0 / 6.0);
        check(&[1.0, 2.0], &[1.0, 2.0], 1.0);
        check(&[3.0; 4], &[3.0; 9], 1.0);
        assert_eq!(rank_test(&[], &[1.0]), None);
    }

    /// The exact distribution and the normal one agree where both are usable.
    #[test]
    fn many_values_have_the_normal_distribution() {
        let value = |place: i32| f64::from((place * 7919) % 997);
        let a: Vec<f64> = (0..300).map(value).collect();
        let b: Vec<f64> = (300..800).map(|place| value(place) + 40.0).collect();
        let many = rank_test(&a, &b).expect("values");
        assert!(many > 0.0 && many < 0.5, "{many}");
        // 35 of each are the most that are exact, 36 have the normal distribution.
        let p = |count: usize| rank_test(&a[..count], &b[..count]).expect("values");
        assert!((p(35) - p(36)).abs() < 0.1, "{} {}", p(35), p(36));
    }
}
