//! The limit above which requests are slow, if the user specifies none.
//!
//! It is chosen from the durations of both sides together, whatever their side, so that the choice
//! cannot create a difference between them. Rare stalls are far from all other requests: the limit
//! lies in the widest gap above the median. Without a gap, it is a multiple of the median, as for
//! `whyslow load`.

use whyslow_model::Ns;

use super::latency::Latency;

/// Minimum number of requests above the limit: fewer show no difference.
const ABOVE_MIN: usize = 5;
/// Minimum ratio of the durations on both sides of a gap.
const GAP_MIN: f64 = 1.5;
/// Without a gap, requests are slow from this multiple of the median.
const MEDIANS: Ns = 5;

/// `None` if too few requests are slow.
pub(super) fn limit(sides: [&[Latency]; 2]) -> Option<Ns> {
    let all = sides.into_iter().flatten().filter_map(|one| one.dur);
    let mut all: Vec<Ns> = all.map(|dur| dur.max(1)).collect();
    all.sort_unstable();
    let median = *all.get(all.len().saturating_sub(1) / 2)?;
    let last = all.len().checked_sub(ABOVE_MIN)?;
    let ratio = |place: usize| all[place] as f64 / all[place - 1] as f64;
    let above_median = all.len() / 2 + 1..=last;
    let widest = above_median.max_by(|a, b| ratio(*a).total_cmp(&ratio(*b)));
    if let Some(place) = widest.filter(|place| ratio(*place) >= GAP_MIN) {
        let middle = (all[place - 1] as f64 * all[place] as f64).sqrt();
        return Some((middle as Ns).clamp(all[place - 1], all[place] - 1));
    }
    let limit = median.saturating_mul(MEDIANS);
    (all[last] > limit).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(durs: impl IntoIterator<Item = Ns>) -> Vec<Latency> {
        let one = |dur| Latency {
            ts: 0,
            dur: Some(dur),
            failed: false,
            worker: 0,
            phases: Default::default(),
        };
        durs.into_iter().map(one).collect()
    }

    #[test]
    fn the_limit_lies_in_the_gap_before_the_stalls() {
        let before = side((100..400).chain([5000; 11]));
        let after = side(100..400);
        let found = limit([&before, &after]).expect("a gap");
        assert!((400..5000).contains(&found), "{found}");
        assert_eq!(
            limit([&after, &before]),
            Some(found),
            "the sides do not matter"
        );
    }

    #[test]
    fn without_a_gap_it_is_a_multiple_of_the_median() {
        // Each is 1 % longer than the one before.
        let smooth = |count: i32| (0..count).map(|step| (1e6 * 1.01f64.powi(step)) as Ns);
        let (a, b) = (side(smooth(400)), side(smooth(400)));
        let median = (1e6 * 1.01f64.powi(199)) as Ns;
        assert_eq!(limit([&a, &b]), Some(5 * median));
        // No request is five times the median.
        assert_eq!(limit([&side(smooth(200)), &side(smooth(200))]), None);
    }

    #[test]
    fn few_slow_requests_have_no_limit() {
        let before = side((100..400).chain([5000; 4]));
        assert_eq!(limit([&before, &side(100..400)]), None);
        assert_eq!(limit([&[], &[]]), None);
    }
}
