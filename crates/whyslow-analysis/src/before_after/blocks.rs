//! Splits a run into blocks and estimates the uncertainty of a proportion measured in it.
//!
//! Time blocks have equal numbers of requests; blocks that are longer than the correlation of
//! neighbours are independent. That length is unknown, so the run is split at several scales. Fine
//! splits give the most precise error estimate, but it is too small if neighbours are correlated;
//! so the finest split is used that no coarser one contradicts. Using the largest error of all
//! splits instead would select the one that chance made largest. With few blocks the error itself
//! is uncertain, which Student's distribution accounts for. Where blocks are still correlated with
//! their neighbours, the correlation is assumed to decay with distance (a first-order
//! autoregression), which reduces the effective number of blocks. Differences between workers
//! beyond chance are added.
//!
//! If both sides ran in alternation, blocks of the common time contain requests of both, and the
//! differences within blocks are used: a slow period that affects both sides cancels out.

use rustc_hash::FxHashMap;

use super::latency::Latency;

/// Number of blocks of the coarsest split.
const BLOCKS_MIN: usize = 12;
pub(super) const BLOCKS_MAX: usize = 400;
/// Smaller blocks have no measurable correlation.
const REQUESTS_MIN: usize = 5;
/// Above this correlation, neighbours cannot be distinguished from a drift.
const ALIKE_MAX: f64 = 0.8;
/// With fewer workers, the variance between them cannot be estimated.
const WORKERS_MIN: usize = 8;
/// In alternating runs, each block needs this share of the expected requests of each side.
const TURN_MIN: f64 = 0.3;
/// A coarser split contradicts a finer one if its variance exceeds the value of this normal deviate
/// …
const CONTRADICTS_Z: f64 = 1.0;
/// … and workers differ if their variance exceeds the value of this one.
const DIFFERS_Z: f64 = 0.5;

/// A partition of a run.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// Block of each request.
    pub(super) block: Vec<u32>,
    /// Number of requests in each block.
    pub(super) counts: Vec<f64>,
    /// Whether blocks are consecutive in time.
    is_ordered: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Blocks {
    pub(super) cuts: Vec<Cut>,
}

/// Uncertainty of a mean, by the split that was chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certainty {
    pub(super) error: f64,
    pub(super) degrees: f64,
    pub(super) cut: usize,
    /// Ratio of the error to that of a bootstrap over the blocks of the split.
    pub(super) inflation: f64,
}

impl Blocks {
    /// From requests in time order.
    pub(super) fn of(requests: &[Latency]) -> Self {
        let mut cuts = Vec::new();
        let mut count = BLOCKS_MIN;
        while count <= BLOCKS_MAX && requests.len() >= count * REQUESTS_MIN {
            let block = |place: usize| (place * count / requests.len()) as u32;
            let block = (0..requests.len()).map(block).collect();
            cuts.push(Cut::of(block, count, true));
            count *= 2;
        }
        if !cuts.is_empty() {
            cuts.extend(by_worker(requests));
        }
        Self { cuts }
    }

    /// Uncertainty of the mean of these values, one per request. `None` with too few requests.
    pub(super) fn certainty(&self, values: &[f64], mean: f64) -> Option<Certainty> {
        let (in_time, by_worker) = self.rests(values, mean);
        let in_time: Vec<Squares> = in_time.iter().map(|rests| Squares::of(rests)).collect();
        let found = certainty(&in_time, &[by_worker])?;
        Some(Certainty {
            error: found.error / values.len() as f64,
            ..found
        })
    }

    /// For each time split, the deviation of each block's sum from its expectation; and the
    /// variance between workers, as in [`differ`].
    fn rests(&self, values: &[f64], mean: f64) -> (Vec<Vec<f64>>, (f64, f64)) {
        let in_time = self.cuts.iter().filter(|cut| cut.is_ordered);
        let in_time = in_time.map(|cut| cut.rests(values, mean)).collect();
        let workers = self.cuts.iter().find(|cut| !cut.is_ordered);
        let by_worker = workers.map(|cut| {
            let rests = Squares::of(&cut.rests(values, mean));
            differ(&rests, single(values, mean))
        });
        (in_time, by_worker.unwrap_or_default())
    }
}

/// Both sides of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Both {
    pub(super) sides: [Blocks; 2],
    /// Both sides ran in alternation: blocks with the same number cover the same time, so what
    /// slows one side then slows the other.
    pub(super) in_turns: bool,
}

impl Both {
    pub(super) fn of(sides: [&[Latency]; 2]) -> Self {
        match in_turns(sides) {
            Some(sides) => Self {
                sides,
                in_turns: true,
            },
            None => Self {
                sides: sides.map(Blocks::of),
                in_turns: false,
            },
        }
    }

    /// Uncertainty of the difference of the means.
    pub(super) fn certainty(&self, values: [&[f64]; 2], means: [f64; 2]) -> Option<Certainty> {
        let one = |side: usize| self.sides[side].certainty(values[side], means[side]);
        if !self.in_turns {
            let sides = [one(0)?, one(1)?];
            return Some(Certainty {
                error: sides[0].error.hypot(sides[1].error),
                degrees: degrees(sides),
                ..sides[0]
            });
        }
        let counts = values.map(|values| values.len() as f64);
        let rests = [0, 1].map(|side| self.sides[side].rests(values[side], means[side]));
        let [before, after] = &rests;
        let pairs = before.0.iter().zip(&after.0);
        let differences = pairs.map(|(before, after)| {
            let pairs = before.iter().zip(after);
            let rests: Vec<f64> = pairs.map(|(a, b)| b / counts[1] - a / counts[0]).collect();
            Squares::of(&rests)
        });
        let differences: Vec<Squares> = differences.collect();
        let scaled = |side: usize| {
            let square = counts[side] * counts[side];
            let (more, part) = rests[side].1;
            (more / square, part / (square * square))
        };
        certainty(&differences, &[scaled(0), scaled(1)])
    }
}

/// Splits of the common time in which each block has requests of both sides; `None` if there are
/// none.
fn in_turns(sides: [&[Latency]; 2]) -> Option<[Blocks; 2]> {
    let mut all: Vec<(i64, usize)> = Vec::new();
    for (place, side) in sides.iter().enumerate() {
        all.extend(side.iter().map(|one| (one.ts, place)));
    }
    all.sort_unstable();
    let mut found = sides.map(|_| Blocks { cuts: Vec::new() });
    let mut count = BLOCKS_MIN;
    while count <= BLOCKS_MAX && all.len() >= 2 * count * REQUESTS_MIN {
        let mut blocks = [Vec::new(), Vec::new()];
        for (place, (_, side)) in all.iter().enumerate() {
            blocks[*side].push((place * count / all.len()) as u32);
        }
        let cuts = blocks.map(|block| Cut::of(block, count, true));
        let is_shared = |cut: &Cut| {
            let least = TURN_MIN * cut.block.len() as f64 / count as f64;
            cut.counts.iter().all(|one| *one >= least)
        };
        if !cuts.iter().all(is_shared) {
            break;
        }
        for (side, cut) in found.iter_mut().zip(cuts) {
            side.cuts.push(cut);
        }
        count *= 2;
    }
    if found[0].cuts.is_empty() {
        return None;
    }
    for (blocks, side) in found.iter_mut().zip(sides) {
        blocks.cuts.extend(by_worker(side));
    }
    Some(found)
}

/// One block per worker; `None` with few workers, or few requests each.
fn by_worker(requests: &[Latency]) -> Option<Cut> {
    let mut workers: FxHashMap<u32, u32> = FxHashMap::default();
    for request in requests {
        let next = workers.len() as u32;
        workers.entry(request.worker).or_insert(next);
    }
    let is_shared = workers.len() * REQUESTS_MIN <= requests.len();
    (workers.len() >= WORKERS_MIN && is_shared).then(|| {
        let block = requests.iter().map(|request| workers[&request.worker]);
        Cut::of(block.collect(), workers.len(), false)
    })
}

/// From the sums of time blocks, coarse to fine, and the contribution of workers.
fn certainty(in_time: &[Squares], workers: &[(f64, f64)]) -> Option<Certainty> {
    let is_contradicted = |place: usize| {
        let mut coarser = in_time[..place].iter();
        let least = |one: &Squares| one.sum / above(one.blocks - 1.0, CONTRADICTS_Z);
        coarser.any(|one| least(one) > in_time[place].variance())
    };
    let cut = (0..in_time.len())
        .rev()
        .find(|place| !is_contradicted(*place))?;
    let found = &in_time[cut];
    let variance = found.variance() * found.alike;
    let degrees = (found.blocks / found.alike - 1.0).max(2.0);
    let whole = variance + workers.iter().map(|one| one.0).sum::<f64>();
    // Degrees of freedom of a sum of variances (Satterthwaite).
    let parts = variance.powi(2) / degrees + workers.iter().map(|one| one.1).sum::<f64>();
    Some(Certainty {
        error: whole.sqrt(),
        degrees: if whole > variance && parts > 0.0 {
            (whole * whole / parts).max(2.0)
        } else {
            degrees
        },
        cut,
        // A bootstrap over n blocks has the variance of n - 1 blocks.
        inflation: if found.sum > 0.0 {
            (whole / found.sum).sqrt()
        } else {
            1.0
        },
    })
}

/// Variance between workers beyond that of single values, and its square divided by the degrees of
/// freedom; 0 if they differ no more than by chance.
fn differ(workers: &Squares, single: f64) -> (f64, f64) {
    let degrees = workers.blocks - 1.0;
    if workers.sum <= single * above(degrees, DIFFERS_Z) {
        return (0.0, 0.0);
    }
    let own = workers.variance();
    ((own - single).max(0.0), own.powi(2) / degrees)
}

fn single(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Squared deviations of block sums from their expectation.
struct Squares {
    sum: f64,
    blocks: f64,
    /// Ratio of the variance to that without correlation between neighbours.
    alike: f64,
}

impl Squares {
    fn of(rests: &[f64]) -> Self {
        let sum: f64 = rests.iter().map(|rest| rest * rest).sum();
        let alike = likeness(rests, sum);
        Self {
            sum,
            blocks: rests.len() as f64,
            alike: (1.0 + alike) / (1.0 - alike),
        }
    }

    /// Variance of the sum of all values, estimated from this split alone.
    fn variance(&self) -> f64 {
        self.sum * self.blocks / (self.blocks - 1.0)
    }
}

/// Ratio of a sum of squares, divided by its degrees of freedom, to the variance, at the quantile
/// of this normal deviate (Wilson, Hilferty 1931).
fn above(degrees: f64, z: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    (degrees / (degrees + 1.0)) * (1.0 - part + z * part.sqrt()).powi(3)
}

impl Cut {
    fn of(block: Vec<u32>, blocks: usize, is_ordered: bool) -> Self {
        let mut counts = vec![0.0; blocks];
        for one in &block {
            counts[*one as usize] += 1.0;
        }
        Self {
            block,
            counts,
            is_ordered,
        }
    }

    /// Deviation of each block's sum from its expectation.
    fn rests(&self, values: &[f64], mean: f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for (value, block) in values.iter().zip(&self.block) {
            sums[*block as usize] += value;
        }
        let sums = sums.iter().zip(&self.counts);
        sums.map(|(sum, count)| sum - mean * count).collect()
    }
}

/// Correlation of neighbours, corrected for bias in short series (Marriott, Pope 1954); at least 0,
/// because alternating blocks prove nothing.
fn likeness(rests: &[f64], squares: f64) -> f64 {
    let products: f64 = rests.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let count = rests.len() as f64;
    let found = if squares > 0.0 {
        products / squares
    } else {
        0.0
    };
    ((count * found + 1.0) / (count - 3.0)).clamp(0.0, ALIKE_MAX)
}

/// Degrees of freedom of a difference (Welch, Satterthwaite).
pub(super) fn degrees(sides: [Certainty; 2]) -> f64 {
    let squares = sides.map(|side| side.error.powi(2));
    let parts = [0, 1].map(|side| squares[side].powi(2) / sides[side].degrees);
    let degrees = squares.iter().sum::<f64>().powi(2) / parts.iter().sum::<f64>();
    if degrees.is_finite() {
        degrees
    } else {
        sides[0].degrees.min(sides[1].degrees)
    }
}

/// Normal deviate with the same tail probability as this deviate of Student's distribution (Wallace
/// 1959, "Bounds on normal approximations to Student's and the chi-square distributions").
pub(super) fn normal_of_student(t: f64, degrees: f64) -> f64 {
    let z = (degrees * (t * t / degrees).ln_1p()).sqrt();
    z * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
}

/// Student's deviate with the same tail probability as this normal deviate: the inverse of
/// [`normal_of_student`].
pub(super) fn student_of_normal(z: f64, degrees: f64) -> f64 {
    let z = z * (8.0 * degrees + 3.0) / (8.0 * degrees + 1.0);
    (degrees * (z * z / degrees).exp_m1()).sqrt()
}

/// Ratio of the widths of a 95 % interval of Student's distribution and of the normal one: its
/// first terms by degrees of freedom (Abramowitz, Stegun 26.7.5).
pub(super) fn widening(degrees: f64) -> f64 {
    let z: f64 = 1.96;
    let square = z * z;
    let second = (5.0 * square + 16.0) * square + 3.0;
    1.0 + (square + 1.0) / (4.0 * degrees) + second / (96.0 * degrees * degrees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_as_in_tables() {
        for (degrees, t) in [(11.0, 2.201), (23.0, 2.069), (5.0, 2.571), (100.0, 1.984)] {
            let z = normal_of_student(t, degrees);
            assert!((z - 1.96).abs() < 0.01, "{degrees}: {z}");
            let wide = 1.96 * widening(degrees);
            assert!((wide - t).abs() < 0.03, "{degrees}: {wide}");
            let back = student_of_normal(z, degrees);
            assert!((back - t).abs() < 1e-9, "{degrees}: {back}");
        }
    }

    /// Values in runs of equal ones have as many effective samples as there are runs.
    #[test]
    fn neighbours_that_are_alike_are_one_witness() {
        let latency = |place: usize| Latency {
            ts: place as i64,
            dur: Some(1),
            failed: false,
            worker: 0,
            phases: Default::default(),
        };
        let requests: Vec<Latency> = (0..4800).map(latency).collect();
        let blocks = Blocks::of(&requests);
        let mut dice = crate::statistics::Dice::new(3);
        let runs: Vec<f64> = (0..48).map(|_| dice.unit()).collect();
        let values: Vec<f64> = (0..4800).map(|place| runs[place / 100]).collect();
        let mean = values.iter().sum::<f64>() / 4800.0;
        let found = blocks.certainty(&values, mean).expect("enough");
        let variance = runs.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 47.0;
        let expected = (variance / 48.0).sqrt();
        assert!(found.error >= 0.999 * expected && found.error < 2.0 * expected);
        assert!(found.degrees <= 47.0);
        assert!(
            Blocks::of(&requests[..50])
                .certainty(&values, mean)
                .is_none()
        );
    }
}
