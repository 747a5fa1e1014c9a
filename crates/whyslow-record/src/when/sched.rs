//! Run-queue wait times, from records that arrive per CPU and not quite in time order.

use rustc_hash::FxHashMap;

/// Maximum number of threads tracked.
const THREADS_MAX: usize = 1 << 16;

/// Timestamps of a thread; 0 for none.
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    /// Runnable, but not running, since then.
    runnable: u64,
    /// When it last got a CPU, and when it last gave one up.
    on: u64,
    off: u64,
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    threads: FxHashMap<i32, Times>,
}

impl Waits {
    fn of(&mut self, tid: i32) -> &mut Times {
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        self.threads.entry(tid).or_default()
    }

    /// The thread is woken. If this record arrives after the one that reports it running, returns
    /// how long it waited.
    pub(super) fn woken(&mut self, tid: i32, ts: u64) -> Option<u64> {
        let times = self.of(tid);
        if ts > times.on {
            // A thread that is woken twice waits since the first wakeup.
            if times.runnable <= times.on {
                times.runnable = ts;
            }
            return None;
        }
        let is_its_last = times.off > 0 && ts > times.off;
        is_its_last.then(|| times.on - ts)
    }

    /// It gives up the CPU, still runnable or not.
    pub(super) fn off(&mut self, tid: i32, ts: u64, can_run: bool) {
        let times = self.of(tid);
        if ts >= times.on {
            times.off = ts;
            times.runnable = if can_run { ts } else { 0 };
        }
    }

    /// It gets a CPU; returns how long it waited.
    pub(super) fn on(&mut self, tid: i32, ts: u64) -> Option<u64> {
        let times = self.of(tid);
        if ts <= times.on {
            return None;
        }
        let since = times.runnable;
        times.on = ts;
        times.runnable = 0;
        (since > 0 && since < ts).then(|| ts - since)
    }

    pub(super) fn gone(&mut self, tid: i32) {
        self.threads.remove(&tid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_from_the_wakeup_to_the_cpu() {
        let mut waits = Waits::default();
        assert_eq!(waits.woken(1, 10), None);
        assert_eq!(waits.woken(1, 12), None);
        assert_eq!(waits.on(1, 15), Some(5));
        waits.off(1, 20, true);
        assert_eq!(waits.on(1, 27), Some(7));
        waits.off(1, 30, false);
        assert_eq!(waits.on(1, 40), None);
    }

    #[test]
    fn wakeups_that_come_late_are_not_taken_for_later_ones() {
        let mut waits = Waits::default();
        // Arriving through another ring: first three switches to the thread, then three wakeups.
        for ts in [10, 20, 30] {
            assert_eq!(waits.on(1, ts), None);
            waits.off(1, ts + 1, false);
        }
        let late = [9, 19, 28].map(|ts| waits.woken(1, ts));
        // All of them precede its last switch away.
        assert_eq!(late, [None, None, None]);
        assert_eq!(waits.on(1, 90), None);
        assert_eq!(waits.woken(1, 85), Some(5));
        waits.off(1, 91, false);
        assert_eq!(waits.woken(1, 100), None);
        assert_eq!(waits.on(1, 103), Some(3));
    }
}
