//! Finds the stretch of time parts with far more events than the rest, and tests whether it is due
//! to chance.
//!
//! The stretch is the one with the greatest total excess over a rate. If events were independent,
//! the number inside would be binomially distributed; its tail probability is the p value. Events
//! come in clusters, so counts are divided by their overdispersion (variance over mean of the
//! parts, outside or inside of the stretch, whichever is greater; at least 1). The p value is
//! multiplied by the number of possible stretches and the number of series (Bonferroni).

use crate::statistics::binomial_tail;

/// Minimum ratio of the rate inside to the rate outside.
pub(super) const TIMES_MIN: f64 = 3.0;
/// Significance level, over all stretches of all series.
pub(super) const CHANCE_MAX: f64 = 0.001;

/// Parts `first..=last` of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Stretch {
    pub(super) fn sum(self, series: &[u64]) -> u64 {
        series[self.first..=self.last].iter().sum()
    }

    fn len(self) -> usize {
        self.last - self.first + 1
    }
}

/// The stretch with the greatest total excess over `rate` events per unit of exposure.
pub(super) fn densest(events: &[u64], exposure: &[u64], rate: f64) -> Option<Stretch> {
    let (mut sum, mut first) = (0.0, 0);
    let mut best: Option<(f64, Stretch)> = None;
    for (last, (events, exposure)) in events.iter().zip(exposure).enumerate() {
        if sum <= 0.0 {
            (sum, first) = (0.0, last);
        }
        sum += *events as f64 - rate * *exposure as f64;
        if sum > 0.0 && best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, Stretch { first, last }));
        }
    }
    best.map(|(_, stretch)| stretch)
}

/// Median number of events per part.
pub(super) fn median(events: &[u64]) -> f64 {
    let mut sorted = events.to_vec();
    sorted.sort_unstable();
    sorted
        .get(sorted.len() / 2)
        .map_or(0.0, |middle| *middle as f64)
}

/// p value of this many events in the stretch if they were independent, for `series` series.
pub(super) fn chance_of_flood(events: &[u64], stretch: Stretch, series: usize) -> f64 {
    // If it lasts most of the time, it is the usual rate.
    if 2 * stretch.len() > events.len() {
        return 1.0;
    }
    let (inside, all) = (stretch.sum(events), events.iter().sum::<u64>());
    let (before, rest) = events.split_at(stretch.first);
    let (within, after) = rest.split_at(stretch.len());
    let outside = dispersion(before.iter().chain(after));
    let clusters = outside.max(dispersion(within.iter()));
    let shrunk = |count: u64| (count as f64 / clusters).floor() as u64;
    let share = stretch.len() as f64 / events.len().max(1) as f64;
    let all = shrunk(all - inside) + shrunk(inside);
    binomial_tail(shrunk(inside), all, share) * stretches(events.len()) * series as f64
}

/// p value of this many failures among this many requests if they failed as often as others, for
/// `series` series with this many parts.
pub(super) fn chance_of_errors(
    (failed, all): (u64, u64),
    others: f64,
    (parts, series): (usize, usize),
) -> f64 {
    binomial_tail(failed, all, others) * stretches(parts) * series as f64
}

fn stretches(parts: usize) -> f64 {
    let parts = parts as f64;
    parts * (parts + 1.0) / 2.0
}

/// Variance over mean, at least 1.
fn dispersion<'e>(events: impl Iterator<Item = &'e u64> + Clone) -> f64 {
    let values = events.map(|events| *events as f64);
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count.max(1.0);
    if count < 2.0 || mean <= 0.0 {
        return 1.0;
    }
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0) / mean).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::{CHANCE_MAX, Stretch, chance_of_flood, densest, median};
    use crate::statistics::Dice;

    #[test]
    fn the_densest_stretch_is_found() {
        let check = |events: &[u64], rate: f64, want: Option<(usize, usize)>| {
            let exposure = vec![1; events.len()];
            let found = densest(events, &exposure, rate);
            let want = want.map(|(first, last)| Stretch { first, last });
            assert_eq!(found, want, "{events:?}");
        };
        check(&[1, 1, 9, 8, 1, 1], 3.0, Some((2, 3)));
        check(&[1, 1, 9, 2, 9, 1], 3.0, Some((2, 4)));
        check(&[9, 0, 0, 0, 0, 7], 3.0, Some((0, 0)));
        check(&[1, 1, 1], 3.0, None);
        check(&[], 3.0, None);
    }

    /// Counts per part of a uniform series, from random numbers.
    fn even(dice: &mut Dice, parts: usize, count: usize) -> Vec<u64> {
        let mut events = vec![0; parts];
        for _ in 0..count {
            let part = (dice.unit() * parts as f64) as usize;
            events[part.min(parts - 1)] += 1;
        }
        events
    }

    fn is_flood(events: &[u64]) -> bool {
        let exposure = vec![1; events.len()];
        let found = densest(events, &exposure, (3.0 * median(events)).max(1.0));
        found.is_some_and(|found| chance_of_flood(events, found, 1) < CHANCE_MAX)
    }

    #[test]
    fn even_series_are_not_floods_and_a_tenfold_stretch_is() {
        let mut dice = Dice::new(11);
        let (mut alarms, mut missed) = (0, 0);
        for _ in 0..500 {
            let mut events = even(&mut dice, 100, 1000);
            alarms += usize::from(is_flood(&events));
            for part in &mut events[40..44] {
                *part += 100;
            }
            missed += usize::from(!is_flood(&events));
        }
        assert_eq!((alarms, missed), (0, 0));
    }

    #[test]
    fn requests_in_bundles_are_not_floods() {
        let mut dice = Dice::new(12);
        for bundle in [5, 20, 50] {
            let alarms = (0..300).filter(|_| {
                let bundles = even(&mut dice, 100, 1000 / bundle);
                let events: Vec<u64> = bundles.iter().map(|count| count * bundle as u64).collect();
                is_flood(&events)
            });
            assert_eq!(alarms.count(), 0, "bundles of {bundle}");
        }
    }
}
