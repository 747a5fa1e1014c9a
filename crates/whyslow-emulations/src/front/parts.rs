use whyslow_base::failure::Failure;
use whyslow_model::{Ns, Window};

/// A window split into intervals of equal length, of which the last may be shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    span: Window,
    width: Ns,
    /// Whether the window ends with the recording, so that it includes the last event.
    ends_with_recording: bool,
    /// Whether an interval was requested.
    pub(crate) by_time: bool,
}

/// More intervals than this indicate a wrong unit.
const PARTS_MAX: i64 = 100_000;

impl Parts {
    pub(super) fn new(
        span: Window,
        recording_end: Ns,
        interval: Option<Ns>,
    ) -> Result<Self, Failure> {
        // An interval longer than the window equals the window, so no sum below overflows 64 bits.
        let length = span.length().max(1);
        let width = interval.map_or(length, |interval| interval.clamp(1, length));
        if span.length() / width >= PARTS_MAX {
            return Err(
                Failure::usage(format!("cannot print more than {PARTS_MAX} intervals"))
                    .hint("use a longer interval, or a shorter window with -w"),
            );
        }
        Ok(Self {
            span,
            width,
            ends_with_recording: span.end == recording_end,
            by_time: interval.is_some(),
        })
    }

    pub(crate) fn count(self) -> usize {
        let length = self.span.length().max(1);
        ((length - 1) / self.width + 1) as usize
    }

    /// The interval that contains `ts`.
    pub(crate) fn of(self, ts: Ns) -> Option<usize> {
        let is_last = ts == self.span.end && self.ends_with_recording;
        if ts < self.span.begin || ts > self.span.end || (ts == self.span.end && !is_last) {
            return None;
        }
        let place = (ts - self.span.begin) / self.width;
        Some((place as usize).min(self.count() - 1))
    }

    /// The requested interval, as a query takes it.
    pub(crate) fn interval(self) -> Option<Ns> {
        self.by_time.then_some(self.width)
    }

    pub(crate) fn begin(self, part: usize) -> Ns {
        self.span.begin + part as i64 * self.width
    }

    pub(crate) fn end(self, part: usize) -> Ns {
        self.span
            .end
            .min(self.begin(part).saturating_add(self.width))
    }

    pub(crate) fn seconds(self, part: usize) -> f64 {
        (self.end(part) - self.begin(part)) as f64 / 1e9
    }

    /// Total length of all intervals.
    pub(crate) fn seconds_all(self) -> f64 {
        self.span.length() as f64 / 1e9
    }

    /// Calls `each` with the overlap of a time range with each interval.
    pub(crate) fn spread(self, begin: Ns, end: Ns, mut each: impl FnMut(usize, Ns)) {
        let (mut from, end) = (begin.max(self.span.begin), end.min(self.span.end));
        while from < end {
            let part = ((from - self.span.begin) / self.width) as usize;
            let to = end.min(self.end(part));
            each(part, to - from);
            from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(end_of_recording: Ns) -> Parts {
        Parts::new(Window::new(10, 35), end_of_recording, Some(10)).expect("few")
    }

    #[test]
    fn moments_and_intervals_fall_into_parts() {
        let inside = parts(100);
        assert_eq!(inside.count(), 3);
        let of = [9, 10, 19, 20, 34, 35].map(|ts| inside.of(ts));
        assert_eq!(of, [None, Some(0), Some(0), Some(1), Some(2), None]);
        assert_eq!(parts(35).of(35), Some(2));
        assert_eq!((inside.begin(2), inside.end(2)), (30, 35));
        let mut found = Vec::new();
        inside.spread(0, 33, |part, time| found.push((part, time)));
        assert_eq!(found, [(0, 10), (1, 10), (2, 3)]);
    }

    #[test]
    fn an_empty_window_has_one_part() {
        let empty = Parts::new(Window::new(5, 5), 5, None).expect("one");
        assert_eq!((empty.count(), empty.of(5)), (1, Some(0)));
    }

    #[test]
    fn intervals_longer_than_the_window_are_the_window() {
        let begin = 1_700_000_000_000_000_000;
        let window = Window::new(begin, begin + 25);
        for interval in [26, 9_223_372_036_000_000_000, Ns::MAX] {
            let parts = Parts::new(window, begin + 25, Some(interval)).expect("one");
            assert_eq!((parts.count(), parts.end(0)), (1, begin + 25));
            assert_eq!(parts.of(begin + 25), Some(0));
            // Queries take it, and add it to timestamps.
            assert_eq!(parts.interval(), Some(25));
        }
    }

    #[test]
    fn too_many_parts_are_refused() {
        assert!(Parts::new(Window::new(0, 1_000_000_000), 0, Some(1)).is_err());
    }
}
