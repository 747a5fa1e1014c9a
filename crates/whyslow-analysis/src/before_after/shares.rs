//! Shares of requests: slower than a limit, or failed.

use super::blocks::{Both, normal_of_student, widening};
use super::verdict::Difference;
use crate::statistics::{hypergeometric_tail, normal_tail};

/// A share before and after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// 95 % interval of the difference; `None` with too few requests.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
}

impl Share {
    pub(crate) fn difference(&self) -> Difference {
        Difference {
            change: Some(self.after - self.before),
            interval: self.interval,
            p: self.p,
        }
    }
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
        p: tested.map(|(_, p)| p).or_else(|| exact(sums, counts)),
    }
}

/// Fisher's exact test, for too few requests to split into blocks. `None` if all requests are
/// alike: there is nothing to test.
fn exact(sums: [f64; 2], counts: [f64; 2]) -> Option<f64> {
    let [[k, other], [n, rest]] = [sums, counts].map(|pair| pair.map(|count| count as u64));
    let (marked, all) = (k + other, n + rest);
    if n == 0 || rest == 0 || marked == 0 || marked == all {
        return None;
    }
    // The smaller tail is the one on the side of the difference.
    let is_more = u128::from(k) * u128::from(all) >= u128::from(marked) * u128::from(n);
    let tail = if is_more {
        hypergeometric_tail(k, n, marked, all)
    } else {
        hypergeometric_tail(n - k, n, all - marked, all)
    };
    Some((2.0 * tail).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::exact;

    /// Fisher's tea: four of four cups, 1/70 one-sided.
    #[test]
    fn few_requests_are_tested_exactly() {
        let p = exact([4.0, 0.0], [4.0, 4.0]).expect("a test");
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        let p = exact([0.0, 4.0], [4.0, 4.0]).expect("a test");
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        assert_eq!(exact([0.0, 0.0], [3.0, 12.0]), None, "none failed");
        assert_eq!(exact([3.0, 12.0], [3.0, 12.0]), None, "all failed");
        assert_eq!(exact([1.0, 0.0], [1.0, 0.0]), None, "one side is empty");
    }
}
