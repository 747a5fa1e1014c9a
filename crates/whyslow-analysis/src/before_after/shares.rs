//! Shares of requests: slower than a limit, or failed.

use super::blocks::{Both, normal_of_student, widening};
use crate::statistics::normal_tail;

/// A share before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// 95 % interval of the difference; `None` with too few requests.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
}

/// Values are 0 to 1, one per request, by side.
pub(super) fn compare(blocks: &Both, values: [Vec<f64>; 2]) -> Share {
    let sums = [0, 1].map(|side| values[side].iter().sum::<f64>());
    let counts = [0, 1].map(|side| values[side].len() as f64);
    let means = [0, 1].map(|side| sums[side] / counts[side].max(1.0));
    // Half a request is added: none among a few does not prove never.
    let pooled = (sums[0] + sums[1] + 0.5) / (counts[0] + counts[1] + 1.0);
    let [before, after] = means;
    let tested = blocks
        .certainty([&values[0], &values[1]], means)
        .map(|found| {
            // The error is at least that of independent requests, however similar the blocks are.
            let least = (pooled * (1.0 - pooled) * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
            let (error, degrees) = if found.error >= least {
                (found.error, found.degrees)
            } else {
                (least, counts[0] + counts[1] - 2.0)
            };
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
