//! Attributes the difference of the means to phases: means of phases add up, percentiles do not.

use super::blocks::{Both, Certainty, Cut, normal_of_student, widening};
use super::latency::{Latency, PHASES_MAX};
use super::quantiles::at;
use super::verdict::Difference;
use crate::statistics::{Dice, normal_tail};

const DRAWS: usize = 999;
const SEED: u64 = 80;
/// Time that belongs to no phase.
pub(crate) const REST: usize = PHASES_MAX;
/// The whole request.
pub(crate) const WHOLE: usize = PHASES_MAX + 1;
const PARTS: usize = PHASES_MAX + 2;

/// Mean duration of a part of a request, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Mean {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// Median before and after.
    pub(crate) medians: (f64, f64),
    /// 95 % interval of the difference of the means.
    pub(crate) interval: (f64, f64),
}

/// By phase index, then [`REST`] and [`WHOLE`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Means {
    pub(crate) parts: Vec<Mean>,
    /// p value of the difference of the whole.
    pub(crate) p: Option<f64>,
}

impl Means {
    pub(crate) fn difference(&self) -> Difference {
        let found = self.change();
        Difference {
            change: found.map(|(change, _)| change),
            interval: found.map(|(_, interval)| interval),
            p: self.p,
        }
    }

    /// Relative change of the mean of whole requests, and its 95 % interval.
    pub(crate) fn change(&self) -> Option<(f64, (f64, f64))> {
        let whole = self.parts.get(WHOLE).filter(|whole| whole.before > 0.0)?;
        let (low, high) = whole.interval;
        let change = (whole.after - whole.before) / whole.before;
        Some((change, (low / whole.before, high / whole.before)))
    }
}

fn parts(one: &Latency) -> [f64; PARTS] {
    let whole = one.dur.unwrap_or(0) as f64;
    let mut parts = [0.0; PARTS];
    for (part, phase) in parts.iter_mut().zip(&one.phases) {
        *part = *phase as f64;
    }
    parts[REST] = whole - parts[..PHASES_MAX].iter().sum::<f64>();
    parts[WHOLE] = whole;
    parts
}

/// Parts that any request spent time in; the others are 0 everywhere.
fn used(sides: [&[Latency]; 2]) -> Vec<usize> {
    let mut has = [false; PARTS];
    for one in sides.into_iter().flatten() {
        for (has, part) in has.iter_mut().zip(parts(one)) {
            *has |= part != 0.0;
        }
    }
    (0..PARTS).filter(|part| has[*part]).collect()
}

/// Sums by block.
struct Sums {
    counts: Vec<f64>,
    /// For each block, the sum of each used part.
    times: Vec<f64>,
    /// Number of used parts.
    used: usize,
    /// Factor by which an interval is wider than that of the bootstrap.
    wide: f64,
}

impl Sums {
    fn of(cut: &Cut, (requests, used): (&[Latency], &[usize]), certain: Certainty) -> Self {
        let mut times = vec![0.0; cut.counts.len() * used.len()];
        for (one, block) in requests.iter().zip(&cut.block) {
            let parts = parts(one);
            let begin = *block as usize * used.len();
            let sums = &mut times[begin..begin + used.len()];
            for (sum, part) in sums.iter_mut().zip(used) {
                *sum += parts[*part];
            }
        }
        Self {
            counts: cut.counts.clone(),
            times,
            used: used.len(),
            wide: certain.inflation * widening(certain.degrees),
        }
    }

    /// The mean of each used part in these blocks, at its place among the used ones.
    fn mean(&self, blocks: impl Iterator<Item = usize>) -> [f64; PARTS] {
        let (mut sum, mut count) = ([0.0; PARTS], 0.0);
        for block in blocks {
            count += self.counts[block];
            let begin = block * self.used;
            for (sum, more) in sum.iter_mut().zip(&self.times[begin..begin + self.used]) {
                *sum += more;
            }
        }
        sum.map(|sum| sum / f64::max(count, 1.0))
    }
}

/// Uncertainty of the mean of each side; for alternating runs, of the difference. And the p value of
/// the difference.
fn certain(blocks: &Both, sides: [&[Latency]; 2]) -> Option<([Certainty; 2], Option<f64>)> {
    let whole = |one: &Latency| parts(one)[WHOLE];
    let values: [Vec<f64>; 2] = sides.map(|side| side.iter().map(whole).collect());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let means = [mean(&values[0]), mean(&values[1])];
    let both = blocks.certainty([&values[0], &values[1]], means)?;
    let p = (both.error > 0.0).then(|| {
        let t = (means[1] - means[0]) / both.error;
        (2.0 * normal_tail(normal_of_student(t, both.degrees))).min(1.0)
    });
    if blocks.in_turns {
        return Some(([both; 2], p));
    }
    let one = |side: usize| blocks.sides[side].certainty(&values[side], means[side]);
    Some(([one(0)?, one(1)?], p))
}

pub(super) fn compare(blocks: &Both, sides: [&[Latency]; 2]) -> Option<Means> {
    let (certain, p) = certain(blocks, sides)?;
    let used = used(sides);
    let [before, after] = [0, 1].map(|side| {
        let cut = &blocks.sides[side].cuts[certain[side].cut];
        Sums::of(cut, (sides[side], &used), certain[side])
    });
    let all = |sums: &Sums| sums.mean(0..sums.counts.len());
    let means = [all(&before), all(&after)];
    let dice = &mut Dice::new(SEED);
    let draw = |sums: &Sums, dice: &mut Dice| -> Vec<usize> {
        let blocks = sums.counts.len();
        (0..blocks).map(|_| dice.below(blocks)).collect()
    };
    let draws = (0..DRAWS).map(|_| {
        let of_before = draw(&before, dice);
        // For alternating runs, the same blocks are drawn on both sides.
        let of_after = if blocks.in_turns {
            of_before.clone()
        } else {
            draw(&after, dice)
        };
        let a = before.mean(of_before.into_iter());
        let b = after.mean(of_after.into_iter());
        let mut difference = b;
        for (b, a) in difference.iter_mut().zip(a) {
            *b -= a;
        }
        difference
    });
    let draws: Vec<[f64; PARTS]> = draws.collect();
    let wide = before.wide.max(after.wide);
    let mut found = vec![Mean::default(); PARTS];
    for (place, part) in used.into_iter().enumerate() {
        let mut drawn: Vec<f64> = draws.iter().map(|draw| draw[place]).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let point = means[1][place] - means[0][place];
        let end = |share: f64| point + wide * (at(&drawn, share) - point);
        let median = |side: &[Latency]| {
            let mut values: Vec<f64> = side.iter().map(|one| parts(one)[part]).collect();
            values.sort_unstable_by(f64::total_cmp);
            at(&values, 0.5)
        };
        found[part] = Mean {
            before: means[0][place],
            after: means[1][place],
            medians: (median(sides[0]), median(sides[1])),
            interval: (end(0.025), end(0.975)),
        };
    }
    Some(Means { parts: found, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_mean_and_unused_ones_are_zero() {
        let side = |more: i64| -> Vec<Latency> {
            let one = |place: i64| {
                let mut phases = [0; PHASES_MAX];
                (phases[2], phases[5]) = (101, 1000 + more);
                Latency {
                    ts: place + more * 1_000_000,
                    dur: Some(2000 + more),
                    failed: false,
                    worker: 0,
                    phases,
                }
            };
            (0..600).map(one).collect()
        };
        let sides = [side(0), side(70)];
        let sides = [&sides[0][..], &sides[1][..]];
        let found = compare(&Both::of(sides), sides).expect("enough requests");
        let means: Vec<(f64, f64)> = found.parts.iter().map(|it| (it.before, it.after)).collect();
        let mut expected = [(0.0, 0.0); PARTS];
        expected[2] = (101.0, 101.0);
        expected[5] = (1000.0, 1070.0);
        expected[REST] = (899.0, 899.0);
        expected[WHOLE] = (2000.0, 2070.0);
        assert_eq!(means, expected);
        assert_eq!(found.parts[5].medians, (1000.0, 1070.0));
        assert_eq!(found.parts[2].interval, (0.0, 0.0));
    }
}
