//! Estimates by how much a quantile moved.
//!
//! Whether it moved at all is tested at one limit, the quantile of both sides together: is the
//! share of requests beyond it the same before and after? The interval of the shift is from a
//! bootstrap over blocks. Only the quantile of each replicate is needed, which is close to that of
//! all requests: so requests are counted by block between some hundred limits around it, and each
//! replicate is a search among these.

use super::blocks::{
    BLOCKS_MAX, Blocks, Both, Certainty, Cut, degrees, student_of_normal, widening,
};
use super::latency::Latency;
use super::shares;
use super::spread::spread;
use super::verdict::Difference;
use crate::statistics::{Dice, rank_test};

const MEDIAN: f64 = 0.5;
const DRAWS: usize = 999;
/// Number of limits around the quantile of a side …
const LIMITS: usize = 400;
/// … and their range on each side, in standard errors.
const REACH: f64 = 6.0;
/// With fewer requests beyond it, a quantile is just one of the largest values.
const BEYOND_MIN: f64 = 10.0;
/// The shift to be detected, as a logarithm: 10 %.
const WANTED: f64 = 0.095_310_179_804_324_87;
/// Normal deviate of the level of one of six tests …
const LEVEL_Z: f64 = 2.638;
/// … and that of a power of 0.9, with a margin for tails that are not normal.
const FOUND_Z: f64 = 1.45;
/// No estimate is below this number of requests.
const ENOUGH_MIN: f64 = 100.0;
/// Iterations of the fixed-point search.
const STEPS: usize = 30;
const SEED: u64 = 8;

/// A quantile before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantile {
    /// The quantile, as a share of the requests.
    pub(crate) share: f64,
    /// In ns; `None` with too few requests.
    pub(crate) sides: Option<(f64, f64)>,
    /// Ratio of after to before, corrected for the clock resolution.
    pub(crate) ratio: Option<f64>,
    /// 95 % interval of the ratio.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
    /// Requests per side with which a shift of 10 % would be detected with a power of 0.9.
    pub(crate) enough: Option<u64>,
    /// Whether p is that of a test of ranks, because there are few requests.
    pub(crate) is_of_ranks: bool,
}

impl Quantile {
    pub(crate) fn difference(&self) -> Difference {
        Difference {
            change: self.ratio.map(|ratio| ratio - 1.0),
            interval: self.interval.map(|(low, high)| (low - 1.0, high - 1.0)),
            p: self.p,
        }
    }
}

/// Durations of one side, ns.
#[derive(Debug)]
pub(super) struct Lengths {
    /// In time order, corrected for the clock resolution.
    spread: Vec<f64>,
    /// The same, sorted.
    sorted: Vec<f64>,
    /// As measured, sorted.
    measured: Vec<f64>,
}

impl Lengths {
    pub(super) fn of(side: &[Latency]) -> Self {
        let lengths: Vec<f64> = side.iter().map(|one| one.dur.unwrap_or(0) as f64).collect();
        let sorted = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let spread = spread(&lengths);
        Self {
            sorted: sorted(spread.clone()),
            measured: sorted(lengths),
            spread,
        }
    }

    /// Minimum and maximum as measured, ns.
    pub(super) fn extremes(&self) -> Option<(f64, f64)> {
        Some((*self.measured.first()?, *self.measured.last()?))
    }

    /// For each request, 1 if it is beyond the quantile.
    fn beyond(&self, quantile: f64) -> Vec<f64> {
        let limit = at(&self.sorted, quantile);
        let beyond = self.spread.iter().map(|value| f64::from(*value > limit));
        beyond.collect()
    }
}

pub(super) fn compare(quantile: f64, blocks: &Both, sides: &[Lengths; 2]) -> Quantile {
    let none = Quantile {
        share: quantile,
        sides: None,
        ratio: None,
        interval: None,
        p: None,
        enough: None,
        is_of_ranks: false,
    };
    let fewest = sides.iter().map(|side| side.spread.len()).min();
    if (fewest.unwrap_or(0) as f64) * (1.0 - quantile) < BEYOND_MIN
        || blocks.sides.iter().any(|one| one.cuts.is_empty())
    {
        let few = Quantile {
            enough: Some((BEYOND_MIN / (1.0 - quantile)).ceil().max(ENOUGH_MIN) as u64),
            ..none
        };
        return if (quantile - MEDIAN).abs() < f64::EPSILON {
            of_few(few, sides)
        } else {
            few
        };
    }
    let limit = pooled([&sides[0].sorted, &sides[1].sorted], quantile);
    let beyond = |side: &Lengths| -> Vec<f64> {
        // Values at the limit count half.
        let share = |value: &f64| match value.total_cmp(&limit) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        side.spread.iter().map(share).collect()
    };
    let test = shares::compare(blocks, [beyond(&sides[0]), beyond(&sides[1])]);
    let measured = [0, 1].map(|side| at(&sides[side].measured, quantile));
    let Some(shift) = Shift::of(quantile, blocks, sides) else {
        return none;
    };
    let requests = sides.iter().map(|side| side.spread.len()).sum::<usize>() as f64 / 2.0;
    Quantile {
        sides: Some((measured[0], measured[1])),
        ratio: Some(shift.point.exp()),
        interval: Some((shift.low.exp(), shift.high.exp())),
        p: test.p,
        enough: Some(enough(&shift, requests)),
        ..none
    }
}

/// The medians of sides with too few requests for blocks, with a test of ranks.
fn of_few(none: Quantile, sides: &[Lengths; 2]) -> Quantile {
    let [before, after] = sides;
    let Some(p) = rank_test(&before.measured, &after.measured) else {
        return none;
    };
    let medians = [before, after].map(|side| at(&side.measured, MEDIAN));
    let ratio = medians[1] / medians[0];
    Quantile {
        sides: Some((medians[0], medians[1])),
        ratio: ratio.is_finite().then_some(ratio),
        p: Some(p),
        is_of_ranks: true,
        ..none
    }
}

/// Logarithm of the ratio of two quantiles.
struct Shift {
    point: f64,
    /// Bounds of the 95 % interval.
    low: f64,
    high: f64,
    /// Standard error, and its degrees of freedom.
    error: f64,
    degrees: f64,
}

impl Shift {
    fn of(quantile: f64, blocks: &Both, sides: &[Lengths; 2]) -> Option<Self> {
        let beyond = [0, 1].map(|side| sides[side].beyond(quantile));
        let mean = 1.0 - quantile;
        let own = |side: usize| blocks.sides[side].certainty(&beyond[side], mean);
        let mut certain = [own(0)?, own(1)?];
        if blocks.in_turns {
            // The same blocks are drawn on both sides, because common effects are not a difference.
            let both = blocks.certainty([&beyond[0], &beyond[1]], [mean; 2])?;
            for one in &mut certain {
                one.cut = both.cut;
                one.inflation = both.inflation;
                one.degrees = both.degrees;
            }
        }
        let drawn = [0, 1].map(|side| {
            let seed = if blocks.in_turns {
                SEED
            } else {
                SEED + side as u64
            };
            Drawn::of(
                quantile,
                &blocks.sides[side],
                (&sides[side], certain[side]),
                seed,
            )
        });
        let [before, after] = &drawn;
        let pairs = before.draws.iter().zip(&after.draws);
        let mut offs: Vec<f64> = pairs.map(|(a, b)| after.off(*b) - before.off(*a)).collect();
        offs.sort_unstable_by(f64::total_cmp);
        let degrees = if blocks.in_turns {
            certain[0].degrees
        } else {
            degrees([before, after].map(Drawn::certainty))
        };
        let point = after.point - before.point;
        let wide = widening(degrees);
        let ends = [0.025, 0.975].map(|share| at(&offs, share));
        Some(Self {
            point,
            low: point + wide * ends[0],
            high: point + wide * ends[1],
            error: (ends[1] - ends[0]) / (2.0 * 1.96),
            degrees,
        })
    }
}

/// Logarithms of a side's quantile: of all its requests, and of bootstrap replicates.
struct Drawn {
    point: f64,
    draws: Vec<f64>,
    certain: Certainty,
}

impl Drawn {
    fn of(
        quantile: f64,
        blocks: &Blocks,
        (side, certain): (&Lengths, Certainty),
        seed: u64,
    ) -> Self {
        let cut = &blocks.cuts[certain.cut];
        let draws = Grid::of(side, cut, (quantile, certain.error)).draws(quantile, seed);
        Self {
            point: at(&side.sorted, quantile).max(1.0).ln(),
            draws: draws.into_iter().map(|one| one.max(1.0).ln()).collect(),
            certain,
        }
    }

    /// Largest expected deviation, from a replicate.
    fn off(&self, draw: f64) -> f64 {
        self.certain.inflation * (draw - self.point)
    }

    /// The relative precision of the error is known for the share; that of the quantile is the
    /// same.
    fn certainty(&self) -> Certainty {
        let count = self.draws.len() as f64;
        let mean = self.draws.iter().sum::<f64>() / count;
        let squares = self.draws.iter().map(|one| (one - mean).powi(2));
        Certainty {
            error: self.certain.inflation * (squares.sum::<f64>() / count).sqrt(),
            ..self.certain
        }
    }
}

/// Requests per side with which a shift of 10 % is detected with a power of 0.9, given that this
/// number of requests had this error. The observed error may be too small by chance, and the next
/// one too large: the estimate has a margin for both.
fn enough(shift: &Shift, requests: f64) -> u64 {
    let mut found = requests;
    for _ in 0..STEPS {
        let most = (2 * BLOCKS_MAX) as f64;
        let degrees = (shift.degrees * found / requests).clamp(5.0, most);
        let level = student_of_normal(LEVEL_Z, degrees);
        let seen = (found / requests).sqrt() * WANTED / shift.error.max(f64::MIN_POSITIVE);
        let unsure =
            level.powi(2) / (2.0 * degrees) + seen.powi(2).min(100.0) / (2.0 * shift.degrees);
        let wanted = level + FOUND_Z * (1.0 + unsure).sqrt();
        let next = (wanted * shift.error / WANTED).powi(2) * requests;
        found = f64::midpoint(found, next).max(ENOUGH_MIN);
    }
    found.ceil() as u64
}

/// The smallest of the sorted values with at least this share at or below it.
pub(super) fn at(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    let place = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// Quantile of both sides with equal weights.
fn pooled(sides: [&[f64]; 2], quantile: f64) -> f64 {
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

/// Number of requests at or below each of some limits, by block.
struct Grid {
    limits: Vec<f64>,
    /// By limit, then block.
    below: Vec<Vec<u32>>,
    counts: Vec<u32>,
}

impl Grid {
    fn of(side: &Lengths, cut: &Cut, (quantile, error): (f64, f64)) -> Self {
        let (from, to) = (quantile - REACH * error, quantile + REACH * error);
        let limit = |step: usize| {
            let share = from + (to - from) * step as f64 / LIMITS as f64;
            at(&side.sorted, share.clamp(0.0, 1.0))
        };
        let mut limits: Vec<f64> = (0..=LIMITS).map(limit).collect();
        limits.dedup();
        let mut below = vec![vec![0; cut.counts.len()]; limits.len()];
        let (first, last) = (limits[0], limits[limits.len() - 1]);
        for (value, block) in side.spread.iter().zip(&cut.block) {
            // Most requests are outside of the limits, and need no search.
            let place = if *value <= first {
                0
            } else if *value <= last {
                limits.partition_point(|limit| limit < value)
            } else {
                continue;
            };
            below[place][*block as usize] += 1;
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
            counts: cut.counts.iter().map(|count| *count as u32).collect(),
        }
    }

    fn draws(&self, quantile: f64, seed: u64) -> Vec<f64> {
        let dice = &mut Dice::new(seed);
        let blocks = self.counts.len();
        let mut times = vec![0; blocks];
        let draw = |_| {
            times.fill(0);
            for _ in 0..blocks {
                times[dice.below(blocks)] += 1;
            }
            let wanted = quantile * drawn(&self.counts, &times);
            let is_below = |counts: &Vec<u32>| drawn(counts, &times) < wanted;
            let place = self.below.partition_point(is_below);
            self.limits[place.min(self.limits.len() - 1)]
        };
        (0..DRAWS).map(draw).collect()
    }
}

/// Number of requests in blocks of which each was drawn some times; far below 2³². Most of the time
/// of a comparison goes here: integers need not be added in order, and a plain loop is fast at every
/// optimisation level.
fn drawn(counts: &[u32], times: &[u32]) -> f64 {
    let times = &times[..counts.len()];
    let (mut sum, mut block) = (0u32, 0);
    while block < counts.len() {
        sum = sum.wrapping_add(counts[block].wrapping_mul(times[block]));
        block += 1;
    }
    f64::from(sum)
}
