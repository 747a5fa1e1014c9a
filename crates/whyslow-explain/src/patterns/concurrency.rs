//! T2: are items slow when much is going on?
//!
//! What is in flight when an item starts is a consequence of slowness too: behind a stall items pile
//! up. Two things keep that apart from load. Slow items in flight do not count, so that a stall
//! leaves less going on, not more; and items have to *arrive* more often as well before slow ones,
//! which no stall brings about.

use whyslow_analysis::statistics::normal_tail;
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

use super::Item;
use super::episodes::Episodes;
use super::ranks::{mann_whitney, median};

const DELTA_MIN: f64 = 0.2;
/// Standard deviations by which more have to arrive before slow ones: one test of twenty by chance.
const ARRIVALS_MIN: f64 = 1.645;
/// Arrivals are counted over a time in which so many are usual …
const ARRIVALS: f64 = 10.0;
/// … and the rate of slow ones is compared over so many classes of concurrency.
const CLASSES: usize = 5;

/// Slow items against what else went on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Items in flight at the start of slow ones and of others, medians.
    pub slow: f64,
    /// Median at the start of the others.
    pub others: f64,
    /// Chance that more was in flight at a slow one than at another, less that of fewer.
    pub delta: f64,
    /// One-sided.
    pub p: f64,
    /// Standard deviations by which more items arrived just before slow ones.
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
    // What goes with concurrency comes in bursts if concurrency does: only what is beyond that is
    // one witness for many.
    let explained = explained(&in_flight, slow);
    let told = items.iter().zip(slow).zip(explained);
    let told: Vec<(Ns, bool, f64)> = told
        .map(|((item, slow), chance)| (item.ts, *slow, chance))
        .collect();
    let fewer = episodes.design_effect(&told).sqrt();
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
        // An item of no length ends before it has begun by this count.
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

/// The rate of slow ones among items with a like number in flight.
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
            object: super::super::NOBODY,
            worker: super::super::NOBODY,
            failed: false,
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
