//! T9: whether episodes are periodic.
//!
//! Onsets are mapped to a circle for each of many frequencies; if they point in one direction, that
//! is the frequency (Rayleigh's test, with power `P = |Σ e^(2πi f t)|² / n`, exponential by
//! chance). Of several equally clear frequencies the lowest counts, because each multiple of a
//! frequency fits as well.
//!
//! Onsets in clusters are not independent: the frequency is tested again with onsets that are at
//! least a quarter of its period apart.

use whyslow_analysis::statistics::binomial_tail;
use whyslow_model::Ns;

/// Minimum number of episodes: fewer fit some period by chance.
pub const EPISODES_MIN: usize = 12;
/// Minimum number of periods in the window.
const PERIODS_MIN: f64 = 4.0;
const FREQUENCY_MAX: f64 = 0.5;
/// Frequency steps are this fraction of the window's resolution.
const STEP: f64 = 3.0;
const LEVEL: f64 = 1e-3;
const LENGTH_MIN: f64 = 0.7;
/// Frequencies with at least this share of the greatest power are equally clear.
const AS_CLEAR: f64 = 0.8;
/// Onsets closer than this, in periods, count as one.
const APART: f64 = 0.25;
/// The best frequency is refined in this many parts of a step.
const FINER: i32 = 20;
/// Maximum number of episodes: more only take time.
const EPISODES_MAX: usize = 2000;

/// Maximum distance of a job's start from an onset, in periods …
const JOB_WITHIN: f64 = 0.05;
/// … and the minimum share of onsets with one, for the job to be reported.
const JOB_SHARE_MIN: f64 = 0.5;

/// The clearest period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rhythm {
    /// Period, ns.
    pub period: f64,
    /// Mean onset, in ns after the start of the window.
    pub phase: f64,
    /// Agreement of the onsets' phases: 1 if they are equal.
    pub length: f64,
    /// Probability over all frequencies.
    pub p: f64,
    /// Episodes that are at least a quarter of the period apart.
    pub episodes: usize,
}

impl Rhythm {
    /// Whether `p`, the mean vector and the number of episodes are all beyond their limits.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL && self.length > LENGTH_MIN && self.episodes >= EPISODES_MIN
    }
}

/// `onsets` ascending. `None` with fewer than three, or in a window of less than eight seconds.
pub fn rhythm(onsets: &[Ns], window: (Ns, Ns)) -> Option<Rhythm> {
    let onsets = &onsets[..onsets.len().min(EPISODES_MAX)];
    let all = (window.1 - window.0) as f64 / 1e9;
    let (first, step) = (PERIODS_MIN / all, 1.0 / (STEP * all));
    let steps = ((FREQUENCY_MAX - first) / step).floor();
    if onsets.len() < 3 || steps < 1.0 {
        return None;
    }
    let seconds = onsets.iter().map(|ts| (ts - window.0) as f64 / 1e9);
    let seconds: Vec<f64> = seconds.collect();
    let powers = powers(&seconds, (first, step), steps as usize + 1);
    let greatest = powers.iter().copied().fold(0.0, f64::max);
    let mut place = powers
        .iter()
        .position(|power| *power >= AS_CLEAR * greatest)?;
    while powers
        .get(place + 1)
        .is_some_and(|next| *next > powers[place])
    {
        place += 1;
    }
    let coarse = first + place as f64 * step;
    let seconds = apart(&seconds, APART / coarse);
    let near = (-FINER..=FINER).map(|part| {
        let part = f64::from(part) / f64::from(FINER);
        first + (place as f64 + part) * step
    });
    let finest = near.map(|frequency| (sum(&seconds, frequency), frequency));
    let ((re, im), frequency) = finest.max_by(|a, b| length(a.0).total_cmp(&length(b.0)))?;
    let rotation = im.atan2(re) / std::f64::consts::TAU;
    Some(Rhythm {
        period: 1e9 / frequency,
        phase: rotation.rem_euclid(1.0) * 1e9 / frequency,
        length: length((re, im)) / seconds.len() as f64,
        p: -(powers.len() as f64 * (-(-power(&seconds, coarse)).exp()).ln_1p()).exp_m1(),
        episodes: seconds.len(),
    })
}

/// The onsets that are at least this far from the previous one.
fn apart(seconds: &[f64], far: f64) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::with_capacity(seconds.len());
    for at in seconds {
        if kept.last().is_none_or(|last| at - last >= far) {
            kept.push(*at);
        }
    }
    kept
}

fn power(seconds: &[f64], frequency: f64) -> f64 {
    length(sum(seconds, frequency)).powi(2) / seconds.len() as f64
}

/// Powers at `count` frequencies, given the first and the step.
fn powers(seconds: &[f64], (first, step): (f64, f64), count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); count];
    for at in seconds {
        // One rotation per step: a product is far cheaper than a sine.
        let (mut im, mut re) = (std::f64::consts::TAU * first * at).sin_cos();
        let (rotation_im, rotation_re) = (std::f64::consts::TAU * step * at).sin_cos();
        for sum in &mut sums {
            *sum = (sum.0 + re, sum.1 + im);
            (re, im) = (
                re * rotation_re - im * rotation_im,
                re * rotation_im + im * rotation_re,
            );
        }
    }
    let count = seconds.len() as f64;
    let power = |(re, im)| (re * re + im * im) / count;
    sums.into_iter().map(power).collect()
}

fn sum(seconds: &[f64], frequency: f64) -> (f64, f64) {
    let rotations = seconds
        .iter()
        .map(|at| (std::f64::consts::TAU * frequency * at).sin_cos());
    rotations.fold((0.0, 0.0), |sum, (im, re)| (sum.0 + re, sum.1 + im))
}

fn length((re, im): (f64, f64)) -> f64 {
    re.hypot(im)
}

/// How well starts of a job match onsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matching {
    /// Onsets with a nearby start of the job.
    pub near: usize,
    /// All onsets.
    pub onsets: usize,
    /// Probability of that many by chance.
    pub p: f64,
}

impl Matching {
    /// Whether `p` is below the level and enough onsets have a nearby start.
    pub fn is_much(&self) -> bool {
        self.p < LEVEL && self.near as f64 >= JOB_SHARE_MIN * self.onsets as f64
    }
}

/// Matches starts of a job with onsets, within a twentieth of the period (ns).
pub fn matching(onsets: &[Ns], starts: &[Ns], (period, window): (f64, (Ns, Ns))) -> Matching {
    let within = (JOB_WITHIN * period) as Ns;
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    let is_near = |onset: &&Ns| {
        let after = starts.partition_point(|start| *start < *onset - within);
        starts
            .get(after)
            .is_some_and(|start| *start <= *onset + within)
    };
    let near = onsets.iter().filter(is_near).count();
    let all = (window.1 - window.0).max(1) as f64;
    let covered = (starts.len() as f64 * 2.0 * within as f64 / all).min(1.0);
    Matching {
        near,
        onsets: onsets.len(),
        p: binomial_tail(near as u64, onsets.len() as u64, covered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Ns = 1_000_000_000;

    #[test]
    fn a_rhythm_is_found_with_its_period_and_phase() {
        let onsets: Vec<Ns> = (0..30).map(|at| 17 * S + at * 60 * S).collect();
        let found = rhythm(&onsets, (0, 1800 * S)).unwrap();
        assert!(found.is_much(), "{found:?}");
        assert!((found.period / 60e9 - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.phase / 17e9 - 1.0).abs() < 0.02, "{found:?}");
        assert!(found.length > 0.999);
        // A period that is not on the frequency grid.
        let onsets: Vec<Ns> = (0..40).map(|at| at * 7_137_000_000).collect();
        let found = rhythm(&onsets, (0, 290 * S)).unwrap();
        assert!((found.period / 7.137e9 - 1.0).abs() < 2e-3, "{found:?}");
    }

    #[test]
    fn few_episodes_or_a_short_window_have_none() {
        let onsets: Vec<Ns> = (0..11).map(|at| at * 60 * S).collect();
        assert!(!rhythm(&onsets, (0, 660 * S)).unwrap().is_much());
        assert_eq!(rhythm(&onsets[..2], (0, 660 * S)), None);
        assert_eq!(rhythm(&[0, S, 2 * S], (0, 8 * S)), None);
        assert_eq!(rhythm(&[], (0, 0)), None);
    }

    #[test]
    fn the_sums_are_those_of_sines() {
        let seconds = [0.3, 1.7, 4.4, 9.1];
        let found = powers(&seconds, (0.1, 0.02), 20);
        for (step, power) in found.iter().enumerate() {
            let sum = length(sum(&seconds, 0.1 + 0.02 * step as f64));
            assert!((power - sum * sum / 4.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_job_of_the_same_times_is_matched() {
        let onsets: Vec<Ns> = (0..20).map(|at| at * 60 * S + S).collect();
        let check = |starts: &[Ns]| matching(&onsets, starts, (60e9, (0, 1200 * S)));
        let cron: Vec<Ns> = (0..20).map(|at| at * 60 * S).collect();
        let found = check(&cron);
        assert!(found.is_much() && found.near == 20, "{found:?}");
        let other: Vec<Ns> = (0..20).map(|at| at * 60 * S + 30 * S).collect();
        assert!(!check(&other).is_much());
        // A job that always runs matches everything.
        let always: Vec<Ns> = (0..1200).map(|at| at * S).collect();
        assert!(!check(&always).is_much());
        assert!(!check(&[]).is_much());
    }
}
