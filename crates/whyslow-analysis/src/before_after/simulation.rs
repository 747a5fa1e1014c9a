//! Detection and false positive rates of the comparison, on simulated runs with correlated
//! requests.

use std::collections::BTreeMap;

use whyslow_model::Ns;

use super::{Latency, Side, Verdict, adjust, compare};
use crate::statistics::Dice;

const MS: f64 = 1e6;
/// Smaller changes count as no difference.
const LEAST: f64 = 0.02;
/// Limit of the run length if more requests are suggested.
const ENOUGH_MAX: u64 = 200_000;

/// Source of the correlation between requests of a run.
#[derive(Debug, Clone, Copy)]
enum Alike {
    Nothing,
    /// The machine fluctuates, with this many requests per swing: standard deviation of the
    /// logarithm 0.2.
    Swings(f64),
    /// Each worker has its own typical duration: standard deviation of the logarithm 0.15.
    Workers,
    /// Stalls of 100 ms that delay every request in them.
    Stalls,
    /// One in ten takes five seconds more.
    TwoModes,
    /// The clock has a resolution of 1 ms.
    Coarse,
}

const ALL: [Alike; 7] = [
    Alike::Nothing,
    Alike::Swings(20.0),
    Alike::Swings(60.0),
    Alike::Workers,
    Alike::Stalls,
    Alike::TwoModes,
    Alike::Coarse,
];

/// A run of requests 1 ms apart, of 20 workers, or of one for each 150 requests: more requests of
/// the same workers do not show more about differences between workers.
fn run(alike: Alike, requests: usize, times: f64, dice: &mut Dice) -> Side {
    let workers = (requests / 150).max(20);
    let workers: Vec<f64> = (0..workers).map(|_| dice.normal()).collect();
    let mut swing = dice.normal();
    let mut stalled_until = -1.0;
    let one = |place: usize| {
        let ts = place as f64 * MS;
        let worker = dice.below(workers.len());
        let mut dur = 10.0 * MS * (0.4 * dice.normal()).exp();
        match alike {
            Alike::Swings(length) => {
                let keep = (-1.0 / length).exp();
                swing = keep * swing + (1.0 - keep * keep).sqrt() * dice.normal();
                dur *= (0.2 * swing).exp();
            }
            Alike::Workers => dur *= (0.15 * workers[worker]).exp(),
            Alike::Stalls => {
                if dice.happens(0.001) {
                    stalled_until = ts + 100.0 * MS;
                }
                dur += f64::max(stalled_until - ts, 0.0);
            }
            Alike::TwoModes if dice.happens(0.1) => dur += 5000.0 * MS,
            _ => {}
        }
        dur *= times;
        if matches!(alike, Alike::Coarse) {
            dur = (dur / MS).round() * MS;
        }
        Latency {
            ts: ts as Ns,
            dur: Some(dur as Ns),
            failed: dice.happens(0.002),
            worker: worker as u32,
            phases: Default::default(),
        }
    };
    Side::of((0..requests).map(one).collect())
}

/// The same, moved after all others, so that the runs do not count as alternating.
fn later(mut side: Side) -> Side {
    for one in side.latencies.iter_mut().chain(&mut side.timed) {
        one.ts += 1_000_000 * MS as Ns;
    }
    side
}

pub(super) fn verdict(before: &Side, after: &Side) -> Verdict {
    let mut found = [compare(before, after, Some((50.0 * MS) as Ns))];
    adjust(&mut found);
    found[0].verdict(LEAST)
}

/// Number of runs for each case: the default, or a multiple of it given by `WHYSLOW_RUNS`.
pub(super) fn runs(default: u32) -> u32 {
    let wanted = std::env::var("WHYSLOW_RUNS").ok();
    default
        * wanted
            .and_then(|text| text.parse::<u32>().ok())
            .unwrap_or(1)
}

pub(super) fn rate(what: &str, runs: u32, mut happens: impl FnMut(&mut Dice) -> bool) -> f64 {
    let count = (0..runs).filter(|run| happens(&mut Dice::new(u64::from(*run) + 1000)));
    let rate = count.count() as f64 / f64::from(runs);
    println!("| {what} | {runs} | {rate:.3} |");
    rate
}

pub(super) fn margin(rate: f64, runs: u32) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(runs)).sqrt()
}

#[test]
fn two_runs_that_are_alike_are_rarely_said_to_differ() {
    let runs = runs(60);
    for alike in ALL {
        for requests in [400, 3000] {
            // A run with few swings cannot be distinguished from a change.
            if requests == 400 && matches!(alike, Alike::Swings(_)) {
                continue;
            }
            let found = rate(&format!("A/A, {requests}, {alike:?}"), runs, |dice| {
                let (a, b) = (
                    run(alike, requests, 1.0, dice),
                    later(run(alike, requests, 1.0, dice)),
                );
                verdict(&a, &b).is_shown()
            });
            assert!(found <= 0.05 + margin(0.05, runs), "{alike:?}: {found}");
        }
    }
}

/// Blocks of one long run, dealt alternately to two sides.
#[test]
fn blocks_of_one_run_dealt_to_two_sides_are_rarely_said_to_differ() {
    let runs = runs(60);
    for alike in ALL {
        let found = rate(&format!("A/A of dealt blocks, {alike:?}"), runs, |dice| {
            let whole = run(alike, 12_000, 1.0, dice);
            let mut blocks: Vec<&[Latency]> = whole.latencies.chunks(500).collect();
            dice.shuffle(&mut blocks);
            let (a, b) = blocks.split_at(blocks.len() / 2);
            let side = |blocks: &[&[Latency]]| Side::of(blocks.concat());
            verdict(&side(a), &side(b)).is_shown()
        });
        assert!(found <= 0.05 + margin(0.05, runs), "{alike:?}: {found}");
    }
}

/// A pilot run suggests the number of requests; with that number, 10 % is detected.
#[test]
fn a_tenth_more_is_found_with_as_many_requests_as_are_said_to_be_needed() {
    let runs = runs(40);
    for alike in ALL {
        let mut needed: BTreeMap<u64, u32> = BTreeMap::new();
        let found = rate(&format!("10 %, {alike:?}"), runs, |dice| {
            // A pilot run with three stalls cannot estimate how frequent stalls are.
            let requests = match alike {
                Alike::Stalls => 10_000,
                _ => 3000,
            };
            let look = |dice: &mut Dice| run(alike, requests, 1.0, dice);
            let first = compare(&look(dice), &later(look(dice)), None);
            let enough = first.quantiles[0].enough.expect("a number").min(ENOUGH_MAX);
            *needed.entry(enough).or_default() += 1;
            let before = run(alike, enough as usize, 1.0, dice);
            let after = later(run(alike, enough as usize, 1.1, dice));
            verdict(&before, &after) == Verdict::Worse
        });
        println!(
            "|   needed | {:?} .. {:?} |",
            needed.keys().next(),
            needed.keys().last()
        );
        assert!(found >= 0.9 - margin(0.9, runs), "{alike:?}: {found}");
    }
}

/// The interval of the change contains the true change.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let runs = runs(100);
    for alike in ALL {
        let found = rate(&format!("p50 in its interval, {alike:?}"), runs, |dice| {
            let (a, b) = (
                run(alike, 2000, 1.0, dice),
                later(run(alike, 2000, 1.1, dice)),
            );
            let (low, high) = compare(&a, &b, None).quantiles[0].interval.expect("enough");
            low <= 1.1 && 1.1 <= high
        });
        assert!(found >= 0.95 - margin(0.95, runs), "{alike:?}: {found}");
    }
}
