//! Duration limits.

/// Limits of the terms on one quantity, each with the number of its term, longest first.
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

    /// The terms whose limit a duration reaches, the highest limit first.
    pub(super) fn reached(&self, took: u64) -> impl Iterator<Item = usize> {
        let reached = self.0.iter().filter(move |(longer, _)| took >= *longer);
        reached.map(|(_, term)| *term)
    }

    pub(super) fn most(&self, took: u64) -> Option<usize> {
        self.reached(took).next()
    }
}
