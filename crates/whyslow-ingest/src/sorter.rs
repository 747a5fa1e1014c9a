//! Enforces time order before the trackers.
//!
//! Sources merge their streams, so events arrive in order unless the clock of a stream steps
//! backwards. Sorting such an event correctly would require a queue of all events, with copies of
//! their strings, for as long as the largest possible step. All events of all traces would pay for
//! a few broken ones. Instead, a late event keeps its place in the sequence, which is the order in
//! which the tracer wrote it, and its time is raised to that of its predecessor. Late events are
//! counted, and the greatest distance is kept.

use whyslow_model::Ns;

#[derive(Debug, Default)]
pub(crate) struct Sorter {
    first: Option<Ns>,
    last: Ns,
    /// Time range that the source declares as covered, with or without events.
    covered: Option<(Ns, Ns)>,
    reached: Option<Ns>,
    /// Time range of data whose order does not matter.
    unordered: Option<(Ns, Ns)>,
    late: u64,
    distance_max: Ns,
}

impl Sorter {
    /// Returns the time to use for an event.
    #[inline]
    pub(crate) fn place(&mut self, ts: Ns) -> Ns {
        if self.first.is_none() {
            self.first = Some(ts);
            self.last = ts;
        }
        if ts < self.last {
            return self.raise(ts);
        }
        self.last = ts;
        ts
    }

    /// Whether any event was placed.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    #[cold]
    fn raise(&mut self, ts: Ns) -> Ns {
        self.late += 1;
        self.distance_max = self.distance_max.max(self.last.saturating_sub(ts));
        self.last
    }

    /// Extends the range to at least this end.
    #[inline]
    pub(crate) fn reach(&mut self, end: Ns) {
        self.reached = self.reached.max(Some(end));
    }

    /// Extends the range by data whose order does not matter.
    pub(crate) fn widen(&mut self, begin: Ns, end: Ns) {
        let (first, last) = self.unordered.unwrap_or((begin, end));
        self.unordered = Some((first.min(begin), last.max(end)));
    }

    /// Extends the range to at least this one.
    pub(crate) fn cover(&mut self, begin: Ns, end: Ns) {
        self.covered = Some((begin, end));
    }

    /// First and last time; equal for a single event, 0 without events and without a declared
    /// range.
    pub(crate) fn range(&self) -> (Ns, Ns) {
        let last = self.reached.map_or(self.last, |end| end.max(self.last));
        let placed = self.first.map(|first| (first, last));
        let ranges = [placed, self.covered, self.unordered].into_iter().flatten();
        let both = ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        both.unwrap_or((0, last))
    }

    /// Number of late events, and the greatest distance.
    pub(crate) fn late(&self) -> (u64, Ns) {
        (self.late, self.distance_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_belongs_to_the_range() {
        let mut sorter = Sorter::default();
        sorter.cover(10, 20);
        assert_eq!(sorter.range(), (10, 20));
        sorter.place(12);
        assert_eq!(sorter.range(), (10, 20));
        sorter.place(25);
        assert_eq!(sorter.range(), (10, 25));
    }

    #[test]
    fn late_events_get_the_time_of_the_one_before() {
        let mut sorter = Sorter::default();
        let placed: Vec<Ns> = [5, 7, 6, 7, 3, 9].map(|ts| sorter.place(ts)).to_vec();
        assert_eq!(placed, [5, 7, 7, 7, 7, 9]);
        assert_eq!(sorter.late(), (2, 4));
        assert_eq!(sorter.range(), (5, 9));
    }
}
