//! How far a quantile moved.
//!
//! Whether it moved at all is asked at one limit, the quantile of both sides together: do as many
//! requests before lie beyond it as after? The interval of how far it moved is from drawing blocks
//! with replacement. Of each draw only the quantile is wanted, which lies near that of all: so
//! requests are counted by block between some hundred limits around it, and a draw is a search among
//! these.

use super::Latency;
use super::blocks::{Blocks, Cut, widening};
use super::shares;
use crate::statistics::Dice;

const DRAWS: usize = 999;
/// Limits around the quantile of a side …
const LIMITS: usize = 400;
/// … over so many standard errors to each side.
const REACH: f64 = 6.0;
/// With fewer requests beyond it a quantile is one of the greatest values, and no more.
const BEYOND_MIN: f64 = 10.0;
/// A shift that one wants to find, as a logarithm: 10 %.
const WANTED: f64 = 0.095_310_179_804_324_87;
/// Normal deviate of the level of one of six tests, and that of nine of ten.
const FOUND_Z: f64 = 2.638 + 1.282;
const SEED: u64 = 8;

/// A quantile before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantile {
    /// Share of the requests that took as long or less.
    pub(crate) share: f64,
    /// ns; none where too few requests tell.
    pub(crate) sides: Option<(f64, f64)>,
    /// 95 % of what the ratio of after to before may be.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
    /// Requests of each side with which 10 % would be found nine times of ten.
    pub(crate) enough: Option<u64>,
}

impl Quantile {
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.sides
            .map(|(before, after)| after.max(1.0) / before.max(1.0))
    }
}

pub(super) fn compare(quantile: f64, blocks: &[Blocks; 2], sides: [&[Latency]; 2]) -> Quantile {
    let none = Quantile {
        share: quantile,
        sides: None,
        interval: None,
        p: None,
        enough: None,
    };
    let fewest = sides.iter().map(|side| side.len()).min().unwrap_or(0);
    if (fewest as f64) * (1.0 - quantile) < BEYOND_MIN
        || blocks.iter().any(|one| one.cuts.is_empty())
    {
        return Quantile {
            enough: Some((BEYOND_MIN / (1.0 - quantile)).ceil().max(100.0) as u64),
            ..none
        };
    }
    let sorted = sides.map(sorted);
    let [before, after] = [0, 1].map(|side| at(&sorted[side], quantile));
    let limit = pooled(&sorted, quantile);
    let beyond = |side: &[Latency]| -> Vec<f64> {
        let values = side.iter().map(|one| one.dur.unwrap_or(0) as f64);
        // Clocks are coarse: who is at the limit is beyond it by half.
        let share = |value: f64| match value.total_cmp(&limit) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        values.map(share).collect()
    };
    let test = shares::compare(blocks, sides.map(beyond));
    let drawn = [0, 1].map(|side| {
        let values = sides[side].iter().map(|one| {
            let dur = one.dur.unwrap_or(0) as f64;
            f64::from(dur > [before, after][side])
        });
        let certain = blocks[side].certainty(&values.collect::<Vec<_>>(), 1.0 - quantile);
        let (cut, error) = certain.map_or((0, 0.0), |one| (one.cut, one.error));
        let grid = Grid::of(
            &sorted[side],
            sides[side],
            &blocks[side].cuts[cut],
            (quantile, error),
        );
        let wide = certain.map_or(1.0, |one| {
            // Blocks drawn with replacement vary as if there was one block fewer.
            one.inflation * widening(one.degrees) * ((one.degrees + 1.0) / one.degrees).sqrt()
        });
        (grid.draws(quantile, SEED + side as u64), wide)
    });
    let point = (after.max(1.0) / before.max(1.0)).ln();
    let pairs = drawn[0].0.iter().zip(&drawn[1].0);
    let mut logs: Vec<f64> = pairs.map(|(a, b)| (b.max(1.0) / a.max(1.0)).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let wide = drawn[0].1.max(drawn[1].1);
    let end = |share: f64| point + wide * (at(&logs, share) - point);
    let (low, high) = (end(0.025), end(0.975));
    let error = (high - low) / (2.0 * 1.96);
    let both = sides.iter().map(|side| side.len()).sum::<usize>() as f64 / 2.0;
    Quantile {
        sides: Some((before, after)),
        interval: Some((low.exp(), high.exp())),
        p: test.p,
        enough: Some(((FOUND_Z * error / WANTED).powi(2) * both).ceil() as u64),
        ..none
    }
}

fn sorted(side: &[Latency]) -> Vec<f64> {
    let mut values: Vec<f64> = side.iter().map(|one| one.dur.unwrap_or(0) as f64).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values, the least with such a share at or below it.
pub(super) fn at(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    let place = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// Quantile of both sides, each counting as much as the other.
fn pooled(sides: &[Vec<f64>; 2], quantile: f64) -> f64 {
    let [before, after] = sides;
    let below = |value: f64| {
        let share =
            |side: &[f64]| side.partition_point(|one| *one <= value) as f64 / side.len() as f64;
        share(before).midpoint(share(after))
    };
    let least = |side: &[f64]| {
        let place = side.partition_point(|value| below(*value) < quantile);
        side.get(place).copied().unwrap_or(f64::INFINITY)
    };
    least(before).min(least(after))
}

/// Requests by block that lie at or below each of some limits.
struct Grid {
    limits: Vec<f64>,
    /// By limit, then block.
    below: Vec<Vec<f64>>,
    counts: Vec<f64>,
}

impl Grid {
    fn of(sorted: &[f64], side: &[Latency], cut: &Cut, (quantile, error): (f64, f64)) -> Self {
        let (from, to) = (quantile - REACH * error, quantile + REACH * error);
        let limit = |step: usize| {
            let share = from + (to - from) * step as f64 / LIMITS as f64;
            at(sorted, share.clamp(0.0, 1.0))
        };
        let mut limits: Vec<f64> = (0..=LIMITS).map(limit).collect();
        limits.dedup();
        let mut below = vec![vec![0.0; cut.counts.len()]; limits.len()];
        for (one, block) in side.iter().zip(&cut.block) {
            let value = one.dur.unwrap_or(0) as f64;
            let place = limits.partition_point(|limit| *limit < value);
            if let Some(counts) = below.get_mut(place) {
                counts[*block as usize] += 1.0;
            }
        }
        for place in 1..below.len() {
            let (before, rest) = below.split_at_mut(place);
            for (count, more) in rest[0].iter_mut().zip(&before[place - 1]) {
                *count += more;
            }
        }
        Self {
            limits,
            below,
            counts: cut.counts.clone(),
        }
    }

    fn draws(&self, quantile: f64, seed: u64) -> Vec<f64> {
        let dice = &mut Dice::new(seed);
        let blocks = self.counts.len();
        let draw = |_| {
            let mut times = vec![0.0; blocks];
            for _ in 0..blocks {
                times[dice.below(blocks)] += 1.0;
            }
            let sum = |counts: &[f64]| -> f64 {
                counts
                    .iter()
                    .zip(&times)
                    .map(|(count, times)| count * times)
                    .sum()
            };
            let wanted = quantile * sum(&self.counts);
            let place = self.below.partition_point(|counts| sum(counts) < wanted);
            self.limits[place.min(self.limits.len() - 1)]
        };
        (0..DRAWS).map(draw).collect()
    }
}
