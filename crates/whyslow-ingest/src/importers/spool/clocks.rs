//! Readings of several clocks, once a second: whether wall-clock time was set, and whether the
//! machine was suspended.
//!
//! Timestamps of records are monotonic and affected by neither. They are converted with the offset
//! to wall-clock time at the start, so that durations stay right; clock steps are reported
//! separately.

use whyslow_model::Ns;

/// Larger than the effect of reading several clocks in turn, or of slewing, within a second.
const STEP_MIN_NS: i64 = 100_000_000;
/// Limit for a machine whose clock is set all the time.
const STEPS_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) monotonic: u64,
    pub(crate) boot: u64,
    pub(crate) real: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wall-clock time was set forward by this much.
    Set(i64),
    Slept(i64),
}

/// Clock steps so far.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    first: Option<Reading>,
    last: Option<Reading>,
    /// Each with the reading at which it was detected.
    pub(crate) steps: Vec<(Reading, Step)>,
    /// Number of all steps by type: set, suspended.
    pub(crate) counts: [u64; 2],
}

impl Clocks {
    pub(crate) fn add(&mut self, reading: Reading) {
        self.first.get_or_insert(reading);
        let Some(last) = self.last.replace(reading) else {
            return;
        };
        let between = |now: i64, before: i64| now.saturating_sub(before);
        let passed = between(reading.monotonic as i64, last.monotonic as i64);
        let booted = between(reading.boot as i64, last.boot as i64);
        let slept = booted.saturating_sub(passed);
        let set = between(reading.real, last.real).saturating_sub(booted);
        if slept > STEP_MIN_NS {
            self.step(reading, Step::Slept(slept));
        }
        if set.saturating_abs() > STEP_MIN_NS {
            self.step(reading, Step::Set(set));
        }
    }

    /// Offsets at the start from the monotonic and the boot-time clock to wall-clock time.
    pub(crate) fn offsets(&self) -> Option<(Ns, Ns)> {
        let first = self.first?;
        Some((
            first.real.saturating_sub(first.monotonic as i64),
            first.real.saturating_sub(first.boot as i64),
        ))
    }

    pub(crate) fn last(&self) -> Option<Reading> {
        self.last
    }

    pub(crate) fn first(&self) -> Option<Reading> {
        self.first
    }

    fn step(&mut self, reading: Reading, step: Step) {
        self.counts[usize::from(matches!(step, Step::Slept(_)))] += 1;
        if self.steps.len() < STEPS_MAX {
            self.steps.push((reading, step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn steps(readings: &[(i64, i64, i64)]) -> Vec<Step> {
        let mut clocks = Clocks::default();
        for (monotonic, boot, real) in readings {
            clocks.add(Reading {
                monotonic: *monotonic as u64,
                boot: *boot as u64,
                real: *real,
            });
        }
        clocks.steps.iter().map(|(_, step)| *step).collect()
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_a_machine_that_slept() {
        let quiet = [(S, S, 9 * S), (2 * S, 2 * S, 10 * S + S / 20)];
        assert_eq!(steps(&quiet), []);
        let set = [
            (S, S, 9 * S),
            (2 * S, 2 * S, 3610 * S),
            (3 * S, 3 * S, 11 * S),
        ];
        assert_eq!(steps(&set), [Step::Set(3600 * S), Step::Set(-3600 * S)]);
        let slept = [(S, S, 9 * S), (2 * S, 62 * S, 70 * S)];
        assert_eq!(steps(&slept), [Step::Slept(60 * S)]);
        let both = [(S, S, 9 * S), (2 * S, 62 * S, 71 * S)];
        assert_eq!(steps(&both), [Step::Slept(60 * S), Step::Set(S)]);
    }

    #[test]
    fn readings_that_cannot_be_stay_bounded() {
        let wild = [
            (i64::MIN, i64::MAX, i64::MIN),
            (0, 0, i64::MAX),
            (-1, 5, i64::MIN),
        ];
        let many: Vec<_> = wild.iter().copied().cycle().take(10_000).collect();
        assert!(steps(&many).len() <= STEPS_MAX);
    }
}
