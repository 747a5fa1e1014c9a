//! Checks whether the reported time of threads adds up to their lifetimes.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::{Sample, StackQuery, Weight};

/// Lifetimes of threads, from their first to their last sample, compared with their reported time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lives {
    /// Number of threads.
    pub threads: usize,
    /// Sum of their lifetimes in ns.
    pub lived: Ns,
    /// Sum of the absolute differences of each thread.
    pub residual: Ns,
}

/// A thread by process and thread id.
type ThreadOf = (Option<i64>, Option<i64>);

/// Start, end and reported time of each thread, if all time is requested.
pub(super) struct LivesOf {
    is_requested: bool,
    threads: FxHashMap<ThreadOf, (Ns, Ns, Ns)>,
}

impl LivesOf {
    pub(super) fn new(query: &StackQuery) -> Self {
        let filter = &query.filter;
        let has_parts = filter.is_of_stacks()
            || filter.dur_min.is_some()
            || filter.dur_max.is_some()
            || !query.states.is_empty();
        Self {
            is_requested: query.weight == Weight::Time && !has_parts,
            threads: FxHashMap::default(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.add_until(sample, sample.begin.saturating_add(sample.dur));
    }

    /// Adds several samples, the last of which ends at `end`.
    pub(super) fn add_until(&mut self, sample: &Sample<'_>, end: Ns) {
        if !self.is_requested || sample.tid.is_none() {
            return;
        }
        let key = (sample.pid, sample.tid);
        let life = self.threads.entry(key).or_insert((sample.begin, end, 0));
        life.0 = life.0.min(sample.begin);
        life.1 = life.1.max(end);
        life.2 = life.2.saturating_add(sample.dur);
    }

    pub(super) fn sum(&self) -> Option<Lives> {
        let lives = self.threads.values();
        self.is_requested.then(|| {
            lives.fold(Lives::default(), |sum, (begin, end, reported)| Lives {
                threads: sum.threads + 1,
                lived: sum.lived.saturating_add(end - begin),
                residual: sum.residual.saturating_add((end - begin - reported).abs()),
            })
        })
    }
}
