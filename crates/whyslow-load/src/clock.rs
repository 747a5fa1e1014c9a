use std::time::{Duration, Instant, SystemTime};

/// ns since the begin of a run. All times of a run come from here, so that a clock that is set
/// meanwhile moves none of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begin: Instant,
    begin_ns: i64,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a run asks what time it is"
    )]
    pub(crate) fn begin() -> Self {
        let now = SystemTime::now();
        let begin = Instant::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            begin,
            begin_ns: since.map_or(0, |since| since.as_nanos() as i64),
        }
    }

    /// The begin, ns since the epoch.
    pub(crate) fn begin_ns(self) -> i64 {
        self.begin_ns
    }

    pub(crate) fn now_ns(self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// The moment so many ns after the begin.
    pub(crate) fn at(self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns)
    }
}
