//! Whether an end belongs to the start that it was paired with, although events were lost between
//! them.
//!
//! If the real end and the start of a later operation of the same kind were lost, the end of the
//! later one looks like the end of the first, and a disk seems to need seconds that it never needed.
//! That takes two lost events, so a single one puts nothing in doubt. A pair across more losses is
//! *uncertain*: it is marked, and its duration is kept only if a certain one of the same kind was as
//! long. Rejected: dropping the pair, because start, end and result were recorded; trusting it,
//! because half of the events may be missing.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::Loss;

use super::loss_ranges::LossRanges;

/// Lost events that it takes: an end and a start.
const EVENTS_MIN: u64 = 2;

/// How certain a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    Certain,
    /// Uncertain, but not longer than the longest certain one.
    Plausible,
    /// Uncertain and longer than any certain one.
    Implausible,
}

impl Pairing {
    pub(super) fn is_certain(self) -> bool {
        self == Self::Certain
    }

    /// Whether the duration is reported.
    pub(super) fn has_duration(self) -> bool {
        self != Self::Implausible
    }
}

/// Judges pairs, by kind.
#[derive(Debug)]
pub(super) struct Pairings<K> {
    losses: LossRanges,
    /// The longest certain duration of each kind so far.
    longest: FxHashMap<K, Ns>,
}

impl<K> Default for Pairings<K> {
    fn default() -> Self {
        Self {
            losses: LossRanges::default(),
            longest: FxHashMap::default(),
        }
    }
}

impl<K: Eq + Hash> Pairings<K> {
    pub(super) fn lost(&mut self, loss: &Loss<'_>) {
        self.losses.add(loss);
    }

    /// Judges a pair whose real end could have happened on one of these CPUs (`None`: on any).
    pub(super) fn judge(
        &mut self,
        kind: K,
        cpus: &[Option<i32>],
        (ts, ts_end): (Ns, Ns),
    ) -> Pairing {
        let dur = ts_end.saturating_sub(ts);
        if self.losses.count_between(cpus, ts, ts_end) < EVENTS_MIN {
            let longest = self.longest.entry(kind).or_default();
            *longest = (*longest).max(dur);
            return Pairing::Certain;
        }
        match self.longest.get(&kind) {
            Some(longest) if dur <= *longest => Pairing::Plausible,
            _ => Pairing::Implausible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::event::LossKind;

    fn lost(pairings: &mut Pairings<u8>, cpu: Option<i32>, range: (Ns, Ns), count: i64) {
        pairings.lost(&Loss {
            ts: range.0,
            ts_end: Some(range.1),
            cpu,
            stream: "",
            kind: LossKind::Events,
            count: Some(count),
        });
    }

    #[test]
    fn a_pair_across_a_loss_is_kept_if_a_certain_one_was_as_long() {
        let mut pairings = Pairings::default();
        let any = &[None];
        assert_eq!(pairings.judge(1, any, (0, 20)), Pairing::Certain);
        lost(&mut pairings, Some(3), (100, 110), 2);
        assert_eq!(pairings.judge(1, any, (95, 115)), Pairing::Plausible);
        assert_eq!(pairings.judge(1, any, (90, 115)), Pairing::Implausible);
        assert_eq!(pairings.judge(2, any, (95, 115)), Pairing::Implausible);
        assert_eq!(pairings.judge(2, any, (110, 115)), Pairing::Certain);
        // An uncertain one is no measure for others.
        assert_eq!(pairings.judge(1, any, (90, 111)), Pairing::Implausible);
    }

    #[test]
    fn one_lost_event_cannot_hide_an_end_and_a_start() {
        let mut pairings = Pairings::default();
        lost(&mut pairings, Some(3), (10, 20), 1);
        assert_eq!(pairings.judge(1, &[None], (0, 90)), Pairing::Certain);
        lost(&mut pairings, Some(4), (30, 30), 1);
        assert_eq!(pairings.judge(2, &[None], (0, 90)), Pairing::Implausible);
    }

    #[test]
    fn only_losses_of_the_cpus_where_it_could_end_count() {
        let mut pairings = Pairings::default();
        lost(&mut pairings, Some(3), (10, 20), 100);
        let (here, there) = (&[Some(1), Some(2)], &[Some(1), Some(3)]);
        assert_eq!(pairings.judge(1, here, (0, 90)), Pairing::Certain);
        assert_eq!(pairings.judge(1, there, (0, 91)), Pairing::Implausible);
    }
}
