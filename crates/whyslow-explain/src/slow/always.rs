//! Calls on files and disks that are always slow. Nothing is unlike the others of its kind, but what
//! takes most of the time, or 100 ms each time, is worth a finding.

use whyslow_model::Ns;

use super::{Counts, KEPT, Like, SLOW_MIN_NS, SlowGroup, Wanted};

/// Operations with this median duration are slow in absolute terms, …
const ALWAYS_NS: f64 = 100e6;
/// … and so are those that take this share of the time of their threads, …
const SHARE_MIN: f64 = 0.5;
/// … if there are this many.
const ALWAYS_MIN: u64 = 5;

impl Counts {
    /// Whether calls on files and disks are always slow: by their median, or because they take most
    /// of the time of their threads in a window of this length.
    pub(super) fn is_always_slow(&self, window: Ns) -> bool {
        let median = self.median();
        let all = window.max(1) as f64 * self.threads.len().max(1) as f64;
        let share = self.on_storage as f64 / all;
        let is_much = share >= SHARE_MIN && median >= SLOW_MIN_NS as f64;
        self.storage_calls >= ALWAYS_MIN && (is_much || median >= ALWAYS_NS)
    }
}

/// All calls of a kind, which are always slow.
pub(super) fn always(like: &Like, counts: &Counts, wanted: &Wanted) -> Option<SlowGroup> {
    let mut longest = counts.longest.clone();
    longest.retain(|slow| wanted.includes(slow));
    longest.sort_unstable_by(|a, b| b.cmp(a));
    longest.truncate(KEPT);
    (!longest.is_empty()).then(|| SlowGroup {
        like: like.clone(),
        // Compared with themselves, they are not slow.
        baseline: None,
        longest,
        usual: Vec::new(),
        elsewhere: None,
        count: counts.storage_calls,
        total: counts.on_storage,
        excess: counts.on_storage,
        always: Some(counts.median() as Ns),
    })
}
