//! Detection and false-positive rates of the tests on simulated items.
//!
//! `docs/patterns.md` has the rates of many runs and the command that produces them; the tests make
//! as many runs as a second or two allows without optimisation.

mod conclusion;
mod keys_and_load;
mod time;
mod times;

use whyslow_analysis::statistics::Dice;
use whyslow_model::Ns;

use super::{Item, UNIDENTIFIED};

const MS: f64 = 1e6;
const S: f64 = 1e9;

/// Distribution of durations, around 1.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    /// With this standard deviation of the logarithm.
    LogNormal(f64),
    Exponential,
    /// With this shape.
    Weibull(f64),
    /// With exponent 1, which has no mean.
    Pareto,
}

const FAMILIES: [Family; 5] = [
    Family::LogNormal(0.5),
    Family::LogNormal(1.0),
    Family::Exponential,
    Family::Weibull(0.5),
    Family::Pareto,
];

impl Family {
    fn draw(self, dice: &mut Dice) -> f64 {
        match self {
            Family::LogNormal(sigma) => (sigma * dice.normal()).exp(),
            Family::Exponential => dice.exponential(),
            Family::Weibull(shape) => dice.exponential().powf(1.0 / shape),
            Family::Pareto => 1.0 / dice.unit(),
        }
    }
}

/// Times in ns.
fn item(ts: f64, dur: f64, key: u32) -> Item {
    Item {
        ts: ts as Ns,
        dur: dur as Ns,
        key,
        object: UNIDENTIFIED,
        worker: UNIDENTIFIED,
        failed: false,
        result: 0,
        wait_ns_max: None,
    }
}

/// Number of runs of each case, multiplied by `WHYSLOW_RUNS` if it is set.
fn runs(default: u32) -> u32 {
    let wanted = std::env::var("WHYSLOW_RUNS").ok();
    default
        * wanted
            .and_then(|text| text.parse::<u32>().ok())
            .unwrap_or(1)
}

/// Share of runs in which something happened, each with its own dice.
fn rate(what: &str, runs: u32, mut happens: impl FnMut(&mut Dice) -> bool) -> f64 {
    let count = (0..runs).filter(|run| happens(&mut Dice::new(u64::from(*run))));
    let rate = count.count() as f64 / f64::from(runs);
    println!("| {what} | {runs} | {rate:.3} |");
    rate
}

/// Three standard deviations of the share over this many runs.
fn margin(rate: f64, runs: u32) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(runs)).sqrt()
}

/// Asserts that `what` happens in at most this share of runs, within the margin.
fn at_most(what: &str, wanted: f64, runs: u32, happens: impl FnMut(&mut Dice) -> bool) {
    let found = rate(what, runs, happens);
    let most = wanted + margin(wanted, runs);
    assert!(
        found <= most,
        "{what}: {found} in {runs} runs, not {wanted}"
    );
}

fn at_least(what: &str, wanted: f64, runs: u32, happens: impl FnMut(&mut Dice) -> bool) {
    let found = rate(what, runs, happens);
    let least = wanted - margin(wanted, runs);
    assert!(
        found >= least,
        "{what}: {found} in {runs} runs, not {wanted}"
    );
}

/// Asserts that `what` happens in about this share of runs.
fn about(what: &str, wanted: f64, runs: u32, happens: impl FnMut(&mut Dice) -> bool) {
    let found = rate(what, runs, happens);
    let far = (found - wanted).abs();
    assert!(
        far <= margin(wanted, runs) + 0.02,
        "{what}: {found} in {runs} runs, not {wanted}"
    );
}
