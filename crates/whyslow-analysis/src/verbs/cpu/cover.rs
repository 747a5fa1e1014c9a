//! Sets of disjoint intervals, and their intersection with an interval.

use whyslow_model::Ns;

/// Linear steps from the previous position before a binary search is faster.
const STEPS: usize = 8;

/// Intervals in time order that do not touch each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cover(Vec<(Ns, Ns)>);

impl Cover {
    /// The union of intervals in any order.
    pub(super) fn union(mut intervals: Vec<(Ns, Ns)>) -> Self {
        intervals.sort_unstable();
        let mut stretches: Vec<(Ns, Ns)> = Vec::new();
        for (begin, end) in intervals {
            match stretches.last_mut() {
                _ if begin >= end => {}
                Some((_, reached)) if begin <= *reached => *reached = end.max(*reached),
                _ => stretches.push((begin, end)),
            }
        }
        Self(stretches)
    }

    /// The part that the other one does not cover.
    pub(super) fn without(&self, other: &Cover) -> Self {
        let mut rest = Vec::with_capacity(self.0.len());
        let mut near = 0;
        for (begin, end) in self.0.iter().copied() {
            let mut from = begin;
            other.within((begin, end), &mut near, |taken_from, taken_to| {
                if from < taken_from {
                    rest.push((from, taken_from));
                }
                from = taken_to;
            });
            if from < end {
                rest.push((from, end));
            }
        }
        Self(rest)
    }

    pub(super) fn stretches(&self) -> impl Iterator<Item = (Ns, Ns)> {
        self.0.iter().copied()
    }

    /// Passes on the pieces of the interval that are covered. `near` is the last position: the next
    /// interval is usually the one after it.
    pub(super) fn within(
        &self,
        (begin, end): (Ns, Ns),
        near: &mut usize,
        mut each: impl FnMut(Ns, Ns),
    ) {
        // Most covers end early: they only have the time before a CPU's first event.
        if self.0.last().is_none_or(|(_, last)| *last <= begin) {
            return;
        }
        *near = self.first_beyond(begin, *near);
        for (from, to) in &self.0[*near..] {
            if *from >= end {
                break;
            }
            each(begin.max(*from), end.min(*to));
        }
    }

    /// The first interval that ends later.
    fn first_beyond(&self, begin: Ns, near: usize) -> usize {
        let is_before = |(_, end): &(Ns, Ns)| *end <= begin;
        let is_behind = near == 0 || self.0.get(near - 1).is_some_and(is_before);
        if !is_behind {
            return self.0.partition_point(is_before);
        }
        let rest = self.0.get(near..).unwrap_or_default();
        let steps = rest.iter().take(STEPS).take_while(|one| is_before(one));
        match steps.count() {
            STEPS => near + rest.partition_point(is_before),
            steps => near + steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn covers(intervals: &[(Ns, Ns)], moment: Ns) -> bool {
        let mut intervals = intervals.iter();
        intervals.any(|(begin, end)| (*begin..*end).contains(&moment))
    }

    fn intervals(count: usize) -> impl Strategy<Value = Vec<(Ns, Ns)>> {
        let interval = (0i64..100, 0i64..8).prop_map(|(begin, length)| (begin, begin + length));
        prop::collection::vec(interval, 0..count)
    }

    proptest! {
        #[test]
        fn a_cover_is_what_a_count_by_hand_finds(
            of in intervals(40), taken in intervals(6), wanted in intervals(20),
        ) {
            let cover = Cover::union(of.clone());
            let touching = cover.0.windows(2).any(|two| two[0].1 >= two[1].0);
            prop_assert!(!touching, "{cover:?}");
            let rest = cover.without(&Cover::union(taken.clone()));
            let mut near = 0;
            for (begin, end) in wanted {
                let mut found = Vec::new();
                rest.within((begin, end), &mut near, |from, to| found.push((from, to)));
                for moment in 0..110 {
                    let inside = (begin..end).contains(&moment);
                    let expected = inside && covers(&of, moment) && !covers(&taken, moment);
                    prop_assert_eq!(covers(&found, moment), expected, "{}", moment);
                }
            }
        }
    }
}
