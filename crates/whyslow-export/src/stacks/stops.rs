//! Times in which a whole process stood still.

use whyslow_model::Ns;

use super::{GapSample, Mark, Sample};

/// When all threads were stopped. That time is no thread's doing, whatever it was seen in afterwards.
pub(super) struct Stops(Vec<(Ns, Ns)>);

impl Stops {
    pub(super) fn of(gaps: &[GapSample]) -> Self {
        let mut spans: Vec<(Ns, Ns)> = Vec::new();
        for gap in gaps {
            let end = gap.end();
            match spans.last_mut() {
                Some(last) if gap.begin <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((gap.begin, end)),
            }
        }
        Self(spans)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A sample in pieces, those in which everything stood still marked as that.
    pub(super) fn cut(&self, sample: &Sample<'_>, each: &mut dyn FnMut(&Sample<'_>)) {
        let end = sample.begin.saturating_add(sample.dur);
        let first = self.0.partition_point(|stop| stop.1 <= sample.begin);
        let mut from = sample.begin;
        for (begin, until) in self.0[first..].iter().take_while(|stop| stop.0 < end) {
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
