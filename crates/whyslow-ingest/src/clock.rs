//! Conversion of source clocks to `ts`, and the time zone of the recorded host.

use crate::importers::ctf::class::ClockClass;

/// Relation of a clock to wall-clock time: its value at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClockRelation {
    pub(crate) clock: String,
    pub(crate) frequency: i64,
    pub(crate) value: i64,
    pub(crate) ts: i64,
    pub(crate) shift_ns: i64,
}

impl ClockRelation {
    /// From the clock class of a trace, which declares the zero of the clock. The class includes
    /// the shift.
    pub(crate) fn of(clock: &ClockClass, shift_ns: i64) -> ClockRelation {
        let frequency = i128::from(clock.frequency.max(1));
        let cycles = i128::from(clock.offset_cycles) * 1_000_000_000 / frequency;
        let ts = i128::from(clock.offset_seconds) * 1_000_000_000 + cycles;
        ClockRelation {
            clock: clock.name.clone(),
            frequency: clock.frequency as i64,
            value: 0,
            ts: ts.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            shift_ns,
        }
    }
}

/// Shifts a clock, and thereby the times of its source.
pub(crate) fn shift(clock: &mut ClockClass, shift_ns: i64) {
    let (seconds, ns) = (
        shift_ns.div_euclid(1_000_000_000),
        shift_ns.rem_euclid(1_000_000_000),
    );
    let cycles = i128::from(ns) * i128::from(clock.frequency) / 1_000_000_000;
    clock.offset_seconds = clock.offset_seconds.saturating_add(seconds);
    clock.offset_cycles = clock.offset_cycles.saturating_add(cycles as i64);
}

/// Extracts `+01:00` from `20261121T002844+0100`, the creation time of an LTTng session.
pub(crate) fn zone_of_creation(datetime: &str) -> Option<String> {
    let (_, time) = datetime.split_once('T')?;
    let at = time.find(['+', '-'])?;
    let (sign, digits) = (&time[at..=at], &time[at + 1..]);
    let is_offset = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_offset.then(|| format!("{sign}{}:{}", &digits[..2], &digits[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(frequency: u64, offset_seconds: i64, offset_cycles: i64) -> ClockClass {
        ClockClass {
            name: "monotonic".to_owned(),
            uuid: None,
            description: None,
            frequency,
            offset_seconds,
            offset_cycles,
            precision: None,
            absolute: false,
        }
    }

    #[test]
    fn the_zero_of_a_clock_is_a_moment() {
        let at = |clock: &ClockClass| ClockRelation::of(clock, 0).ts;
        let lttng = clock(1_000_000_000, 0, 1_795_220_913_874_482_625);
        assert_eq!(at(&lttng), 1_795_220_913_874_482_625);
        assert_eq!(at(&clock(1000, 5, -500)), 4_500_000_000);
        let mut moved = clock(1000, 5, 0);
        shift(&mut moved, -1_500_000_000);
        assert_eq!(at(&moved), 3_500_000_000);
    }

    #[test]
    fn the_zone_is_the_offset_of_the_creation_date() {
        let check = |text, zone: Option<&str>| assert_eq!(zone_of_creation(text).as_deref(), zone);
        check("20261121T002844+0000", Some("+00:00"));
        check("20230821T231136-0400", Some("-04:00"));
        check("20230821T231136", None);
        check("yesterday", None);
        check("20230821T231136+4", None);
    }
}
