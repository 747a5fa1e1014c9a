//! T9, T12 and T13: the times at which items are slow.

use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;

use super::super::change::{Point, changes};
use super::super::episodes::Episodes;
use super::super::overlap::overlap;
use super::super::periodic::rhythm;
use super::{Family, MS, S, at_least, at_most, item, runs};

const SPAN: f64 = 1800.0 * S;

fn is_periodic(mut onsets: Vec<f64>) -> bool {
    onsets.sort_by(f64::total_cmp);
    let slow: Vec<_> = onsets.iter().map(|ts| item(*ts, 50.0 * MS, 0)).collect();
    let episodes = Episodes::of(slow.iter());
    rhythm(&episodes.onsets, (0, SPAN as Ns)).is_some_and(|rhythm| rhythm.is_much())
}

/// `count` periodic onsets with this jitter, and `noise` random ones.
fn periodic(count: u32, jitter: f64, noise: u32, dice: &mut Dice) -> Vec<f64> {
    let every = SPAN / f64::from(count);
    let mut onsets: Vec<f64> = (0..count)
        .map(|at| every * (f64::from(at) + 0.3 + jitter * dice.normal()))
        .collect();
    onsets.extend((0..noise).map(|_| SPAN * dice.unit()));
    onsets
}

#[test]
fn what_comes_at_random_has_no_rhythm() {
    for count in [15, 30, 100] {
        at_most(&format!("T9, Poisson | {count}"), 0.001, runs(60), |dice| {
            is_periodic((0..count).map(|_| SPAN * dice.unit()).collect())
        });
        at_most(
            &format!("T9, clusters | {count}"),
            0.001,
            runs(60),
            |dice| {
                let clusters = (0..count).flat_map(|_| {
                    let first = SPAN * dice.unit();
                    let size = 1 + dice.below(6);
                    (0..size)
                        .map(|at| first + at as f64 * 0.2 * S)
                        .collect::<Vec<_>>()
                });
                is_periodic(clusters.collect())
            },
        );
    }
}

#[test]
fn a_rhythm_is_found_from_thirty_episodes_without_much_else() {
    for (count, noise, wanted) in [(30, 0, 1.0), (20, 0, 1.0), (30, 6, 0.95)] {
        at_least(
            &format!("T9, rhythm | {count}, {noise} others"),
            wanted,
            runs(60),
            |dice| is_periodic(periodic(count, 0.03, noise, dice)),
        );
    }
    for (count, noise) in [(10, 0), (30, 30)] {
        at_most(
            &format!("T9, rhythm | {count}, {noise} others"),
            0.0,
            runs(60),
            |dice| is_periodic(periodic(count, 0.03, noise, dice)),
        );
    }
}

/// Items over 100 s; `at` gives the probability of being slow and the usual duration, by the share
/// of the time.
fn points(count: u32, dice: &mut Dice, at: impl Fn(f64) -> (f64, f64)) -> Vec<Point> {
    let mut one = |_| {
        let share = dice.unit();
        let (chance, usual) = at(share);
        Point {
            ts: (100.0 * S * share) as Ns,
            log_ratio: usual.ln() + 0.7 * dice.normal(),
            slow: dice.happens(chance),
        }
    };
    (0..count).map(&mut one).collect()
}

fn first_change(points: &[Point]) -> Option<f64> {
    let found = changes(points, (0, (100.0 * S) as Ns), &[]);
    found.first().map(|change| change.ts as f64 / (100.0 * S))
}

#[test]
fn what_stays_the_same_has_no_change() {
    for count in [200, 2000] {
        at_most(
            &format!("T12, nothing | {count}"),
            0.01,
            runs(100),
            |dice| first_change(&points(count, dice, |_| (0.05, 1.0))).is_some(),
        );
    }
    // Three stalls of half a second.
    at_most("T12, stalls | 2000", 0.03, runs(100), |dice| {
        let stalls = [dice.unit(), dice.unit(), dice.unit()];
        let is_stalled = |share: f64| stalls.iter().any(|at| (0.0..0.005).contains(&(share - at)));
        let points = points(2000, dice, |share| {
            (if is_stalled(share) { 0.9 } else { 0.02 }, 1.0)
        });
        first_change(&points).is_some()
    });
}

#[test]
fn a_change_is_found_where_it_is() {
    for (count, rates, usual, wanted) in [
        (1000, [0.01, 0.06], 1.0, 0.7),
        (2000, [0.01, 0.10], 1.0, 0.99),
        (1000, [0.02, 0.02], 1.3, 0.68),
        (1000, [0.02, 0.02], 1.5, 0.99),
    ] {
        let what = format!("T12, {rates:?}, median {usual} times | {count}");
        at_least(&what, wanted, runs(60), |dice| {
            let at = |share| {
                if share < 0.6 {
                    (rates[0], 1.0)
                } else {
                    (rates[1], usual)
                }
            };
            first_change(&points(count, dice, at)).is_some_and(|at| (at - 0.6).abs() < 0.1)
        });
    }
}

/// Slow items of ten connections, in groups of four that overlap; `behind` gives the connection of
/// each.
fn slow_ones(behind: impl Fn(u32) -> u32, dice: &mut Dice) -> Vec<(Ns, Ns, u32)> {
    let mut slow = Vec::new();
    for _ in 0..12 {
        let (first, worker) = (SPAN * dice.unit(), dice.below(10) as u32);
        for at in 0..4 {
            let dur = S * Family::LogNormal(0.5).draw(dice);
            let ts = first + f64::from(at) * 0.2 * S;
            slow.push((ts as Ns, dur as Ns, behind(worker * 4 + at)));
        }
    }
    slow
}

#[test]
fn waiting_behind_each_other_is_told_from_being_slow_together() {
    let is_found = |slow: Vec<_>| overlap(slow.into_iter()).is_some_and(|found| found.is_much());
    at_most(
        "T13, slow together, any connection",
        0.01,
        runs(12),
        |dice| {
            let mut slow = slow_ones(|_| 0, dice);
            for one in &mut slow {
                one.2 = dice.below(10) as u32;
            }
            is_found(slow)
        },
    );
    at_least(
        "T13, behind each other on one connection",
        0.99,
        runs(6),
        |dice| is_found(slow_ones(|number| number / 4, dice)),
    );
}
