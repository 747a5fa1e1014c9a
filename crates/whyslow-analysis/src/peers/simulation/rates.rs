//! Devices whose requests have nothing to do with each other.

use super::super::{Sample, Stratum};
use super::dice::{Dice, FAMILIES, Family};
use super::{assert_at_least, assert_at_most, fires, judged, rate, runs, shift_fires, tail_fires};

const DEVICES: usize = 17;

/// What is wrong with the first device.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// This share of requests takes so many times as long.
    Some(f64, f64),
    /// Each request does, by itself, with this chance.
    Each(f64, f64),
    All(f64),
}

fn devices(family: Family, requests: usize, fault: Fault, dice: &mut Dice) -> Vec<Sample> {
    let stratum = Stratum::new(0, 8192, 1);
    let one = |device: usize| {
        let mut sample = Sample::default();
        for request in 0..requests {
            let mut time = 5e6 * family.draw(dice);
            match fault {
                Fault::Some(share, times) => {
                    let is_slow = (request as f64) < share * requests as f64;
                    time *= if device == 0 && is_slow { times } else { 1.0 };
                }
                Fault::Each(chance, times) => {
                    let is_slow = dice.happens(chance);
                    time *= if device == 0 && is_slow { times } else { 1.0 };
                }
                Fault::All(times) if device == 0 => time *= times,
                Fault::All(_) | Fault::None => {}
            }
            sample.add(stratum, time as i64, time as i64);
            sample.ask(0);
        }
        sample
    };
    (0..DEVICES).map(one).collect()
}

/// Shares of runs in which the tail test and the shift test fire: for the first device, or for any
/// if none is bad.
fn fired(family: Family, requests: usize, fault: Fault, runs: u32) -> [f64; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for run in 0..runs {
        let devices = devices(family, requests, fault, &mut Dice::new(u64::from(run)));
        let judged = judged(&devices);
        for (found, fires) in found.iter_mut().zip([tail_fires, shift_fires]) {
            found.push(match fault {
                Fault::None => judged.iter().any(fires),
                _ => fires(&judged[0]),
            });
        }
    }
    let what = format!("{family:?} | {requests} | {fault:?}");
    let [tail, shift] = found;
    [("tail", tail), ("shift", shift)]
        .map(|(test, found)| rate(&format!("{test} | {what}"), runs, |run| found[run as usize]))
}

#[test]
fn devices_that_are_all_alike_are_rarely_told_apart() {
    for family in FAMILIES {
        for requests in [50, 200, 1000] {
            let runs = runs(20_000 / requests as u32);
            for found in fired(family, requests, Fault::None, runs) {
                assert_at_most(found, 0.01, runs, &format!("{family:?} {requests}"));
            }
        }
    }
}

/// Requests of eight sorts, each with its own usual time, so that no stratum has many.
#[test]
fn devices_that_are_alike_in_many_strata_are_rarely_told_apart() {
    for family in FAMILIES {
        let runs = runs(60);
        let what = format!("many strata | {family:?}");
        let found = rate(&what, runs, |run| {
            let dice = &mut Dice::new(run);
            let one = |_| {
                let mut sample = Sample::default();
                for request in 0..200 {
                    let sort = request % 8;
                    let stratum = Stratum::new(0, 4096 << sort, 1);
                    let time = 5e6 * (1 + sort) as f64 * family.draw(dice);
                    sample.add(stratum, time as i64, time as i64);
                    sample.ask(0);
                }
                sample
            };
            let samples: Vec<Sample> = (0..DEVICES).map(one).collect();
            judged(&samples).iter().any(fires)
        });
        assert_at_most(found, 0.01, runs, &what);
    }
}

/// Of 50 requests that are each slow with a chance of .2, fewer than the five that the test wants
/// are slow in one run of fifty: no test that wants five can do better than .985.
#[test]
fn a_device_whose_requests_are_slow_by_chance_is_found() {
    for (family, wanted) in [
        (Family::LogNormal(0.5), [0.98, 1.0, 0.73]),
        (Family::LogNormal(0.8), [0.97, 1.0, 0.73]),
    ] {
        let cases = [(50, 0.2), (200, 0.2), (1000, 0.05)];
        for ((requests, chance), wanted) in cases.into_iter().zip(wanted) {
            let runs = runs(20_000 / requests as u32);
            let [found, _] = fired(family, requests, Fault::Each(chance, 20.0), runs);
            assert_at_least(found, wanted, runs, &format!("{family:?} {requests}"));
        }
    }
}

/// Where times vary as those of disks do, the rates are those that were asked for; with longer tails,
/// twenty times the usual is less and less unusual.
#[test]
fn a_device_with_some_slow_requests_is_found() {
    for (family, wanted) in [
        (Family::LogNormal(0.5), [0.99, 1.0, 0.73]),
        (Family::LogNormal(0.8), [0.99, 1.0, 0.73]),
        (Family::LogNormal(1.0), [0.97, 1.0, 0.3]),
        (Family::Exponential, [0.99, 1.0, 0.5]),
        (Family::Weibull(0.5), [0.3, 0.9, 0.0]),
        (Family::Pareto(1.0), [0.1, 0.4, 0.0]),
    ] {
        let cases = [(50, 0.2), (200, 0.2), (1000, 0.05)];
        for ((requests, share), wanted) in cases.into_iter().zip(wanted) {
            let runs = runs(10_000 / requests as u32);
            let [found, _] = fired(family, requests, Fault::Some(share, 20.0), runs);
            assert_at_least(found, wanted, runs, &format!("{family:?} {requests}"));
        }
    }
}

#[test]
fn a_device_that_is_slower_throughout_is_found() {
    for (family, wanted) in [
        (Family::LogNormal(0.5), [0.99, 1.0, 1.0]),
        (Family::LogNormal(0.8), [0.97, 0.99, 1.0]),
        (Family::LogNormal(1.0), [0.95, 0.99, 1.0]),
        (Family::Exponential, [0.9, 0.99, 1.0]),
        (Family::Weibull(0.5), [0.25, 0.7, 0.99]),
        (Family::Pareto(1.0), [0.99, 0.99, 1.0]),
    ] {
        for (requests, wanted) in [100, 200, 1000].into_iter().zip(wanted) {
            let runs = runs(10_000 / requests as u32);
            let [_, found] = fired(family, requests, Fault::All(2.0), runs);
            assert_at_least(found, wanted, runs, &format!("{family:?} {requests}"));
        }
    }
}
