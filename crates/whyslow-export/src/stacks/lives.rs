//! Whether the time that is told of threads is their lives.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::{Sample, StackQuestion, Weight};

/// Lives of threads, from the first that is told of each to the last, and what of these is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lives {
    /// Number of threads.
    pub threads: usize,
    /// Sum of their lifetimes in ns.
    pub lived: Ns,
    /// Sum of what each thread has too much or too little.
    pub residual: Ns,
}

/// A thread by process and number.
type ThreadOf = (Option<i64>, Option<i64>);

/// Begin, end and told time of each thread, where all of it is asked for.
pub(super) struct LivesOf {
    is_asked: bool,
    threads: FxHashMap<ThreadOf, (Ns, Ns, Ns)>,
}

impl LivesOf {
    pub(super) fn new(question: &StackQuestion) -> Self {
        let filter = &question.filter;
        let has_parts = filter.is_of_stacks()
            || filter.dur_min.is_some()
            || filter.dur_max.is_some()
            || !question.states.is_empty();
        Self {
            is_asked: question.weight == Weight::Time && !has_parts,
            threads: FxHashMap::default(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.add_until(sample, sample.begin.saturating_add(sample.dur));
    }

    /// Of several samples, the last of which ends there.
    pub(super) fn add_until(&mut self, sample: &Sample<'_>, end: Ns) {
        if !self.is_asked || sample.tid.is_none() {
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
        self.is_asked.then(|| {
            lives.fold(Lives::default(), |sum, (begin, end, told)| Lives {
                threads: sum.threads + 1,
                lived: sum.lived.saturating_add(end - begin),
                residual: sum.residual.saturating_add((end - begin - told).abs()),
            })
        })
    }
}
