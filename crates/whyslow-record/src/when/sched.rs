//! How long threads waited for a CPU, from records that come by CPU, not quite in order of time.

use rustc_hash::FxHashMap;

/// More threads than this are not kept in mind.
const THREADS_MAX: usize = 1 << 16;

/// Times of a thread; 0 for none.
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    /// It can run and does not, since.
    runnable: u64,
    /// Got a CPU last, and gave it up last before that.
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

    /// Somebody lets it run. Where the record comes after that of its getting a CPU: how long it
    /// waited.
    pub(super) fn woken(&mut self, tid: i32, ts: u64) -> Option<u64> {
        let times = self.of(tid);
        if ts > times.on {
            // What is woken twice waits since the first time.
            if times.runnable <= times.on {
                times.runnable = ts;
            }
            return None;
        }
        let is_its_last = times.off > 0 && ts > times.off;
        is_its_last.then(|| times.on - ts)
    }

    /// It gives up the CPU, and could go on or not.
    pub(super) fn off(&mut self, tid: i32, ts: u64, can_run: bool) {
        let times = self.of(tid);
        if ts >= times.on {
            times.off = ts;
            times.runnable = if can_run { ts } else { 0 };
        }
    }

    /// It gets a CPU: how long it waited.
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
        // Told through another ring: first that it ran three times, then that it was woken so often.
        for ts in [10, 20, 30] {
            assert_eq!(waits.on(1, ts), None);
            waits.off(1, ts + 1, false);
        }
        let late = [9, 19, 28].map(|ts| waits.woken(1, ts));
        // None of them is after it gave up the CPU last.
        assert_eq!(late, [None, None, None]);
        assert_eq!(waits.on(1, 90), None);
        assert_eq!(waits.woken(1, 85), Some(5));
        waits.off(1, 91, false);
        assert_eq!(waits.woken(1, 100), None);
        assert_eq!(waits.on(1, 103), Some(3));
    }
}
