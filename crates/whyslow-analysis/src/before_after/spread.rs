//! Corrects durations for the clock resolution.
//!
//! With a clock as coarse as the shift, quantiles jump from tick to tick or do not move at all, and
//! so do their bootstrap replicates. Requests with the same duration are spread evenly over their
//! common tick, half of it to each side, as for a quantile of the mid-distribution (Parzen 2004;
//! Ma, Genton, Parzen 2011). Unique durations are unchanged.

use whyslow_model::sort::{IndexSort, float_key};

/// The golden ratio: every prefix of the sequence is spread evenly.
const TURN: f64 = 0.618_033_988_749_894_9;

/// In the same order.
pub(super) fn spread(lengths: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.index_sort_by_ints(|at| [float_key(lengths[*at]), 0, 0]);
    let groups: Vec<&[usize]> = order.chunk_by(|a, b| lengths[*a] == lengths[*b]).collect();
    let gap = |place: usize| {
        let value = lengths[groups[place][0]];
        let to = |group: Option<&&[usize]>| group.map(|group| (lengths[group[0]] - value).abs());
        let below = place.checked_sub(1).and_then(|place| groups.get(place));
        let both = [to(below), to(groups.get(place + 1))];
        both.into_iter().flatten().min_by(f64::total_cmp)
    };
    let tick = tick(&groups, gap);
    let mut found = lengths.to_vec();
    for (place, group) in groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.len() > 1)
    {
        let half = gap(place).unwrap_or(0.0).min(tick) / 2.0;
        for (number, request) in group.iter().enumerate() {
            let at = ((number as f64 + 0.5) * TURN).fract();
            let value = lengths[*request];
            // Durations are not negative.
            let low = (value - half).max(0.0);
            found[*request] = low + at * (value + half - low);
        }
    }
    found
}

/// Typical distance of repeated values from their neighbour, weighted by requests: the distance
/// between two distant modes is not a tick.
fn tick(groups: &[&[usize]], gap: impl Fn(usize) -> Option<f64>) -> f64 {
    let shared = groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.len() > 1);
    let mut gaps: Vec<(f64, usize)> = shared
        .filter_map(|(place, group)| Some((gap(place)?, group.len())))
        .collect();
    gaps.index_sort_by_ints(|(gap, _)| [float_key(*gap), 0, 0]);
    let all: usize = gaps.iter().map(|(_, requests)| requests).sum();
    let mut seen = 0;
    let middle = gaps.iter().find(|(_, requests)| {
        seen += requests;
        2 * seen >= all
    });
    middle.map_or(0.0, |(gap, _)| *gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_tick_is_spread_over_it_and_nobody_passes_another_tick() {
        let mut lengths = vec![10.0; 400];
        lengths.extend([11.0; 200]);
        lengths.extend([13.0, 13.0, 5000.0, 5000.0]);
        let found = spread(&lengths);
        for (length, found) in lengths.iter().zip(&found) {
            assert!((length - found).abs() <= 0.5, "{length}: {found}");
        }
        for ticks in [&found[..400], &found[400..600]] {
            let mut ticks = ticks.to_vec();
            ticks.sort_by(f64::total_cmp);
            let even = 1.0 / ticks.len() as f64;
            let widest = ticks.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(widest.fold(0.0, f64::max) < 3.0 * even);
        }
    }

    #[test]
    fn what_nobody_shares_stays() {
        for lengths in [vec![], vec![3.0], vec![7.0; 5], vec![4.0, 1.0, 2.5]] {
            assert_eq!(spread(&lengths), lengths);
        }
        assert!(spread(&[0.0, 0.0, 1.0]).iter().all(|one| *one >= 0.0));
    }
}
