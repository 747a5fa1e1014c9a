//! Times in which a whole process was stopped.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::{Mark, Sample};

/// Times in which all threads of a process were stopped. They are not attributed to any thread,
/// whatever its next sample shows.
pub(super) struct Stops {
    /// By process id; stops without a process apply to all.
    of: FxHashMap<Option<i64>, Vec<(Ns, Ns)>>,
}

impl Stops {
    /// Process, start and end of each, in start order.
    pub(super) fn of(stops: &[(Option<i64>, Ns, Ns)]) -> Self {
        let mut of: FxHashMap<Option<i64>, Vec<(Ns, Ns)>> = FxHashMap::default();
        for (pid, ..) in stops {
            of.entry(*pid).or_default();
        }
        for (pid, spans) in &mut of {
            let own = stops.iter().filter(|(of, ..)| of.is_none() || of == pid);
            for (_, begin, end) in own {
                match spans.last_mut() {
                    Some(last) if *begin <= last.1 => last.1 = last.1.max(*end),
                    _ => spans.push((*begin, *end)),
                }
            }
        }
        Self { of }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    fn of_process(&self, pid: Option<i64>) -> &[(Ns, Ns)] {
        let spans = self.of.get(&pid).or_else(|| self.of.get(&None));
        spans.map_or(&[], Vec::as_slice)
    }

    /// Splits a sample; parts in which everything was stopped are marked.
    pub(super) fn cut(&self, sample: &Sample<'_>, each: &mut dyn FnMut(&Sample<'_>)) {
        let spans = self.of_process(sample.pid);
        let end = sample.begin.saturating_add(sample.dur);
        let first = spans.partition_point(|stop| stop.1 <= sample.begin);
        let mut from = sample.begin;
        for (begin, until) in spans[first..].iter().take_while(|stop| stop.0 < end) {
            let (begin, until) = ((*begin).max(from), (*until).min(end));
            let piece = |begin: Ns, end: Ns| Sample {
                begin,
                dur: end - begin,
                ..*sample
            };
            if begin > from {
                each(&piece(from, begin));
            }
            each(&Sample {
                mark: Some(Mark::Stopped),
                callsite: None,
                ..piece(begin, until)
            });
            from = until;
        }
        if from == sample.begin {
            each(sample);
        } else if from < end {
            each(&Sample {
                begin: from,
                dur: end - from,
                ..*sample
            });
        }
    }
}
