//! Memory budget for interpreter data, whose size is controlled by the sampled processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Maximum bytes of tables, names and stacks of one process; beyond it all of them are read again.
pub(super) const PROCESS_BYTES_MAX: usize = 4 << 20;
/// The same for all processes and readers together.
const BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of tables that one walk may add.
pub(super) const WALK_BYTES_MAX: usize = 1 << 20;

/// Shared by all readers.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    bytes: AtomicUsize,
    /// How often everything was released.
    given_up: AtomicU64,
    /// Stacks that changed while they were read.
    torn: AtomicU64,
    /// Stacks whose memory was unreadable or invalid.
    unreadable: AtomicU64,
}

impl Budget {
    /// Memory is short: cached data is dropped, and read again on demand.
    pub(crate) fn give_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn torn(&self) -> u64 {
        self.torn.load(Ordering::Relaxed)
    }

    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    pub(super) fn count_torn(&self, count: u64) {
        self.torn.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn count_unreadable(&self, count: u64) {
        self.unreadable.fetch_add(count, Ordering::Relaxed);
    }
}

/// Share of one reader.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) budget: Arc<Budget>,
    bytes: usize,
    given_up: u64,
}

impl Share {
    pub(super) fn of(budget: Arc<Budget>) -> Self {
        Self {
            given_up: budget.given_up.load(Ordering::Relaxed),
            budget,
            bytes: 0,
        }
    }

    /// Changes the accounted bytes of an item.
    pub(super) fn change(&mut self, before: usize, now: usize) {
        // Counters wrap, so the result is right in any order of changes.
        self.bytes = self.bytes.wrapping_add(now).wrapping_sub(before);
        let bytes = &self.budget.bytes;
        bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether all cached data must be dropped; it is accounted as dropped then.
    pub(super) fn must_give_up(&mut self) -> bool {
        let given_up = self.budget.given_up.load(Ordering::Relaxed);
        let is_requested = std::mem::replace(&mut self.given_up, given_up) != given_up;
        let is_full = self.budget.bytes.load(Ordering::Relaxed) > BYTES_MAX && self.bytes > 0;
        if is_requested || is_full {
            self.change(self.bytes, 0);
        }
        is_requested || is_full
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_beyond_the_limit_gives_up_its_share() {
        let budget = Arc::<Budget>::default();
        let (mut one, mut other) = (
            Share::of(Arc::clone(&budget)),
            Share::of(Arc::clone(&budget)),
        );
        one.change(0, BYTES_MAX);
        assert!(!one.must_give_up());
        other.change(0, 10);
        other.change(10, 4);
        assert!(other.must_give_up());
        assert!(!other.must_give_up());
        assert!(!one.must_give_up());
        budget.give_up();
        assert!(one.must_give_up() && other.must_give_up());
        assert!(!one.must_give_up() && !other.must_give_up());
        one.change(0, 7);
        drop(one);
        assert_eq!(budget.bytes.load(Ordering::Relaxed), 0);
    }
}
