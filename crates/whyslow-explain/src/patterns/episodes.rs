//! Slow items that count as one event.
//!
//! A stall of a second makes every request during it slow. Slow starts that are close together are
//! merged into episodes, which tests on time use. Counting an episode as one event everywhere would
//! be wrong for items that are merely frequent: where one request in twenty waits five seconds,
//! slow starts are always close together. So tests on keys divide by the *design effect*: the
//! variance of counts per time slice relative to the variance if each item were slow independently,
//! and at most the mean size of an episode.

use whyslow_model::Ns;

use super::Item;
use super::ranks::median;

/// Minimum gap between episodes.
const GAP_MIN: Ns = 100_000_000;
/// Slices grow by this factor while there are at least `SLICES_MIN`: a burst that is longer than a
/// slice would count several times.
const LONGER: i64 = 4;
const SLICES_MIN: i64 = 20;
const SLICES_MAX: i64 = 4000;

/// Slow items by episodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episodes {
    /// Maximum distance of slow starts within an episode, ns.
    pub gap: Ns,
    /// The first start of each episode, ascending.
    pub onsets: Vec<Ns>,
    /// Number of slow items.
    pub slow: usize,
}

impl Episodes {
    /// Merges starts closer than half the median duration of slow items, or 100 ms.
    pub fn of<'i>(slow: impl Iterator<Item = &'i Item> + Clone) -> Self {
        let lengths = slow.clone().map(|item| item.dur as f64).collect();
        let half = median(lengths).unwrap_or(0.0) / 2.0;
        let gap = GAP_MIN.max(half as Ns);
        let mut starts: Vec<Ns> = slow.map(|item| item.ts).collect();
        starts.sort_unstable();
        let mut onsets = Vec::new();
        let mut last = None;
        for start in &starts {
            if last.is_none_or(|last| start - last > gap) {
                onsets.push(*start);
            }
            last = Some(*start);
        }
        Self {
            gap,
            onsets,
            slow: starts.len(),
        }
    }

    /// Slow items per episode, at least 1.
    pub fn mean_size(&self) -> f64 {
        (self.slow as f64 / self.onsets.len().max(1) as f64).max(1.0)
    }

    /// Number of items that count as one, at least 1. `items` are the start, whether it is slow,
    /// and the probability of being slow that is already explained (the rate of all items, or of
    /// the item's key).
    pub fn design_effect(&self, items: &[(Ns, bool, f64)]) -> f64 {
        if self.onsets.len() == self.slow {
            return 1.0;
        }
        let first = items.iter().map(|(ts, ..)| *ts).min().unwrap_or(0);
        let last = items.iter().map(|(ts, ..)| *ts).max().unwrap_or(0);
        let span = (last - first).max(1);
        let mut length = self.gap.max(span / SLICES_MAX);
        let mut greatest: f64 = 1.0;
        while span / length >= SLICES_MIN {
            greatest = greatest.max(dispersion(items, first, (span, length)));
            length *= LONGER;
        }
        greatest.clamp(1.0, self.mean_size())
    }
}

/// Variance of the slow items per slice divided by the expected one; 1 if it is not clearly larger.
fn dispersion(items: &[(Ns, bool, f64)], first: Ns, (span, length): (Ns, Ns)) -> f64 {
    let count = (span / length + 1) as usize;
    let mut beyond = vec![0.0; count];
    let mut expected = 0.0;
    for (ts, slow, chance) in items {
        beyond[((ts - first) / length) as usize] += f64::from(u8::from(*slow)) - chance;
        expected += chance * (1.0 - chance);
    }
    if expected <= 0.0 {
        return 1.0;
    }
    let found = beyond.iter().map(|beyond| beyond * beyond).sum::<f64>() / expected;
    // Two standard deviations of the ratio without bursts: that of a chi-square value divided by
    // its degrees of freedom.
    let by_chance = 1.0 + 2.0 * (2.0 / count as f64).sqrt();
    if found > by_chance { found } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_analysis::statistics::Dice;

    const MS: Ns = 1_000_000;

    fn item(ts: Ns, dur: Ns) -> Item {
        Item {
            ts,
            dur,
            key: 0,
            object: super::super::UNIDENTIFIED,
            worker: super::super::UNIDENTIFIED,
            failed: false,
            result: 0,
            wait_ns_max: None,
        }
    }

    #[test]
    fn close_starts_are_one_episode() {
        let slow = [0, 90, 180, 400, 501, 1000].map(|ms| item(ms * MS, 50 * MS));
        let episodes = Episodes::of(slow.iter());
        assert_eq!(episodes.gap, 100 * MS);
        assert_eq!(episodes.onsets, [0, 400, 501, 1000].map(|ms| ms * MS));
        assert_eq!(episodes.mean_size(), 1.5);
        let long = slow.map(|one| item(one.ts, 1000 * MS));
        assert_eq!(Episodes::of(long.iter()).onsets, [0]);
        assert!(Episodes::of([].iter()).onsets.is_empty());
    }

    /// 2000 starts in 100 s; `slow` decides which are slow.
    fn effect(slow: impl Fn(i64, &mut Dice) -> bool) -> (f64, f64) {
        let mut dice = Dice::new(5);
        let items: Vec<(Item, bool)> = (0..2000)
            .map(|at| (item(at * 50 * MS, 2000 * MS), slow(at, &mut dice)))
            .collect();
        let slow: Vec<Item> = items
            .iter()
            .filter_map(|(one, slow)| slow.then_some(*one))
            .collect();
        let rate = slow.len() as f64 / items.len() as f64;
        let explained: Vec<_> = items
            .iter()
            .map(|(one, slow)| (one.ts, *slow, rate))
            .collect();
        let episodes = Episodes::of(slow.iter());
        (episodes.design_effect(&explained), episodes.mean_size())
    }

    #[test]
    fn frequent_ones_count_each_and_stalls_once() {
        let (effect_each, size) = effect(|_, dice| dice.happens(0.06));
        assert!(size > 2.0 && effect_each < 1.4, "{effect_each} {size}");
        // Five stalls of a second: twenty starts each.
        let (effect_stall, size) = effect(|at, _| at % 400 < 20);
        assert!((15.0..=20.0).contains(&effect_stall), "{effect_stall}");
        assert_eq!(size, 20.0);
    }

    #[test]
    fn what_is_explained_already_is_no_burst() {
        let items: Vec<_> = (0..2000).map(|at| (at * 50 * MS, at % 400 < 20)).collect();
        let slow: Vec<Item> = items
            .iter()
            .filter_map(|(ts, slow)| slow.then_some(item(*ts, 2000 * MS)))
            .collect();
        let explained: Vec<_> = items
            .iter()
            .map(|(ts, slow)| (*ts, *slow, if *slow { 0.95 } else { 0.0025 }))
            .collect();
        assert_eq!(Episodes::of(slow.iter()).design_effect(&explained), 1.0);
    }
}
