//! A run in blocks, and how certain a share is that was measured in it.
//!
//! Blocks of time hold equally many requests; a block that is longer than what makes neighbours alike
//! is one independent witness. Nobody knows how long that is, so the run is cut at several scales. Of
//! fine cuts the error is known best, and is too small if neighbours are alike; so the finest cut
//! counts that no coarser one contradicts. To take the greatest error of all instead would be to take
//! the one that chance made greatest. With few blocks the error is known badly itself, for which
//! Student's distribution is wider than the normal one. Where blocks are still like their neighbours,
//! they are taken to be so less and less with distance (an autoregression of first order), and count
//! as fewer. What workers differ by beyond chance comes on top.

use std::collections::BTreeMap;

use super::Latency;

/// The coarsest cut: as many blocks of time.
const BLOCKS_MIN: usize = 12;
pub(super) const BLOCKS_MAX: usize = 400;
/// Smaller blocks tell nothing of neighbours.
const REQUESTS_MIN: usize = 5;
/// Neighbours that are more alike than this are told from ones that drift by nobody.
const ALIKE_MAX: f64 = 0.8;
/// Fewer workers are too few to tell how much they differ.
const WORKERS_MIN: usize = 8;
/// A coarser cut contradicts a finer one if it varies more than this normal deviate allows …
const CONTRADICTS_Z: f64 = 1.0;
/// … and workers differ if they vary more than this one allows.
const DIFFERS_Z: f64 = 0.5;

/// One way to cut a run.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// By request, its block.
    pub(super) block: Vec<u32>,
    /// Requests by block.
    pub(super) counts: Vec<f64>,
    /// Blocks follow each other in time.
    is_ordered: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Blocks {
    pub(super) cuts: Vec<Cut>,
}

/// How certain a mean is, by which of the cuts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certainty {
    pub(super) error: f64,
    pub(super) degrees: f64,
    pub(super) cut: usize,
    /// How many times the error is that of drawing the blocks of the cut anew.
    pub(super) inflation: f64,
}

impl Blocks {
    /// Of requests in order of time.
    pub(super) fn of(requests: &[Latency]) -> Self {
        let mut cuts = Vec::new();
        let mut count = BLOCKS_MIN;
        while count <= BLOCKS_MAX && requests.len() >= count * REQUESTS_MIN {
            let block = |place: usize| (place * count / requests.len()) as u32;
            let block = (0..requests.len()).map(block).collect();
            cuts.push(Cut::of(block, count, true));
            count *= 2;
        }
        let mut workers: BTreeMap<u32, u32> = BTreeMap::new();
        for request in requests {
            let next = workers.len() as u32;
            workers.entry(request.worker).or_insert(next);
        }
        let is_shared = workers.len() * REQUESTS_MIN <= requests.len();
        if !cuts.is_empty() && workers.len() >= WORKERS_MIN && is_shared {
            let block = requests.iter().map(|request| workers[&request.worker]);
            cuts.push(Cut::of(block.collect(), workers.len(), false));
        }
        Self { cuts }
    }

    /// Of the mean of these values, one a request. None of too few requests.
    pub(super) fn certainty(&self, values: &[f64], mean: f64) -> Option<Certainty> {
        let squares: Vec<Squares> = self
            .cuts
            .iter()
            .map(|cut| cut.squares(values, mean))
            .collect();
        let in_time = squares.iter().filter(|one| one.is_ordered);
        let in_time: Vec<&Squares> = in_time.collect();
        let is_contradicted = |place: usize| {
            let coarser = in_time[..place].iter();
            let mut most = coarser.map(|one| one.sum / above(one.blocks - 1.0, CONTRADICTS_Z));
            most.any(|least| least > in_time[place].variance())
        };
        let cut = (0..in_time.len())
            .rev()
            .find(|place| !is_contradicted(*place))?;
        let found = in_time[cut];
        let variance = found.variance() * found.alike;
        let degrees = (found.blocks / found.alike - 1.0).max(2.0);
        let single: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let workers = squares.iter().find(|one| !one.is_ordered);
        let more = workers.filter(|one| one.sum > single * above(one.blocks - 1.0, DIFFERS_Z));
        let more = more.map_or((0.0, 0.0), |one| {
            let own = one.variance();
            (own - single, own.powi(2) / (one.blocks - 1.0))
        });
        let whole = variance + more.0.max(0.0);
        Some(Certainty {
            error: whole.sqrt() / values.len() as f64,
            degrees: joined((variance, degrees), more, whole),
            cut,
            inflation: if found.sum > 0.0 {
                // Blocks that are drawn vary as if there was one block fewer.
                (whole / found.sum).sqrt()
            } else {
                1.0
            },
        })
    }
}

/// What the sums of blocks differ by from what they would be by the mean.
struct Squares {
    sum: f64,
    blocks: f64,
    /// How many times the variance is what it would be if neighbours had nothing in common.
    alike: f64,
    is_ordered: bool,
}

impl Squares {
    /// Of the sum of all values, as this cut alone tells it.
    fn variance(&self) -> f64 {
        self.sum * self.blocks / (self.blocks - 1.0)
    }
}

/// Degrees of freedom of a sum of two variances, the second with its square by its own degrees
/// (Satterthwaite).
fn joined((variance, degrees): (f64, f64), more: (f64, f64), whole: f64) -> f64 {
    let parts = variance.powi(2) / degrees + more.1;
    if parts > 0.0 && more.0 > 0.0 {
        (whole * whole / parts).max(2.0)
    } else {
        degrees
    }
}

/// How many times a sum of squares is a variance, divided by the degrees, at so much of the normal
/// distribution (Wilson, Hilferty 1931).
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

    fn squares(&self, values: &[f64], mean: f64) -> Squares {
        let mut sums = vec![0.0; self.counts.len()];
        for (value, block) in values.iter().zip(&self.block) {
            sums[*block as usize] += value;
        }
        let sums = sums.iter().zip(&self.counts);
        let rests: Vec<f64> = sums.map(|(sum, count)| sum - mean * count).collect();
        let sum: f64 = rests.iter().map(|rest| rest * rest).sum();
        let alike = if self.is_ordered {
            likeness(&rests, sum)
        } else {
            0.0
        };
        Squares {
            sum,
            blocks: self.counts.len() as f64,
            alike: (1.0 + alike) / (1.0 - alike),
            is_ordered: self.is_ordered,
        }
    }
}

/// Correlation of neighbours, without what it errs by in short series (Marriott, Pope 1954); never
/// below 0, as blocks that alternate are no proof of anything.
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

/// Normal deviate as rare as this one of Student's distribution (Wallace 1959, "Bounds on normal
/// approximations to Student's and the chi-square distributions").
pub(super) fn normal_of_student(t: f64, degrees: f64) -> f64 {
    let z = (degrees * (t * t / degrees).ln_1p()).sqrt();
    z * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0)
}

/// Student's deviate as rare as this one of the normal distribution: the inverse of
/// [`normal_of_student`].
pub(super) fn student_of_normal(z: f64, degrees: f64) -> f64 {
    let z = z * (8.0 * degrees + 3.0) / (8.0 * degrees + 1.0);
    (degrees * (z * z / degrees).exp_m1()).sqrt()
}

/// How much wider a 95 % interval of Student's distribution is than that of the normal one: its first
/// terms by degrees (Abramowitz, Stegun 26.7.5).
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

    /// Of values that come in runs of equal ones, as many count as there are runs.
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
