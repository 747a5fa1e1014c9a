//! Sorts samples by time without a second copy of all of them.
//!
//! Profiles consist of nearly sorted runs, because sampler threads have buffers and chunks follow
//! each other. Runs that fit into the CPU cache are therefore sorted one by one, and each is merged
//! with the end of the previous ones as far as they overlap. The standard sort needs half as much
//! additional memory as all samples. If runs overlap too much, it is used nevertheless, because
//! merging would be quadratic.

use std::cmp::Ordering;

use super::Point;

/// Points per run: half a MiB.
const RUN: usize = 1 << 14;
/// Maximum average number of times that a point is sorted again because of overlaps.
const AGAIN: usize = 3;

/// State of incremental sorting.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Length of the sorted prefix.
    points: usize,
    /// Number of points sorted again so far.
    again: usize,
    /// Runs overlap too much: the rest is sorted at the end.
    gave_up: bool,
}

impl Sorted {
    /// Sorts the points added since the last call, if that is cheap. The sort is stable.
    pub(super) fn extend(
        &mut self,
        points: &mut [Point],
        order: impl Fn(&Point, &Point) -> Ordering,
    ) {
        while self.points < points.len() && !self.gave_up {
            let begin = self.points;
            self.points = points.len().min(begin + RUN);
            points[begin..self.points].sort_by(&order);
            self.join(&mut points[..self.points], begin, &order);
        }
    }

    /// Merges two sorted parts.
    fn join(
        &mut self,
        points: &mut [Point],
        begin: usize,
        order: &impl Fn(&Point, &Point) -> Ordering,
    ) {
        if begin == 0 || order(&points[begin - 1], &points[begin]).is_le() {
            return;
        }
        let (before, run) = points.split_at(begin);
        let (first, last) = (&run[0], &before[begin - 1]);
        let from = before.partition_point(|point| order(point, first).is_le());
        let to = begin + run.partition_point(|point| order(point, last).is_lt());
        self.again = self.again.saturating_add(to - from);
        self.gave_up = self.again > points.len().saturating_mul(AGAIN);
        if !self.gave_up {
            points[from..to].sort_by(order);
        }
    }

    /// Sorts the rest, whatever the cost.
    pub(super) fn finish(
        &mut self,
        points: &mut [Point],
        order: impl Fn(&Point, &Point) -> Ordering,
    ) {
        self.extend(points, &order);
        if std::mem::take(&mut self.gave_up) {
            points.sort_by(&order);
            self.points = points.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{SampleKind, SampledState};

    fn point(ts: i64, number: u32) -> Point {
        Point {
            ts,
            span: 0,
            thread: 0,
            stack: number,
            credits: 1,
            kind: SampleKind::Wall,
            state: SampledState::Running,
            is_assumed: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Runs with small and large overlaps and many equal times give the same order as the
        /// standard sort.
        #[test]
        fn points_are_sorted_as_the_library_does(
            seed: u64,
            jitter in prop_oneof![1..20i64, 1_000..100_000i64],
            scale in 1..4i64,
            count in 0..(RUN * 5),
        ) {
            let mut state = seed | 1;
            let points = (0..count).map(|number| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let late = (state % jitter as u64) as i64;
                point((number as i64 - late) / scale, number as u32)
            });
            let mut points: Vec<Point> = points.collect();
            let mut wanted = points.clone();
            wanted.sort_by_key(|point| point.ts);
            let order = |one: &Point, other: &Point| one.ts.cmp(&other.ts);
            let mut sorted = Sorted::default();
            let first = points.len() / 3;
            sorted.extend(&mut points[..first], order);
            sorted.finish(&mut points, order);
            prop_assert_eq!(points, wanted);
        }
    }
}
