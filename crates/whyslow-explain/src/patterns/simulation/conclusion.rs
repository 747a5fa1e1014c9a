//! The whole conclusion, on items without any pattern and with each pattern of slowness.

use whyslow_analysis::statistics::Dice;

use super::super::{Class, Input, Item, Job, Resource, judge};
use super::{Family, MS, S, at_least, at_most, item, runs};

/// A service: requests of several kinds, at random times.
#[derive(Debug, Clone, Copy)]
struct Service {
    keys: u32,
    objects: u32,
    workers: u32,
    items: u32,
    span: f64,
    family: Family,
}

const SERVICE: Service = Service {
    keys: 8,
    objects: 6,
    workers: 10,
    items: 800,
    span: 400.0 * S,
    family: Family::LogNormal(0.5),
};

impl Service {
    /// Usual durations differ between kinds; `more` is the additional time of an item, ns.
    fn items(&self, dice: &mut Dice, mut more: impl FnMut(&Item, &mut Dice) -> f64) -> Vec<Item> {
        let mut one = |number: u32| {
            let key = number % self.keys;
            let usual = 20.0 * MS * f64::from(1 + key);
            let dur = usual * self.family.draw(dice);
            let mut item = item(self.span * dice.unit(), dur, key);
            item.object = dice.below(self.objects as usize) as u32;
            item.worker = dice.below(self.workers as usize) as u32;
            item.dur += more(&item, dice) as i64;
            item
        };
        (0..self.items).map(&mut one).collect()
    }

    fn input<'i>(&self, items: &'i [Item], baseline: &'i [Item]) -> Input<'i> {
        Input {
            items,
            baseline,
            window: Some((0, (self.span + 10.0 * S) as i64)),
            ..Input::default()
        }
    }
}

fn class_of(items: &[Item], baseline: &[Item]) -> Class {
    judge(&SERVICE.input(items, baseline)).class
}

#[test]
fn what_shows_nothing_is_given_no_class() {
    for family in [
        Family::LogNormal(0.5),
        Family::LogNormal(1.0),
        Family::Exponential,
        Family::Weibull(0.5),
        Family::Pareto,
    ] {
        let service = Service { family, ..SERVICE };
        at_most(
            &format!("classes, nothing | {family:?}"),
            0.01,
            runs(12),
            |dice| {
                let items = service.items(dice, |_, _| 0.0);
                let baseline = service.items(dice, |_, _| 0.0);
                class_of(&items, &baseline) != Class::Insufficient
            },
        );
    }
    // Stalls of everything, each of which counts once.
    at_most("classes, three stalls of 2 s", 0.02, runs(12), |dice| {
        let stalls = [0; 3].map(|_| SERVICE.span * dice.unit());
        let items = SERVICE.items(dice, |item, dice| {
            let inside = stalls
                .iter()
                .any(|at| (0.0..2.0 * S).contains(&(item.ts as f64 - at)));
            if inside { 2.0 * S * dice.unit() } else { 0.0 }
        });
        class_of(&items, &[]) != Class::Insufficient
    });
}

fn finds(what: &str, wanted: (Class, f64), one: impl Fn(&mut Dice) -> Class) {
    let runs = runs(8);
    at_least(&format!("classes, {what}"), wanted.1, runs, |dice| {
        let found = one(dice);
        found == wanted.0
    });
}

#[test]
fn each_kind_of_slowness_is_given_its_class() {
    finds(
        "2 s more in one of ten",
        (Class::RareContention, 0.99),
        |dice| {
            let chance = |dice: &mut Dice| if dice.happens(0.1) { 2.0 * S } else { 0.0 };
            class_of(&SERVICE.items(dice, |_, dice| chance(dice)), &[])
        },
    );
    finds(
        "2 s more in three of ten of one kind",
        (Class::OneOperation, 0.99),
        |dice| {
            let items = SERVICE.items(dice, |item, dice| {
                if item.key == 3 && dice.happens(0.3) {
                    2.0 * S
                } else {
                    0.0
                }
            });
            class_of(&items, &[])
        },
    );
    finds(
        "1 s more in a fifth on one object",
        (Class::OneDevice, 0.99),
        |dice| {
            let items = Service {
                items: 2000,
                ..SERVICE
            }
            .items(dice, |item, dice| {
                if item.object == 2 && dice.happens(0.2) {
                    S
                } else {
                    0.0
                }
            });
            class_of(&items, &[])
        },
    );
    finds("twice as long", (Class::Shifted, 0.99), |dice| {
        let baseline = SERVICE.items(dice, |_, _| 0.0);
        let items = SERVICE.items(dice, |item, _| item.dur as f64);
        class_of(&items, &baseline)
    });
    finds(
        "twice as long, more at the disk's limit",
        (Class::HeavyLoad, 0.95),
        |dice| {
            let baseline = SERVICE.items(dice, |_, _| 0.0);
            let busy: Vec<f64> = (0..12).map(|_| SERVICE.span * dice.unit()).collect();
            let mut busy: Vec<(i64, i64)> = busy
                .into_iter()
                .map(|at| (at as i64, (at + 10.0 * S) as i64))
                .collect();
            busy.sort_unstable();
            let items = SERVICE.items(dice, |item, _| {
                let is_busy = busy
                    .iter()
                    .any(|(begin, end)| (*begin..*end).contains(&item.ts));
                item.dur as f64 * if is_busy { 20.0 } else { 1.0 }
            });
            let resources = [Resource {
                name: "sda".into(),
                saturated: busy,
                baseline_share: None,
            }];
            let input = Input {
                resources: &resources,
                ..SERVICE.input(&items, &baseline)
            };
            judge(&input).class
        },
    );
    finds("a second of each ten", (Class::Periodic, 0.95), |dice| {
        let items = SERVICE.items(dice, |item, dice| {
            let inside = (item.ts as f64).rem_euclid(10.0 * S) < S;
            if inside { S * (1.0 + dice.unit()) } else { 0.0 }
        });
        let jobs = [Job {
            name: "cron".into(),
            starts: (0..41).map(|at| at * 10_000_000_000).collect(),
        }];
        let input = Input {
            jobs: &jobs,
            ..SERVICE.input(&items, &[])
        };
        let found = judge(&input);
        if found.class == Class::Periodic {
            assert!(
                found.summary.contains("cron started with"),
                "{}",
                found.summary
            );
        }
        found.class
    });
}

/// Without a baseline, the time before serves as one.
#[test]
fn load_that_begins_in_the_window_is_found_with_its_beginning() {
    let begin = 0.6 * SERVICE.span;
    let what = "classes, 2.5 times as long since 0.6 of the time, no baseline";
    at_least(what, 0.98, runs(8), |dice| {
        let items = SERVICE.items(dice, |item, _| {
            if item.ts as f64 >= begin {
                1.5 * item.dur as f64
            } else {
                0.0
            }
        });
        let found = judge(&SERVICE.input(&items, &[]));
        let is_near = |since: i64| (since as f64 - begin).abs() < 0.05 * SERVICE.span;
        let slow_before = found
            .slow
            .iter()
            .filter(|place| (items[**place].ts as f64) < 0.9 * begin);
        found.class == Class::Shifted
            && found.since.is_some_and(is_near)
            && slow_before.count() == 0
    });
}
