//! An index of intervals that finds those overlapping a time without a full scan.

use whyslow_model::Ns;

/// Numbered intervals, in order of start.
#[derive(Debug, Default)]
pub(super) struct Spans {
    numbers: Vec<usize>,
    times: Vec<(Ns, Ns)>,
    /// The latest end so far, for each.
    reached: Vec<Ns>,
}

impl Spans {
    /// Must not start earlier than the previous one.
    pub(super) fn push(&mut self, number: usize, span: (Ns, Ns)) {
        let before = self.reached.last().copied().unwrap_or(Ns::MIN);
        self.numbers.push(number);
        self.times.push(span);
        self.reached.push(before.max(span.1));
    }

    /// Numbers of the intervals that overlap this time, last first.
    pub(super) fn touching(&self, (begin, end): (Ns, Ns)) -> impl Iterator<Item = usize> + '_ {
        let after = self.times.partition_point(|(ts, _)| *ts <= end);
        let before = (0..after)
            .rev()
            .take_while(move |at| self.reached[*at] >= begin);
        before
            .filter(move |at| self.times[*at].1 >= begin)
            .map(|at| self.numbers[at])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_that_touch_a_time_are_found_and_nothing_else(
            mut spans in prop::collection::vec((0..100_i64, 0..40_i64), 0..60), begin in 0..120_i64, length in 0..30_i64,
        ) {
            spans.sort_unstable();
            let mut of = Spans::default();
            for (at, (begin, length)) in spans.iter().enumerate() {
                of.push(at, (*begin, begin + length));
            }
            let mut found: Vec<usize> = of.touching((begin, begin + length)).collect();
            found.sort_unstable();
            let touches = |at: &usize| spans[*at].0 <= begin + length && spans[*at].0 + spans[*at].1 >= begin;
            let wanted: Vec<usize> = (0..spans.len()).filter(touches).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}
