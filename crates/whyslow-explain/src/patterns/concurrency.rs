//! T2: whether items are slow when concurrency is high.
//!
//! The number in flight is also a consequence of slowness: items pile up behind a stall. Two rules
//! separate that from load. Slow items in flight are not counted, so a stall lowers the number; and
//! more items have to
//! *arrive* before slow ones, which a stall does not cause.

use whyslow_analysis::statistics::normal_tail;
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

use super::Item;
use super::episodes::Episodes;
use super::ranks::{mann_whitney, median};

const DELTA_MIN: f64 = 0.2;
/// Minimum excess of arrivals before slow items, in standard deviations: one test in twenty by
/// chance.
const ARRIVALS_MIN: f64 = 1.645;
/// Arrivals are counted over the time of this many usual arrivals …
const ARRIVALS: f64 = 10.0;
/// … and the rate of slow items is compared over this many classes of concurrency.
const CLASSES: usize = 5;

/// Concurrency at slow items and at the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Median number of items in flight at the start of slow items.
    pub slow: f64,
    /// Median number in flight at the start of the others.
    pub others: f64,
    /// Probability that more were in flight at a slow item than at another one, minus that of
    /// fewer.
    pub delta: f64,
    /// One-sided.
    pub p: f64,
    /// Excess of arrivals just before slow items, in standard deviations.
    pub arrivals: f64,
}

impl Concurrency {
    /// Whether both the number in flight and the arrivals are beyond their limits, whatever `p` is.
    pub fn is_much(&self) -> bool {
        self.delta > DELTA_MIN && self.arrivals > ARRIVALS_MIN
    }
}

/// `items` by `ts`. None if all or none are slow.
pub fn concurrency(items: &[Item], slow: &[bool], episodes: &Episodes) -> Option<Concurrency> {
    let in_flight = in_flight(items, slow);
    let arrivals = arrivals(items, slow)?;
    let [slow_ones, others] = split(&in_flight, slow);
    let ranked = mann_whitney(&slow_ones, &others)?;
    let [before_slow, before_others] = split(&arrivals, slow);
    // If concurrency comes in bursts, so does slowness that depends on it: only bursts beyond that
    // reduce the number of independent items.
    let explained = explained(&in_flight, slow);
    let items_with_chance = items.iter().zip(slow).zip(explained);
    let items_with_chance: Vec<(Ns, bool, f64)> = items_with_chance
        .map(|((item, slow), chance)| (item.ts, *slow, chance))
        .collect();
    let fewer = episodes.design_effect(&items_with_chance).sqrt();
    Some(Concurrency {
        slow: median(slow_ones)?,
        others: median(others)?,
        delta: ranked.delta,
        p: normal_tail(ranked.z / fewer),
        arrivals: mann_whitney(&before_slow, &before_others)?.z / fewer,
    })
}

/// Other items, none of them slow, in flight when each starts.
fn in_flight(items: &[Item], slow: &[bool]) -> Vec<f64> {
    let fast = items.iter().zip(slow).filter(|(_, slow)| !**slow);
    let mut ends: Vec<Ns> = fast.map(|(item, _)| item.end()).collect();
    ends.sort_unstable();
    let (mut begun, mut ended) = (0, 0);
    let mut found = Vec::with_capacity(items.len());
    for (item, slow) in items.iter().zip(slow) {
        while ends.get(ended).is_some_and(|end| *end <= item.ts) {
            ended += 1;
        }
        // By this count, an item of zero duration ends before it starts.
        found.push((begun as f64 - ended as f64).max(0.0));
        begun += usize::from(!slow);
    }
    found
}

/// Items that started just before each.
fn arrivals(items: &[Item], slow: &[bool]) -> Option<Vec<f64>> {
    let fast = items.iter().zip(slow).filter(|(_, slow)| !**slow);
    let usual = median(fast.map(|(item, _)| item.dur as f64).collect())?;
    let span = (items.last()?.ts - items.first()?.ts) as f64;
    let before = usual.max(ARRIVALS * span / items.len() as f64) as Ns;
    let mut first = 0;
    let mut found = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        while items[first].ts < item.ts.saturating_sub(before) {
            first += 1;
        }
        found.push((place - first) as f64);
    }
    Some(found)
}

fn split(values: &[f64], slow: &[bool]) -> [Vec<f64>; 2] {
    let of = |wanted: bool| {
        let found = values.iter().zip(slow).filter(|(_, slow)| **slow == wanted);
        found.map(|(value, _)| *value).collect()
    };
    [of(true), of(false)]
}

/// The rate of slow items among those with a similar number in flight.
fn explained(in_flight: &[f64], slow: &[bool]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..in_flight.len()).collect();
    order.index_sort_by_ints(|at| [float_key(in_flight[*at]), 0, 0]);
    let mut chances = vec![0.0; in_flight.len()];
    for class in order.chunks(in_flight.len().div_ceil(CLASSES).max(1)) {
        let count = class.iter().filter(|place| slow[**place]).count();
        for place in class {
            chances[*place] = count as f64 / class.len() as f64;
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn in_flight_by_hand() {
        let items = [
            item(0, 10),
            item(2, 3),
            item(4, 100),
            item(5, 1),
            item(12, 1),
        ];
        let slow = [false, false, true, false, false];
        // At 5 the second has just ended, and the third is slow.
        assert_eq!(in_flight(&items, &slow), [0.0, 1.0, 2.0, 1.0, 0.0]);
    }

    #[test]
    fn nothing_is_told_if_all_or_none_are_slow() {
        let items = [item(0, 10), item(5, 10)];
        let episodes = Episodes::of(items.iter());
        for slow in [[true; 2], [false; 2]] {
            assert_eq!(concurrency(&items, &slow, &episodes), None);
        }
        assert_eq!(concurrency(&[], &[], &episodes), None);
    }
}
