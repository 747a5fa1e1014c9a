//! Exact conversion of clock cycles to nanoseconds since the epoch.

use super::class::ClockClass;

const NS_PER_S: i128 = 1_000_000_000;

/// `floor((offset + cycles) / frequency)` in nanoseconds, plus the whole seconds of the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CyclesToNs {
    frequency: u64,
    /// The whole seconds of both offsets.
    seconds: i128,
    /// The remainder, less than a second.
    cycles: u64,
    /// At a frequency of 1 GHz: the whole offset. Cycles below `cycles_max` then stay in range.
    fast: Option<Fast>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fast {
    offset_ns: i64,
    cycles_max: u64,
}

impl CyclesToNs {
    pub(super) fn new(clock: &ClockClass) -> CyclesToNs {
        let frequency = clock.frequency.max(1);
        let offset = i128::from(clock.offset_cycles);
        let seconds = i128::from(clock.offset_seconds) + offset.div_euclid(i128::from(frequency));
        let cycles = offset.rem_euclid(i128::from(frequency)) as u64;
        let offset_ns = i64::try_from(seconds * NS_PER_S + i128::from(cycles));
        let fast = match offset_ns {
            Ok(offset_ns) if i128::from(frequency) == NS_PER_S => {
                let cycles_max = i64::MAX as u64 - offset_ns.max(0) as u64;
                Some(Fast {
                    offset_ns,
                    cycles_max,
                })
            }
            _ => None,
        };
        CyclesToNs {
            frequency,
            seconds,
            cycles,
            fast,
        }
    }

    /// Saturates outside the range of 64 bits (before 1677 and after 2262).
    #[inline]
    pub(super) fn ns(&self, cycles: u64) -> i64 {
        match self.fast {
            Some(fast) if cycles <= fast.cycles_max => fast.offset_ns.wrapping_add(cycles as i64),
            _ => self.ns_exact(cycles),
        }
    }

    fn ns_exact(&self, cycles: u64) -> i64 {
        let total = u128::from(self.cycles) + u128::from(cycles);
        let frequency = u128::from(self.frequency);
        let (whole, rest) = match u64::try_from(total) {
            Ok(total) => (
                u128::from(total / self.frequency),
                u128::from(total % self.frequency),
            ),
            Err(_) => (total / frequency, total % frequency),
        };
        let fraction = match u64::try_from(rest * NS_PER_S as u128) {
            Ok(scaled) => u128::from(scaled / self.frequency),
            Err(_) => rest * NS_PER_S as u128 / frequency,
        };
        let ns = (self.seconds + whole as i128) * NS_PER_S + fraction as i128;
        ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(frequency: u64, offset_seconds: i64, offset_cycles: i64) -> CyclesToNs {
        CyclesToNs::new(&ClockClass {
            name: "test".to_owned(),
            uuid: None,
            description: None,
            frequency,
            offset_seconds,
            offset_cycles,
            precision: None,
            absolute: false,
        })
    }

    #[test]
    fn nanosecond_clock_with_an_offset_in_cycles() {
        let clock = clock(1_000_000_000, 0, 1_692_674_311_015_100_587);
        assert_eq!(clock.ns(0), 1_692_674_311_015_100_587);
        assert_eq!(clock.ns(5), 1_692_674_311_015_100_592);
        assert_eq!(clock.ns(u64::MAX), i64::MAX);
    }

    #[test]
    fn negative_offsets_round_down() {
        assert_eq!(clock(1_000_000_000, -1, -5).ns(0), -1_000_000_005);
        assert_eq!(clock(3, 0, -1).ns(0), -333_333_334);
        assert_eq!(clock(3, 0, -1).ns(1), 0);
    }

    #[test]
    fn no_precision_is_lost_at_other_frequencies() {
        // 2.4 GHz over a year: a double would be off by microseconds.
        let cycles = 2_400_000_000 * 31_536_000 + 12;
        assert_eq!(
            clock(2_400_000_000, 10, 0).ns(cycles),
            31_536_010_000_000_005
        );
        assert_eq!(clock(1000, 0, 1500).ns(250), 1_750_000_000);
        assert_eq!(clock(u64::MAX, 0, 0).ns(u64::MAX), 1_000_000_000);
        assert_eq!(clock(0, 0, 0).ns(1), 1_000_000_000);
    }

    #[test]
    fn fast_and_exact_ways_agree() {
        let clock = clock(1_000_000_000, 7, -3);
        for cycles in [0, 1, 999_999_999, 1 << 40, u64::MAX - 8, i64::MAX as u64] {
            assert_eq!(clock.ns(cycles), clock.ns_exact(cycles), "{cycles}");
        }
    }
}
