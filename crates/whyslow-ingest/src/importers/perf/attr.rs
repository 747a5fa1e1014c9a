//! `perf_event_attr`: the configuration of an event, which determines the layout of its records.

use crate::importers::bytes::Bytes;

pub(super) const IP: u64 = 1;
pub(super) const TID: u64 = 1 << 1;
pub(super) const TIME: u64 = 1 << 2;
pub(super) const ADDR: u64 = 1 << 3;
pub(super) const READ: u64 = 1 << 4;
pub(super) const CALLCHAIN: u64 = 1 << 5;
pub(super) const ID: u64 = 1 << 6;
pub(super) const CPU: u64 = 1 << 7;
pub(super) const PERIOD: u64 = 1 << 8;
pub(super) const STREAM_ID: u64 = 1 << 9;
pub(super) const RAW: u64 = 1 << 10;
pub(super) const IDENTIFIER: u64 = 1 << 16;

const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_CLOCK: u64 = 1 << 25;

/// Values of `attr.type`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
pub(super) const TRACEPOINT: u32 = 2;

/// Size of the first version of the structure.
const SIZE_MIN: usize = 64;
const CLOCK_AT: usize = 92;

#[derive(Debug, Clone, Default)]
pub(super) struct Attr {
    pub(super) kind: u32,
    pub(super) config: u64,
    pub(super) period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    /// Clock of the timestamps, if one was chosen (`perf record -k`).
    pub(super) clock: Option<i32>,
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
}

impl Attr {
    /// Parses any version of the structure; its size is part of it.
    pub(super) fn parse(bytes: &[u8], is_big_endian: bool) -> Option<Self> {
        if bytes.len() < SIZE_MIN {
            return None;
        }
        let mut all = Bytes::new(bytes, is_big_endian);
        let kind = all.u32()?;
        let _size = all.u32()?;
        let mut attr = Self {
            kind,
            config: all.u64()?,
            period: all.u64()?,
            sample_type: all.u64()?,
            read_format: all.u64()?,
            ..Self::default()
        };
        // A 64-bit bit field: the order of bits depends on the byte order.
        let flags = all.u64()?;
        attr.flags = if is_big_endian {
            flags.reverse_bits()
        } else {
            flags
        };
        if attr.flags & FLAG_CLOCK != 0
            && let Some(rest) = bytes.get(CLOCK_AT..)
        {
            attr.clock = Bytes::new(rest, is_big_endian).i32();
        }
        Some(attr)
    }

    pub(super) fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Whether forks and exits are recorded.
    pub(super) fn has_tasks(&self) -> bool {
        self.flags & FLAG_TASK != 0
    }

    /// Whether context switches are recorded (`perf record --switch-events`).
    pub(super) fn has_switches(&self) -> bool {
        self.flags & FLAG_CONTEXT_SWITCH != 0
    }

    /// Whether non-sample records contain time and thread, too.
    pub(super) fn has_sample_ids(&self) -> bool {
        self.flags & FLAG_SAMPLE_ID_ALL != 0
    }

    /// Whether it samples running code at regular intervals.
    pub(super) fn is_of_cpu(&self) -> bool {
        const CYCLES: u64 = 0;
        const CLOCKS: [u64; 2] = [0, 1];
        // The upper half selects the kind of CPU on hybrid machines.
        const EVENT: u64 = 0xffff_ffff;
        match self.kind {
            HARDWARE => self.config & EVENT == CYCLES,
            SOFTWARE => CLOCKS.contains(&self.config),
            _ => self.name.contains("cycles") || self.name.contains("cpu-clock"),
        }
    }

    /// Sampling interval, if known.
    pub(super) fn interval(&self) -> Option<i64> {
        let period = i64::try_from(self.period)
            .ok()
            .filter(|period| *period > 0)?;
        if self.flags & FLAG_FREQUENCY != 0 {
            return Some(1_000_000_000 / period).filter(|ns| *ns > 0);
        }
        // Software clocks count nanoseconds.
        (self.kind == SOFTWARE && self.is_of_cpu()).then_some(period)
    }

    /// Offset of the time from the start of a sample's body, and from the end of other records.
    pub(super) fn time_in_sample(&self) -> Option<usize> {
        if !self.has(TIME) {
            return None;
        }
        let before = [IDENTIFIER, IP, TID];
        Some(8 * before.iter().filter(|field| self.has(**field)).count())
    }

    /// Offset of the id in samples that do not start with it.
    pub(super) fn id_in_sample(&self) -> Option<usize> {
        if !self.has(ID) {
            return None;
        }
        let before = [IP, TID, TIME, ADDR];
        Some(8 * before.iter().filter(|field| self.has(**field)).count())
    }

    pub(super) fn time_from_end(&self) -> Option<usize> {
        if !self.has(TIME) || !self.has_sample_ids() {
            return None;
        }
        let from = [TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        Some(8 * from.iter().filter(|field| self.has(**field)).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_between_samples() {
        let attr = |kind, flags, period| Attr {
            kind,
            period,
            flags,
            ..Attr::default()
        };
        let of = |attr: Attr| (attr.is_of_cpu(), attr.interval());
        assert_eq!(
            of(attr(SOFTWARE, FLAG_FREQUENCY, 100)),
            (true, Some(10_000_000))
        );
        assert_eq!(of(attr(SOFTWARE, 0, 5_000)), (true, Some(5_000)));
        assert_eq!(of(attr(HARDWARE, 0, 5_000)), (true, None));
        assert_eq!(of(attr(HARDWARE, FLAG_FREQUENCY, u64::MAX)), (true, None));
        assert_eq!(of(attr(TRACEPOINT, 0, 1)), (false, None));
        // Cycles of the performance and efficiency cores; instructions.
        let hardware = |config| Attr {
            kind: HARDWARE,
            config,
            ..Attr::default()
        };
        assert!(hardware(0x4_0000_0000).is_of_cpu());
        assert!(hardware(0xa_0000_0000).is_of_cpu());
        assert!(!hardware(0x4_0000_0001).is_of_cpu());
        assert!(Attr::parse(&[0; 63], false).is_none());
        assert!(Attr::parse(&[0; 64], false).is_some());
    }
}
