//! Detection and false positive rates of the tests, on simulated devices.
//!
//! `docs/outliers.md` has the rates of many runs and the command for them; the tests execute as
//! many runs as fit into a second or two.

mod bound;
mod devices;
mod dice;
mod literal;
mod queues;
mod rates;

use super::{Compared, Comparison, Sample, adjust, compare};

/// As in the view: all tests of an answer are adjusted together.
fn compared(samples: &[Sample]) -> Vec<Compared> {
    let mut compared = compare(samples);
    adjust(compared.iter_mut().flat_map(Compared::comparisons_mut));
    compared
}

fn tail_fires(device: &Compared) -> bool {
    comparisons(device).iter().any(Comparison::tail_fires)
}

fn shift_fires(device: &Compared) -> bool {
    comparisons(device).iter().any(Comparison::shift_fires)
}

fn fires(device: &Compared) -> bool {
    tail_fires(device) || shift_fires(device)
}

fn comparisons(device: &Compared) -> &[Comparison] {
    device.by_op.as_deref().unwrap_or_default()
}

/// Number of runs for each case: the default, or `WHYSLOW_RUNS`.
fn runs(default: u32) -> u32 {
    let wanted = std::env::var("WHYSLOW_RUNS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Share of runs in which something happened.
fn rate(what: &str, runs: u32, mut happens: impl FnMut(u64) -> bool) -> f64 {
    let count = (0..runs).filter(|run| happens(u64::from(*run))).count();
    let rate = count as f64 / f64::from(runs);
    println!("| {what} | {rate:.3} |");
    rate
}

/// Deviation of a rate over `runs` from the true one by chance: three standard deviations.
fn margin(rate: f64, runs: u32) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(runs)).sqrt()
}

fn assert_at_least(found: f64, wanted: f64, runs: u32, what: &str) {
    let least = wanted - margin(wanted, runs);
    assert!(
        found >= least,
        "{what}: {found} of {runs} runs, not {wanted}"
    );
}

fn assert_at_most(found: f64, wanted: f64, runs: u32, what: &str) {
    let most = wanted + margin(wanted, runs);
    assert!(
        found <= most,
        "{what}: {found} of {runs} runs, not {wanted}"
    );
}
