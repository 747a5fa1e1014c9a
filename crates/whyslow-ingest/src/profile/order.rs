//! Samples in order of time, without a second copy of them all.
//!
//! Profiles come in runs that are nearly sorted: threads of a sampler have buffers, chunks follow each other. So
//! runs that fit the cache are sorted one by one, and each is joined with the end of those before it, as far as
//! they overlap. The sort of the library takes half as much memory again as all samples have. Where runs overlap
//! by far, it is asked all the same, or joining would never end.

use std::cmp::Ordering;

use super::Point;

/// Points of a run: half a MiB of them.
const RUN: usize = 1 << 14;
/// Points that may be sorted again where runs overlap, for each that there is.
const AGAIN: usize = 3;

/// How far a list of points is sorted, while it grows.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// So many of the first.
    points: usize,
    /// How many were sorted again so far.
    again: usize,
    /// Runs overlap by far: what is left waits for the end.
    gave_up: bool,
}

impl Sorted {
    /// Sorts what came since the last time, if that is cheap. What is equal stays as it came.
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

    /// Of two sorted parts makes one.
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

    /// Sorts all that is left, whatever it costs.
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
        /// Runs that overlap a little, a lot, and with many equal times: as the library sorts them.
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
