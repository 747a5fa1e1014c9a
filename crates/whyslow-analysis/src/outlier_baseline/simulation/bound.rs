//! Upper bound of the power of any test.
//!
//! Suppose a test knows everything except which device is bad: the distribution of times, its
//! parameters, how many requests are slow and by how much. Then one hypothesis is that all devices
//! are alike, the other that one of them is bad, each with equal probability. Among all tests that
//! fire in at most a given share of runs with equal devices, the likelihood ratio test has the
//! highest power (Neyman, Pearson 1933). A test that knows less and has to name the device cannot
//! do better.

use super::devices::{Fault, times};
use super::dice::{Dice, Family};

/// False positive rate: share of runs with equal devices in which a test may fire.
pub(super) const FALSE_MAX: f64 = 0.03;

/// Share of runs in which the most powerful test would find the fault.
pub(super) fn power(family: Family, requests: usize, fault: Fault, runs: u32) -> f64 {
    let ratios = |fault_there: Fault, seed: u64| -> Vec<f64> {
        let ratio = |run: u32| {
            let dice = &mut Dice::new(seed + u64::from(run));
            ln_ratio(family, fault, &times(family, requests, fault_there, dice))
        };
        (0..runs).map(ratio).collect()
    };
    let mut alike = ratios(Fault::None, 0);
    alike.sort_by(f64::total_cmp);
    // Different runs from those that determine the limit.
    let bad = ratios(fault, 1 << 32);
    let fires = FALSE_MAX * f64::from(runs);
    let limit = alike[(alike.len() - fires as usize).min(alike.len() - 1)];
    let beyond =
        |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio > limit + 1e-9).count() as f64;
    let equal = |ratios: &[f64]| {
        let below = ratios.iter().filter(|ratio| **ratio < limit - 1e-9);
        (ratios.len() - below.count()) as f64 - beyond(ratios)
    };
    // If many runs are at the limit, the test fires for the permitted part of them.
    let part = (fires - beyond(&alike)) / equal(&alike);
    (beyond(&bad) + part.clamp(0.0, 1.0) * equal(&bad)) / f64::from(runs)
}

/// Logarithm of the mean ratio over all devices, any of which may be the bad one.
fn ln_ratio(family: Family, fault: Fault, devices: &[Vec<f64>]) -> f64 {
    let each = devices.iter().map(|times| of_device(family, fault, times));
    let each: Vec<f64> = each.collect();
    let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    let sum: f64 = each.iter().map(|ratio| (ratio - most).exp()).sum();
    most + (sum / devices.len() as f64).ln()
}

fn of_device(family: Family, fault: Fault, all: &[f64]) -> f64 {
    let slow = |time: &f64, times: f64| {
        let log = time.ln();
        family.ln_density(log - times.ln()) - family.ln_density(log)
    };
    match fault {
        Fault::None => 0.0,
        Fault::All(times) => all.iter().map(|time| slow(time, times)).sum(),
        Fault::Each(chance, times) => {
            let ratio = |time: &f64| 1.0 - chance + chance * slow(time, times).exp();
            all.iter().map(|time| ratio(time).ln()).sum()
        }
        Fault::Some(share, times) => {
            let ratios = all.iter().map(|time| slow(time, times).exp());
            of_choices(ratios, (share * all.len() as f64).ceil() as usize)
        }
    }
}

/// Logarithm of the mean product over all ways to choose `slow` of these.
fn of_choices(ratios: impl Iterator<Item = f64>, slow: usize) -> f64 {
    // The same for the values so far, for each number of chosen ones.
    let mut means = vec![0.0; slow + 1];
    means[0] = 1.0;
    let mut scale = 0.0;
    for (before, ratio) in ratios.enumerate() {
        let seen = before as f64 + 1.0;
        for chosen in (1..=slow.min(before + 1)).rev() {
            let with = chosen as f64 / seen;
            means[chosen] = means[chosen] * (1.0 - with) + means[chosen - 1] * ratio * with;
        }
        let greatest = means.iter().copied().fold(0.0, f64::max);
        if greatest > 1e100 {
            for mean in &mut means {
                *mean /= greatest;
            }
            scale += greatest.ln();
        }
    }
    means[slow].ln() + scale
}

#[test]
fn the_mean_over_all_choices_is_that() {
    let ratios = [0.5, 3.0, 0.25, 7.0, 2.0];
    let pairs = (0..5).flat_map(|a| (0..a).map(move |b| ratios[a] * ratios[b]));
    let expected = (pairs.sum::<f64>() / 10.0).ln();
    let found = of_choices(ratios.into_iter(), 2);
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

/// Two normal distributions, one device, one request: known in closed form.
#[test]
fn the_bound_of_one_shift_is_that_of_the_textbook() {
    // A shift of four standard deviations among 17 requests is found if it is the greatest by far.
    let found = power(Family::LogNormal(1.0), 1, Fault::All(4.0f64.exp()), 4000);
    // One of 17 normal values is beyond 2.91 in .03 of the runs; the shifted one in .862.
    assert!((found - 0.862).abs() < 0.03, "{found}");
}
