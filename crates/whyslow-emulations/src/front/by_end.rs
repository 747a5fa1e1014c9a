use std::collections::BTreeMap;

use whyslow_model::Ns;

/// Reorders items from start order to end order, for tools that print operations on completion. It
/// holds the items that had not ended when the last one started.
pub(crate) struct ByEnd<T> {
    waiting: BTreeMap<(Ns, u64), T>,
    taken: u64,
}

impl<T> Default for ByEnd<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            taken: 0,
        }
    }
}

impl<T> ByEnd<T> {
    /// Adds an item and returns those that ended before it started.
    pub(crate) fn take(&mut self, (begin, end): (Ns, Ns), item: T) -> Vec<T> {
        let mut done = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 < begin
        {
            done.push(first.remove());
        }
        self.waiting.insert((end, self.taken), item);
        self.taken += 1;
        done
    }

    /// The remaining items.
    pub(crate) fn rest(self) -> impl Iterator<Item = T> {
        self.waiting.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_sort_by_end() {
        // Starts ascend, durations vary: a small generator suffices.
        let lengths = (0..500i64).map(|n| (n * 7919) % 61);
        let items: Vec<(Ns, Ns)> = lengths
            .enumerate()
            .map(|(n, l)| (n as i64 / 3, l))
            .collect();
        let mut sorter = ByEnd::default();
        let mut found = Vec::new();
        for (place, (begin, length)) in items.iter().enumerate() {
            found.extend(sorter.take((*begin, begin + length), (begin + length, place)));
        }
        found.extend(sorter.rest());
        let ends = items.iter().map(|(begin, length)| begin + length);
        let mut want: Vec<_> = ends.enumerate().map(|(place, end)| (end, place)).collect();
        want.sort_unstable();
        assert_eq!(found, want);
    }
}
