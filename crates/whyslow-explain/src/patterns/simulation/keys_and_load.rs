//! T1 to T6: everything, load and keys.

use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;

use super::super::concurrency::concurrency;
use super::super::episodes::Episodes;
use super::super::keys::{Keys, Rates};
use super::super::levels::levels;
use super::super::saturation::saturated;
use super::super::shifted::shifted;
use super::super::{Item, Resource};
use super::{FAMILIES, Family, MS, S, about, at_least, at_most, item, runs};

fn times(keys: u32, each: u32, family: Family, times: f64, dice: &mut Dice) -> Vec<Item> {
    let one = |number: u32| {
        item(
            f64::from(number) * MS,
            times * MS * family.draw(dice),
            number % keys,
        )
    };
    (0..keys * each).map(one).collect()
}

#[test]
fn everything_slower_is_told_from_chance() {
    let fires = |keys, each, family, ratio, dice: &mut Dice| {
        let before = times(keys, each, family, 1.0, dice);
        let now = times(keys, each, family, ratio, dice);
        shifted(&now, &before).is_some_and(|found| found.is_much() && found.p < 0.01)
    };
    for family in FAMILIES {
        for (keys, each) in [(1, 20), (8, 50)] {
            let what = format!("T1, nothing | {family:?}, {keys} × {each}");
            at_most(&what, 0.01, runs(200), |dice| {
                fires(keys, each, family, 1.0, dice)
            });
        }
        let what = format!("T1, twice as long | {family:?}, 8 × 100");
        let wanted = match family {
            Family::LogNormal(0.5) | Family::Pareto => 0.99,
            // Where short durations vary much, so does the tenth percentile of a hundred.
            Family::LogNormal(_) => 0.85,
            Family::Exponential => 0.5,
            Family::Weibull(_) => 0.1,
        };
        at_least(&what, wanted, runs(100), |dice| {
            fires(8, 100, family, 2.0, dice)
        });
    }
}

/// Open arrivals with a mean number in flight of twenty: steady, or in waves from almost none to
/// twice as many. `slow` gets the number in flight and the time.
fn arriving(
    items: usize,
    waves: f64,
    mut slow: impl FnMut(usize, f64, &mut Dice) -> bool,
    dice: &mut Dice,
) -> (Vec<Item>, Vec<bool>) {
    let (mut ts, mut ends): (f64, Vec<f64>) = (0.0, Vec::new());
    let (mut found, mut are_slow) = (Vec::new(), Vec::new());
    let usual = 100.0 * MS;
    let span = items as f64 * usual / 20.0;
    while found.len() < items {
        let wave = waves * (std::f64::consts::TAU * 5.0 * ts / span).sin();
        let wave = 1.0 + wave.clamp(-0.9, 0.9);
        ts += usual / 20.0 / wave * dice.exponential();
        ends.retain(|end| *end > ts);
        let is_slow = slow(ends.len(), ts, dice);
        let dur = usual * Family::LogNormal(0.5).draw(dice) / 1.133;
        let dur = if is_slow { dur + 5.0 * usual } else { dur };
        ends.push(ts + dur);
        found.push(item(ts, dur, 0));
        are_slow.push(is_slow);
    }
    (found, are_slow)
}

fn grows((items, slow): &(Vec<Item>, Vec<bool>)) -> bool {
    let slow_ones = items.iter().zip(slow).filter(|(_, slow)| **slow);
    let episodes = Episodes::of(slow_ones.map(|(item, _)| item));
    let found = concurrency(items, slow, &episodes);
    found.is_some_and(|found| found.is_much() && found.p < 0.01)
}

#[test]
fn slow_ones_that_grow_with_concurrency_are_found() {
    for waves in [0.0, 0.9] {
        at_most(
            &format!("T2, nothing | waves {waves}"),
            0.018,
            runs(200),
            |dice| grows(&arriving(400, waves, |_, _, dice| dice.happens(0.05), dice)),
        );
    }
    // Steep waves, and load that is on and off.
    for (waves, items, wanted) in [(0.9, 400, 0.37), (9.0, 400, 0.48), (0.9, 1600, 0.45)] {
        let what = format!("T2, .0025 for each in flight, waves {waves} | {items}");
        let with_load =
            |in_flight: usize, _: f64, dice: &mut Dice| dice.happens(0.0025 * in_flight as f64);
        at_least(&what, wanted, runs(60), |dice| {
            grows(&arriving(items, waves, with_load, dice))
        });
    }
}

/// Items pile up behind a stall, which is not load: if all items in flight counted, and each slow
/// one separately, nine in ten of the longest stalls here would be classified as load.
#[test]
fn stalls_are_not_taken_for_load() {
    for (items, stall) in [(400, 40.0), (400, 80.0), (1600, 300.0)] {
        let stalled = |dice: &mut Dice| {
            let span = items as f64 * 5.0 * MS;
            let stalls: Vec<f64> = (0..3).map(|_| span * dice.unit()).collect();
            let is_stalled = |_: usize, ts: f64, dice: &mut Dice| {
                let inside = |at: &f64| (0.0..stall * MS).contains(&(ts - at));
                stalls.iter().any(inside) || dice.happens(0.01)
            };
            arriving(items, 0.0, is_stalled, dice)
        };
        let what = format!("T2, three stalls of {stall} ms | {items}");
        at_most(&what, 0.018, runs(60), |dice| grows(&stalled(dice)));
    }
}

/// Closed-loop workers, in stages of different numbers; `slow` gets the number of workers and the
/// time.
fn closed(
    each: usize,
    mut slow: impl FnMut(usize, f64, &mut Dice) -> bool,
    dice: &mut Dice,
) -> (Vec<Item>, Vec<bool>) {
    let (mut made, mut begin): (Vec<(Item, bool)>, f64) = (Vec::new(), 0.0);
    for workers in [1, 4, 16, 32] {
        let mut last = begin;
        for worker in 0..workers {
            let mut ts = begin + MS * worker as f64;
            for _ in 0..each {
                let is_slow = slow(workers, ts, dice);
                let dur = 100.0 * MS * Family::LogNormal(0.5).draw(dice);
                let dur = if is_slow { dur + S } else { dur };
                let mut one = item(ts, dur, 0);
                one.worker = worker as u32;
                made.push((one, is_slow));
                ts += dur + MS;
            }
            last = last.max(ts);
        }
        begin = last;
    }
    made.sort_by_key(|(item, _)| item.ts);
    made.into_iter().unzip()
}

fn by_level((items, slow): &(Vec<Item>, Vec<bool>), is_closed: bool) -> bool {
    let slow_ones = items.iter().zip(slow).filter(|(_, slow)| **slow);
    let episodes = Episodes::of(slow_ones.map(|(item, _)| item));
    let found = levels(items, slow, &episodes, is_closed);
    found.is_some_and(|found| found.is_much() && found.p < 0.01)
}

/// With known and with unknown workers.
#[test]
fn the_share_by_level_grows_with_the_workers_and_not_with_stalls() {
    for (is_closed, each, wanted) in [(true, 10, 0.75), (true, 40, 0.99), (false, 40, 0.99)] {
        let known = if is_closed { "known" } else { "unknown" };
        let what = |what: &str| format!("T2 by level, {what}, workers {known} | {each} each");
        at_most(&what("0.05 of any"), 0.01, runs(60), |dice| {
            by_level(
                &closed(each, |_, _, dice| dice.happens(0.05), dice),
                is_closed,
            )
        });
        at_most(&what("stalls of 0.5 s"), 0.018, runs(60), |dice| {
            let stalls: Vec<f64> = (0..4).map(|_| 30.0 * S * dice.unit()).collect();
            let is_stalled = |_: usize, ts: f64, dice: &mut Dice| {
                let inside = |at: &f64| (0.0..0.5 * S).contains(&(ts - at));
                stalls.iter().any(inside) || dice.happens(0.01)
            };
            by_level(&closed(each, is_stalled, dice), is_closed)
        });
        at_least(&what("0.005 for each worker"), wanted, runs(20), |dice| {
            let with_load =
                |workers: usize, _: f64, dice: &mut Dice| dice.happens(0.005 * workers as f64);
            by_level(&closed(each, with_load, dice), is_closed)
        });
    }
    // With open arrivals, slow items raise the number in flight themselves.
    at_most(
        "T2 by level, arrivals that do not wait | 6400",
        0.01,
        runs(20),
        |dice| {
            by_level(
                &arriving(6400, 0.0, |_, _, dice| dice.happens(0.05), dice),
                false,
            )
        },
    );
}

/// Kinds of equal rate.
fn even(keys: u32, each: u32, rate: f64, dice: &mut Dice) -> Rates {
    Rates::of((0..keys * each).map(|number| (number % keys, dice.happens(rate))))
}

#[test]
fn kinds_of_equal_rates_are_told_to_be_alike() {
    for (keys, each, rate, wanted) in [
        (11, 88, 0.06, 0.0125),
        (4, 50, 0.06, 0.0125),
        (30, 40, 0.05, 0.0125),
    ] {
        let what = format!("T5, alike but rejected | {keys} × {each}, {rate}");
        at_most(&what, wanted, runs(600), |dice| {
            let rates = even(keys, each, rate, dice);
            rates
                .evenness(Keys::EverSlow)
                .is_some_and(|found| found.p <= 0.01)
        });
    }
    // One of eight holds most.
    at_least(
        "T4, 40 % of one of eight, 0.5 % of the others | 8 × 100",
        0.99,
        runs(100),
        |dice| {
            let one = |number: u32| {
                let key = number % 8;
                (key, dice.happens(if key == 3 { 0.4 } else { 0.005 }))
            };
            let rates = Rates::of((0..800).map(one));
            let found = rates.exposed();
            rates
                .evenness(Keys::All)
                .is_some_and(|found| found.p <= 0.01)
                && found
                    .iter()
                    .any(|one| one.rate.key == 3 && one.is_much() && one.p < 0.001)
        },
    );
}

/// A kind like the others that happens to have no slow item.
#[test]
fn a_kind_is_called_exempt_by_chance_as_rarely_as_it_says() {
    for each in [60, 90, 200] {
        let what = format!("T6, like the others but called exempt | 9 × 100 and {each}");
        at_most(&what, 0.01, runs(600), |dice| {
            let others = (0..900).map(|number| (number % 9, dice.happens(0.05)));
            let others: Vec<_> = others.collect();
            let own = (0..each).map(|_| (9, dice.happens(0.05)));
            let rates = Rates::of(others.into_iter().chain(own));
            rates
                .spared()
                .iter()
                .any(|one| one.rate.key == 9 && one.p < 0.01)
        });
    }
    about(
        "T6, never slow, called exempt | 9 × 100 and 120",
        0.96,
        runs(200),
        |dice| {
            let key = |number: u32| if number < 900 { number % 9 } else { 9 };
            let slow = |number, dice: &mut Dice| number < 900 && dice.happens(0.05);
            let rates = Rates::of((0..1020).map(|number| (key(number), slow(number, dice))));
            rates.spared().iter().any(|one| one.p < 0.01)
        },
    );
}

/// Stretches of a fifth of a second, at random times.
fn stretches(count: usize, dice: &mut Dice) -> Vec<(Ns, Ns)> {
    let mut found: Vec<(Ns, Ns)> = (0..count)
        .map(|_| {
            let begin = (60.0 * S * dice.unit()) as Ns;
            (begin, begin + (0.2 * S) as Ns)
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn saturation_that_coincides_by_chance_is_rarely_blamed() {
    let fires = |slow: Vec<(Ns, Ns)>, at_limit: Vec<(Ns, Ns)>| {
        let resource = Resource {
            name: String::new(),
            saturated: at_limit,
            baseline_share: None,
        };
        let found = saturated(&resource, slow.into_iter(), (0, (60.0 * S) as Ns));
        found.is_some_and(|found| found.is_much() && found.p < 0.01)
    };
    at_most("T3, apart", 0.01, runs(40), |dice| {
        fires(stretches(20, dice), stretches(30, dice))
    });
    // Both in three clusters, which shuffling each stretch separately would report as an overlap.
    at_most("T3, apart, in clusters", 0.02, runs(40), |dice| {
        let clustered = |count: usize, dice: &mut Dice| {
            let centres = [0; 3].map(|_| 60.0 * S * dice.unit());
            let mut found: Vec<(Ns, Ns)> = stretches(count, dice);
            for one in &mut found {
                let begin = centres[dice.below(3)] + 3.0 * S * dice.unit();
                *one = (begin as Ns, (begin + 0.2 * S) as Ns);
            }
            found
        };
        let slow = clustered(20, dice);
        fires(slow, clustered(30, dice))
    });
    at_least("T3, half of slow times saturated", 0.99, runs(10), |dice| {
        let mut slow = stretches(20, dice);
        let at_limit = slow[..10].to_vec();
        for one in &mut slow {
            *one = (one.0 - 20_000_000, one.1);
        }
        fires(slow, at_limit)
    });
}
