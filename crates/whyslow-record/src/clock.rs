//! Clocks of this machine.

use rustix::time::{ClockId, clock_gettime};

fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// CLOCK_MONOTONIC, the clock of the records.
pub(crate) fn monotonic() -> u64 {
    now(ClockId::Monotonic) as u64
}

/// All clocks at one time: the monotonic clock is the most accurate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    pub(crate) monotonic: u64,
    pub(crate) boot: u64,
    pub(crate) real: i64,
}

/// Attempts: the reads are some time apart, more if the thread is interrupted.
const TRIES: usize = 5;

pub(crate) fn clocks() -> Clocks {
    let read = || {
        let before = monotonic();
        let (boot, real) = (now(ClockId::Boottime) as u64, now(ClockId::Realtime));
        let took = monotonic() - before;
        let clocks = Clocks {
            monotonic: before + took / 2,
            boot,
            real,
        };
        (took, clocks)
    };
    let tries = (0..TRIES).map(|_| read());
    let best = tries.min_by_key(|(took, _)| *took);
    best.unwrap_or_else(read).1
}

/// CPU time of this process so far, ns.
pub(crate) fn own_cpu() -> u64 {
    now(ClockId::ProcessCPUTime) as u64
}
