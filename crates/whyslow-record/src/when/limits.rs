//! How long something has to take.

/// Limits of terms about the same thing, each with the number of its term: the longest first.
#[derive(Debug, Default, Clone)]
pub(super) struct Limits(Vec<(u64, usize)>);

impl Limits {
    pub(super) fn add(&mut self, longer_ns: u64, term: usize) {
        let place = self.0.partition_point(|(longer, _)| *longer >= longer_ns);
        self.0.insert(place, (longer_ns, term));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The terms that hold of something that took so long: that which says most first.
    pub(super) fn held(&self, took: u64) -> impl Iterator<Item = usize> {
        let held = self.0.iter().filter(move |(longer, _)| took >= *longer);
        held.map(|(_, term)| *term)
    }

    pub(super) fn most(&self, took: u64) -> Option<usize> {
        self.held(took).next()
    }
}
