//! The clock of a run. Wall-clock time is read once, at the start; from then on CLOCK_MONOTONIC is
//! used, read directly because each request reads it several times.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// ns since the start of a run. All times of a run are derived from it, so setting the system clock
/// during a run changes none of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begin: Instant,
    /// The start in CLOCK_MONOTONIC: computing differences of [`Instant`] several times per request
    /// is too expensive.
    begin_monotonic_ns: u64,
    begin_ns: i64,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place where a run reads the wall clock"
    )]
    pub(crate) fn begin() -> Self {
        let now = SystemTime::now();
        let begin = Instant::now();
        let begin_monotonic_ns = monotonic_ns();
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            begin,
            begin_monotonic_ns,
            begin_ns: since.map_or(0, |since| since.as_nanos() as i64),
        }
    }

    /// The start, ns since the epoch.
    pub(crate) fn begin_ns(self) -> i64 {
        self.begin_ns
    }

    pub(crate) fn now_ns(self) -> u64 {
        monotonic_ns().saturating_sub(self.begin_monotonic_ns)
    }

    /// The [`Instant`] at `ns` after the start.
    pub(crate) fn at(self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns)
    }
}

fn monotonic_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// CPU time of the calling thread.
pub(crate) fn of_this_thread_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

fn ns_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
