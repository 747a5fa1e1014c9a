//! The time axis of the recording.

use whyslow_store::RecordingInfo;

/// Start and length of a recording, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) begin: i64,
    pub(crate) length: u64,
}

impl Axis {
    pub(crate) fn of(info: &RecordingInfo) -> Self {
        let end = info.end_ns.max(info.begin_ns);
        Self {
            begin: info.begin_ns,
            length: end.wrapping_sub(info.begin_ns) as u64,
        }
    }

    /// `ts` in ns since the start, clamped to the recording.
    #[inline]
    pub(crate) fn offset(self, ts: i64) -> u64 {
        if ts <= self.begin {
            0
        } else {
            (ts.wrapping_sub(self.begin) as u64).min(self.length)
        }
    }

    #[inline]
    pub(crate) fn holds(self, ts: i64) -> bool {
        ts >= self.begin && ts.wrapping_sub(self.begin) as u64 <= self.length
    }

    /// The part of an interval inside the recording. Without `ts_end`, the interval lasts until the
    /// end of the recording.
    #[inline]
    pub(crate) fn clip(self, ts: i64, ts_end: Option<i64>) -> Option<(u64, u64)> {
        let begin = self.offset(ts);
        let end = ts_end.map_or(self.length, |end| self.offset(end.max(ts)));
        (end > begin || self.holds(ts)).then_some((begin, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_cut_off() {
        let axis = Axis {
            begin: -10,
            length: 20,
        };
        let check = |ts, end, clipped| assert_eq!(axis.clip(ts, end), clipped, "{ts} {end:?}");
        check(-10, Some(10), Some((0, 20)));
        check(-12, Some(3), Some((0, 13)));
        check(5, Some(i64::MAX), Some((15, 20)));
        check(5, None, Some((15, 20)));
        check(5, Some(i64::MIN), Some((15, 15)));
        check(10, Some(10), Some((20, 20)));
        check(10, None, Some((20, 20)));
        check(11, None, None);
        check(-12, Some(-10), None);
        check(i64::MIN, Some(-11), None);
        check(i64::MIN, None, Some((0, 20)));
    }
}
