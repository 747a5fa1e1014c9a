//! Shares of requests: slower than a limit, or failed.

use super::blocks::{Blocks, Certainty, degrees, normal_of_student, widening};
use crate::statistics::normal_tail;

/// A share before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// 95 % of the difference; none where too few requests tell.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
}

/// Values are 0 to 1, one a request, by side.
pub(super) fn compare(blocks: &[Blocks; 2], values: [Vec<f64>; 2]) -> Share {
    let sums = [0, 1].map(|side| values[side].iter().sum::<f64>());
    let counts = [0, 1].map(|side| values[side].len() as f64);
    let [before, after] = [0, 1].map(|side| sums[side] / counts[side].max(1.0));
    let means = [before, after];
    // Half a request more: none among a few is no proof of never.
    let pooled = (sums[0] + sums[1] + 0.5) / (counts[0] + counts[1] + 1.0);
    let certain = |side: usize| {
        let found = blocks[side].certainty(&values[side], means[side])?;
        // Requests by themselves are never surer than this, however alike the blocks are.
        let least = (pooled * (1.0 - pooled) / counts[side]).sqrt();
        Some(if found.error >= least {
            found
        } else {
            Certainty {
                error: least,
                degrees: counts[side] - 1.0,
                ..found
            }
        })
    };
    let sides = certain(0).zip(certain(1));
    let tested = sides.map(|(a, b)| {
        let error = a.error.hypot(b.error);
        let degrees = degrees([a, b]);
        let half = 1.96 * widening(degrees) * error;
        let difference = after - before;
        let p = 2.0 * normal_tail(normal_of_student(difference / error, degrees));
        ((difference - half, difference + half), p.min(1.0))
    });
    Share {
        before,
        after,
        interval: tested.map(|(interval, _)| interval),
        p: tested.map(|(_, p)| p),
    }
}
