//! Sweeps over intervals in order of start, for equal parts of time: how long anything was in
//! flight (the union), and the total time in flight (the sum), per part.
//!
//! One pass: the union only needs the latest end so far, because intervals are sorted by start. The
//! sum is recorded at the edges of an interval and accumulated at the end, so that a long interval
//! over many parts costs as much as a short one.

use whyslow_model::{Ns, Window};

use crate::context::Context;

/// Equal parts of a window; the last one may be shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) span: Window,
    pub(crate) width: Ns,
}

impl Parts {
    /// The intervals of a query, or its whole window.
    pub(crate) fn of_query(context: &Context<'_>) -> Self {
        let whole = context.span.length().max(1);
        Self {
            span: context.span,
            width: context.interval.unwrap_or(whole),
        }
    }

    /// Number of parts; at least one, so that everything belongs to a part.
    pub(crate) fn count(self) -> usize {
        let length = self.span.length().max(1);
        let more = i64::from(length % self.width > 0);
        (length / self.width + more) as usize
    }

    /// The part that contains a time; times outside belong to the first or last.
    #[inline]
    pub(crate) fn of(self, ts: Ns) -> usize {
        // Most queries have one part, and a division is most of the work for a row.
        if self.span.length() <= self.width {
            return 0;
        }
        let place = (ts - self.span.begin).max(0) / self.width;
        (place as usize).min(self.count() - 1)
    }

    pub(crate) fn begin(self, part: usize) -> Ns {
        self.span.begin + part as i64 * self.width
    }

    pub(crate) fn length(self, part: usize) -> Ns {
        let begin = self.begin(part);
        self.span.end.min(begin.saturating_add(self.width)) - begin
    }

    /// Seconds of the part that starts at `begin`, or of the whole span: the last part may be
    /// shorter than the others, and its rates refer to its own length.
    pub(crate) fn seconds(self, begin: Option<Ns>) -> f64 {
        let length = begin.map_or(self.span.length(), |begin| self.length(self.of(begin)));
        length as f64 / 1e9
    }

    /// Splits an interval at the edges of parts. The first piece exists even if it is empty, so
    /// that each interval can be counted once.
    pub(crate) fn pieces(self, begin: Ns, end: Ns) -> impl Iterator<Item = Piece> {
        let end = end.min(self.span.end);
        let mut next = Some(begin.max(self.span.begin));
        std::iter::from_fn(move || {
            let begin = next?;
            let part = self.of(begin);
            let to = end.min(self.begin(part).saturating_add(self.width));
            next = (to < end).then_some(to);
            let length = (to - begin).max(0);
            Some(Piece {
                part,
                begin,
                length,
            })
        })
    }
}

/// The piece of an interval in one part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) part: usize,
    pub(crate) begin: Ns,
    pub(crate) length: Ns,
}

/// Time in flight per part.
///
/// A table is processed in pieces, on several threads: each piece has its own instance, and these
/// are appended in order. The union of a piece is kept as a list of stretches until the end of the
/// earlier pieces is known; there are no more stretches than intervals in a piece.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    parts: Parts,
    /// The part of the latest start, and its edges: the next interval usually starts there, too.
    near: (usize, Window),
    /// Union of the added intervals in time order, not counted in `busy` yet.
    stretches: Vec<(Ns, Ns)>,
    /// Everything up to here is counted in `busy`.
    reached: Ns,
    busy: Vec<Ns>,
    /// Time in the parts where intervals start and end.
    edges: Vec<Ns>,
    /// Change in the number of intervals that cover a part completely.
    covering: Vec<i64>,
}

impl InFlight {
    pub(crate) fn new(parts: Parts) -> Self {
        let count = parts.count();
        Self {
            parts,
            near: (0, Window::new(Ns::MAX, Ns::MAX)),
            stretches: Vec::new(),
            reached: Ns::MIN,
            busy: vec![0; count],
            edges: vec![0; count],
            covering: vec![0; count + 1],
        }
    }

    /// Adds an interval that starts no earlier than those before.
    #[inline]
    pub(crate) fn add(&mut self, begin: Ns, end: Ns) {
        let span = self.parts.span;
        let (begin, end) = (begin.max(span.begin), end.min(span.end));
        if begin >= end {
            return;
        }
        // Whether the previous stretch reaches this far is unpredictable, so the stretch is always
        // written behind the others and becomes the last one again if it continues.
        let (from, reached) = self.stretches.last().copied().unwrap_or((Ns::MIN, Ns::MIN));
        let goes_on = begin <= reached;
        let kept = self.stretches.len().saturating_sub(usize::from(goes_on));
        self.stretches.truncate(kept);
        let from = if goes_on { from } else { begin };
        self.stretches.push((from, end.max(reached)));
        let first = self.part_of(begin);
        if end <= self.near.1.end {
            self.edges[first] += end - begin;
            return;
        }
        let last = self.parts.of(end - 1);
        self.edges[first] += self.parts.begin(first + 1) - begin;
        self.edges[last] += end - self.parts.begin(last);
        self.covering[first + 1] += 1;
        self.covering[last] -= 1;
    }

    /// Appends the intervals of the next piece.
    pub(crate) fn append(&mut self, later: InFlight) {
        let add = |sums: &mut [i64], more: &[i64]| {
            let pairs = sums.iter_mut().zip(more);
            pairs.for_each(|(sum, more)| *sum += more);
        };
        add(&mut self.edges, &later.edges);
        add(&mut self.covering, &later.covering);
        self.settle();
        self.stretches = later.stretches;
        self.settle();
    }

    /// Counts the part of the stretches that was not counted before.
    fn settle(&mut self) {
        for (begin, end) in std::mem::take(&mut self.stretches) {
            let mut from = begin.max(self.reached);
            while from < end {
                let part = self.part_of(from);
                let to = end.min(self.near.1.end);
                self.busy[part] += to - from;
                from = to;
            }
            self.reached = self.reached.max(end);
        }
    }

    /// Part of a time inside the window.
    #[inline]
    fn part_of(&mut self, ts: Ns) -> usize {
        let (part, edges) = self.near;
        if ts >= edges.begin && ts < edges.end {
            return part;
        }
        let part = self.parts.of(ts);
        let begin = self.parts.begin(part);
        self.near = (
            part,
            Window::new(begin, begin.saturating_add(self.parts.width)),
        );
        part
    }

    /// Union and sum per part.
    pub(crate) fn into_sums(mut self) -> (Vec<Ns>, Vec<Ns>) {
        self.settle();
        let mut covering = 0;
        let parts = self.edges.iter().zip(&self.covering).enumerate();
        let total = parts.map(|(part, (edges, change))| {
            covering += change;
            edges + covering * self.parts.length(part)
        });
        let total = total.collect();
        (self.busy, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn union_and_sum_equal_a_count_by_hand(
            mut intervals in prop::collection::vec((0i64..80, 0i64..40), 0..12),
            begin in 0i64..30,
            length in 1i64..60,
            width in 1i64..25,
            cuts in (0usize..12, 0usize..12),
        ) {
            intervals.sort_unstable();
            let parts = Parts { span: Window::new(begin, begin + length), width };
            let mut in_flight = InFlight::new(parts);
            let (first, second) = (cuts.0.min(cuts.1), cuts.0.max(cuts.1));
            let of = |place: usize| usize::from(place >= first) + usize::from(place >= second);
            for piece in 0..3 {
                let mut later = InFlight::new(parts);
                for (place, (ts, dur)) in intervals.iter().enumerate() {
                    if of(place) == piece {
                        later.add(*ts, ts + dur);
                    }
                }
                in_flight.append(later);
            }
            let mut busy = vec![0; parts.count()];
            let mut total = vec![0; parts.count()];
            for moment in begin..begin + length {
                let running = intervals.iter().filter(|(ts, dur)| *ts <= moment && moment < ts + dur);
                let running = running.count() as i64;
                let part = ((moment - begin) / width) as usize;
                busy[part] += running.min(1);
                total[part] += running;
            }
            prop_assert_eq!(in_flight.into_sums(), (busy, total));
        }
    }
}
