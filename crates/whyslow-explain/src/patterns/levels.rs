//! T2 by level: the share of slow items at each level of concurrency.
//!
//! The number in flight alone shows little: items pile up behind a stall, and if arrivals do not
//! wait for replies, slow items are in flight for longer and so raise the number themselves.
//! Neither applies to a closed loop, in which each worker sends its next request when it has its
//! reply: the number in flight is the number of workers, whether items are slow or not. A load
//! generator reports its workers. Otherwise such times are recognised by a number in flight that
//! hardly varies, while that of independent arrivals varies by its mean; if it varies, no shares
//! are reported.

use std::collections::BTreeMap;

use whyslow_analysis::statistics::normal_tail;
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

use super::episodes::Episodes;
use super::ranks::median;
use super::{Item, UNIDENTIFIED};

/// Maximum number of levels, and the minimum number of items and share (1 / `SHARE_MIN`) of each.
const CLASSES_MAX: usize = 6;
const ITEMS_MIN: usize = 10;
const SHARE_MIN: usize = 100;
/// A worker that starts nothing for this many usual pauses, and this long, is inactive.
const PAUSES: f64 = 10.0;
const PAUSE_MIN: f64 = 5e8;
/// The usual number in flight is computed over windows of this many median durations and items …
const LONGER: f64 = 8.0;
const WINDOW_ITEMS: f64 = 20.0;
/// … in at least this many windows.
const WINDOWS_MIN: f64 = 8.0;
/// Maximum variance of the number in flight in a closed loop, divided by its mean; 1 for
/// independent arrivals.
const VARIES_MAX: f64 = 0.3;
/// Minimum number of slices in which bursts are detected.
const SLICES: Ns = 25;
/// Minimum ratio of concurrent requests for a raised load.
const RAISED_MIN: f64 = 1.5;
/// Minimum ratio of the risk at the highest level to that at the lowest.
const RISK_MIN: f64 = 1.5;

/// Items at a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Smallest number in flight of the level.
    pub from: f64,
    /// Largest number in flight of the level.
    pub to: f64,
    /// Items that started at it.
    pub items: u64,
    /// Slow items among them.
    pub slow: u64,
}

impl Level {
    /// Share of slow items, 0–1; 0 without items.
    pub fn share(&self) -> f64 {
        self.slow as f64 / self.items.max(1) as f64
    }

    /// With half a slow item added: no slow item among a few does not mean never.
    fn risk(&self) -> f64 {
        (self.slow as f64 + 0.5) / (self.items as f64 + 1.0)
    }
}

/// Share of slow items by level, with at least two levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Ascending.
    pub levels: Vec<Level>,
    /// Trend of the share over the logarithm of the level, in standard deviations (Cochran 1954,
    /// Armitage 1955).
    pub z: f64,
    /// One-sided.
    pub p: f64,
}

impl Levels {
    /// Whether the risk at the highest level is beyond that at the lowest by the limit, whatever
    /// `p` is.
    pub fn is_much(&self) -> bool {
        let risk = |level: Option<&Level>| level.map_or(0.0, Level::risk);
        risk(self.levels.last()) >= RISK_MIN * risk(self.levels.first())
    }
}

/// `items` by `ts`; `is_closed` if their workers belong to a closed-loop load. `None` if all or
/// none are slow, or if concurrency does not change.
pub fn levels(
    items: &[Item],
    slow: &[bool],
    episodes: &Episodes,
    is_closed: bool,
) -> Option<Levels> {
    if !slow.contains(&true) || !slow.contains(&false) {
        return None;
    }
    let of_items = if is_closed {
        let lengths = items.iter().zip(slow).filter(|(_, slow)| **slow);
        let lately = median(lengths.map(|(item, _)| item.dur as f64).collect())?;
        at_work(items, lately)
    } else {
        usual(items)?
    };
    let levels = classes(&of_items, slow);
    if levels.len() < 2 {
        return None;
    }
    let class = |level: f64| levels.iter().find(|one| level <= one.to);
    let share = |level: f64| class(level).map_or(0.0, Level::share);
    let explained = items.iter().zip(slow).zip(&of_items);
    let explained: Vec<(Ns, bool, f64)> = explained
        .map(|((item, slow), level)| (item.ts, *slow, share(*level)))
        .collect();
    // Bursts have to be detected in a short run, too.
    let span = items.last()?.ts - items.first()?.ts;
    let finer = Episodes {
        gap: episodes.gap.min(span / SLICES).max(1),
        ..episodes.clone()
    };
    let each = grouped(&of_items, slow, |level| level);
    let z = trend(&each) / finer.design_effect(&explained).sqrt();
    Some(Levels {
        p: normal_tail(z),
        z,
        levels,
    })
}

/// Concurrent requests of a closed-loop load before and after, if there are clearly more: the
/// number of workers was set from outside, so this is what changed.
pub(super) fn raised(before: &[Item], after: &[Item]) -> Option<(f64, f64)> {
    let at_a_time = |items: &[Item]| {
        let mut items = items.to_vec();
        items.index_sort_by_ints(|item| [item.ts, 0, 0]);
        median(at_work(&items, 0.0))
    };
    let (before, after) = (at_a_time(before)?, at_a_time(after)?);
    (after >= RAISED_MIN * before).then_some((before, after))
}

/// Number of active workers for each item: at its start, shortly before, or while it is in flight.
/// So the last workers of a run, which still wait for slow replies, do not form a level of their
/// own.
fn at_work(items: &[Item], lately: f64) -> Vec<f64> {
    let mut of_worker: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.worker != UNIDENTIFIED) {
        let all = of_worker.entry(item.worker).or_default();
        all.push((item.ts as f64, item.end() as f64));
    }
    let pauses = of_worker.values().flat_map(|all| {
        let pairs = all.windows(2);
        pairs.map(|pair| (pair[1].0 - pair[0].1).max(0.0))
    });
    let pause = median(pauses.collect()).unwrap_or(0.0);
    let most = PAUSE_MIN.max(PAUSES * pause);
    // Starts of activity count up, ends down.
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for all in of_worker.values() {
        let (mut begin, mut end) = all[0];
        for (next, next_end) in all {
            if next - end > most {
                steps.extend([(begin, 1.0), (end, -1.0)]);
                begin = *next;
            }
            end = end.max(*next_end);
        }
        steps.extend([(begin, 1.0), (end, -1.0)]);
    }
    steps.index_sort_by_ints(|(a, b)| [float_key(*a), !float_key(*b), 0]);
    let mut now = 0.0;
    for (_, step) in &mut steps {
        now += *step;
        *step = now;
    }
    let of_item = |item: &Item| {
        let from = steps.partition_point(|(at, _)| *at <= item.ts as f64 - lately);
        let to = steps.partition_point(|(at, _)| *at < item.end() as f64);
        let inside = &steps[from.saturating_sub(1)..to.max(from)];
        inside
            .iter()
            .fold(1.0, |most: f64, (_, now)| most.max(*now))
    };
    items.iter().map(of_item).collect()
}

/// The usual number in flight around the start of each item, if it hardly varies.
fn usual(items: &[Item]) -> Option<Vec<f64>> {
    let (first, last) = (items.first()?.ts, items.last()?.ts);
    let span = (last - first).max(1) as f64;
    let length = median(items.iter().map(|item| item.dur as f64).collect())?;
    let count = span / (LONGER * length).max(1.0);
    let count = count.min(items.len() as f64 / WINDOW_ITEMS).floor();
    if count < WINDOWS_MIN {
        return None;
    }
    let window = |item: &Item| ((item.ts - first) as f64 / span * count) as usize;
    let mut ends: Vec<Ns> = items.iter().map(Item::end).collect();
    ends.sort_unstable();
    let mut in_flight: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (begun, item) in items.iter().enumerate() {
        let ended = ends.partition_point(|end| *end <= item.ts);
        let found = begun as f64 - ended as f64 + 1.0;
        in_flight
            .entry(window(item))
            .or_default()
            .push(found.max(1.0));
    }
    let varies = in_flight.values().filter_map(|found| varies(found));
    if median(varies.collect())? > VARIES_MAX {
        return None;
    }
    let middle = in_flight.into_iter();
    let middle: BTreeMap<usize, f64> = middle
        .filter_map(|(window, found)| Some((window, median(found)?.round())))
        .collect();
    Some(items.iter().map(|item| middle[&window(item)]).collect())
}

/// Variance of the number of others in flight divided by its mean; none if there are none.
fn varies(in_flight: &[f64]) -> Option<f64> {
    let count = in_flight.len() as f64;
    let mean = in_flight.iter().sum::<f64>() / count;
    let squares = in_flight.iter().map(|one| (one - mean).powi(2));
    (mean > 1.0).then(|| squares.sum::<f64>() / count / (mean - 1.0))
}

/// Items grouped by `group` of their level.
fn grouped(of_items: &[f64], slow: &[bool], group: impl Fn(f64) -> f64) -> Vec<Level> {
    let mut flagged: Vec<(f64, bool)> =
        of_items.iter().copied().zip(slow.iter().copied()).collect();
    flagged.index_sort_by_ints(|one| [float_key(one.0), 0, 0]);
    let same = flagged.chunk_by(|a, b| group(a.0) == group(b.0));
    same.map(|same| Level {
        from: same[0].0,
        to: same[same.len() - 1].0,
        items: same.len() as u64,
        slow: same.iter().filter(|(_, slow)| *slow).count() as u64,
    })
    .collect()
}

/// Levels from a number to its double, with enough items each; levels with too few are merged with
/// a neighbour.
fn classes(of_items: &[f64], slow: &[bool]) -> Vec<Level> {
    let mut found = grouped(of_items, slow, |level| level.max(1.0).log2().floor());
    let least = ITEMS_MIN.max(of_items.len() / SHARE_MIN) as u64;
    while found.len() > 1 {
        let smallest = found.iter().enumerate().min_by_key(|(_, one)| one.items);
        let Some((place, one)) = smallest else {
            break;
        };
        if one.items >= least && found.len() <= CLASSES_MAX {
            break;
        }
        let below = place.checked_sub(1).map(|below| found[below].items);
        let above = found.get(place + 1).map(|one| one.items);
        // Merged into the smaller neighbour.
        let into = match (below, above) {
            (Some(below), Some(above)) if below <= above => place - 1,
            (Some(_), None) => place - 1,
            _ => place,
        };
        let next = found.remove(into + 1);
        let one = &mut found[into];
        one.to = next.to;
        one.items += next.items;
        one.slow += next.slow;
    }
    found
}

fn trend(levels: &[Level]) -> f64 {
    let score = |one: &Level| f64::midpoint(one.from, one.to).max(1.0).ln();
    let items: f64 = levels.iter().map(|one| one.items as f64).sum();
    let slow: f64 = levels.iter().map(|one| one.slow as f64).sum();
    let share = slow / items;
    let mean = levels
        .iter()
        .map(|one| one.items as f64 * score(one))
        .sum::<f64>()
        / items;
    let off = |one: &Level| score(one) - mean;
    let beyond = |one: &Level| one.slow as f64 - one.items as f64 * share;
    let found: f64 = levels.iter().map(|one| off(one) * beyond(one)).sum();
    let spread: f64 = levels
        .iter()
        .map(|one| one.items as f64 * off(one).powi(2))
        .sum();
    let variance = share * (1.0 - share) * spread;
    if variance > 0.0 {
        found / variance.sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn item(ts: Ns, dur: Ns, worker: u32) -> Item {
        Item {
            ts: ts * MS,
            dur: dur * MS,
            key: 0,
            object: UNIDENTIFIED,
            worker,
            failed: false,
            result: 0,
            wait_ns_max: None,
        }
    }

    #[test]
    fn a_load_is_raised_by_more_workers_and_not_by_longer_requests() {
        let of = |workers: u32, dur: Ns| -> Vec<Item> {
            let numbers = 0..200;
            let all = numbers.map(|number| (number / workers, number % workers));
            all.map(|(turn, worker)| item(Ns::from(turn) * dur, dur, worker))
                .collect()
        };
        assert_eq!(raised(&of(8, 16), &of(32, 185)), Some((8.0, 32.0)));
        assert_eq!(raised(&of(8, 16), &of(8, 185)), None);
        assert_eq!(raised(&of(8, 16), &of(9, 16)), None);
        assert_eq!(raised(&[], &of(9, 16)), None);
    }

    #[test]
    fn who_waits_for_a_slow_answer_is_at_work_and_who_stopped_is_not() {
        let items = [
            item(0, 10, 0),
            item(1, 5000, 1),
            item(20, 10, 0),
            item(40, 10, 0),
            item(6000, 10, 0),
        ];
        assert_eq!(at_work(&items, 100.0), [2.0, 2.0, 2.0, 2.0, 1.0]);
    }

    #[test]
    fn levels_of_few_items_go_to_the_smaller_neighbour() {
        let of = [
            (1.0, 20),
            (2.0, 1),
            (3.0, 1),
            (4.0, 40),
            (7.0, 9),
            (16.0, 160),
        ];
        let all = of.iter().flat_map(|(level, items)| vec![*level; *items]);
        let all: Vec<f64> = all.collect();
        let found = classes(&all, &vec![false; all.len()]);
        let levels: Vec<_> = found
            .iter()
            .map(|one| (one.from, one.to, one.items))
            .collect();
        assert_eq!(levels, [(1.0, 3.0, 22), (4.0, 7.0, 49), (16.0, 16.0, 160)]);
    }

    /// 10 of 100, 20 of 100 and 30 of 100 at 1, e and e²: by hand 20 / √(0.2 · 0.8 · 200).
    #[test]
    fn the_trend_by_hand() {
        let level = |power: i32, slow| Level {
            from: 1f64.exp().powi(power),
            to: 1f64.exp().powi(power),
            items: 100,
            slow,
        };
        let found = trend(&[level(0, 10), level(1, 20), level(2, 30)]);
        assert!((found - 20.0 / 32f64.sqrt()).abs() < 1e-9, "{found}");
    }
}
