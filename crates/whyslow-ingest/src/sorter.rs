//! Order of time at the door of the trackers.
//!
//! Sources merge their streams, so events come in order but for streams whose own clock runs
//! backwards. To put such an event in its place, all events would have to wait in a queue for the
//! longest step back that may come, copied with all their names. That price is paid by every event
//! of every trace for the sake of a few broken ones, so it is not done: a late event keeps its
//! place in the sequence, which is the order in which the tracer wrote it, and its time is raised
//! to that of the event before. It is counted with the greatest distance.

use whyslow_model::Ns;

#[derive(Debug, Default)]
pub(crate) struct Sorter {
    first: Option<Ns>,
    last: Ns,
    /// What the source says it tells of, also where nothing happened.
    covered: Option<(Ns, Ns)>,
    reached: Option<Ns>,
    /// What sources tell of whose order nothing depends on.
    beside: Option<(Ns, Ns)>,
    late: u64,
    distance_max: Ns,
}

impl Sorter {
    /// The time that the event gets.
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

    /// Whether anything was placed.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    #[cold]
    fn raise(&mut self, ts: Ns) -> Ns {
        self.late += 1;
        self.distance_max = self.distance_max.max(self.last.saturating_sub(ts));
        self.last
    }

    /// The range goes on until then at least, as what was told of lasts that long.
    #[inline]
    pub(crate) fn reach(&mut self, end: Ns) {
        self.reached = self.reached.max(Some(end));
    }

    /// Something from here to there belongs to the range, and says nothing of the order.
    pub(crate) fn beside(&mut self, begin: Ns, end: Ns) {
        let (first, last) = self.beside.unwrap_or((begin, end));
        self.beside = Some((first.min(begin), last.max(end)));
    }

    /// The range goes from here to there at least.
    pub(crate) fn cover(&mut self, begin: Ns, end: Ns) {
        self.covered = Some((begin, end));
    }

    /// First and last time; the same if there was one event, 0 if there was none and nobody said
    /// what was covered.
    pub(crate) fn range(&self) -> (Ns, Ns) {
        let last = self.reached.map_or(self.last, |end| end.max(self.last));
        let placed = self.first.map(|first| (first, last));
        let told = [placed, self.covered, self.beside].into_iter().flatten();
        let both = told.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        both.unwrap_or((0, last))
    }

    /// How many events came late, and by how much at most.
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
