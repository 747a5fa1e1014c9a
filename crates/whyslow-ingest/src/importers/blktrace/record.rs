//! Records of blktrace: 48 bytes, some followed by a payload.

use whyslow_model::event::{BlockFlags, BlockOp};

use crate::importers::bytes::Bytes;

pub(super) const RECORD_BYTES: usize = 48;
/// `ea t` and the version, as one word.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Actions: the lower half of `action`.
pub(super) mod act {
    pub(in crate::importers::blktrace) const QUEUE: u16 = 1;
    pub(in crate::importers::blktrace) const BACK_MERGE: u16 = 2;
    pub(in crate::importers::blktrace) const FRONT_MERGE: u16 = 3;
    pub(in crate::importers::blktrace) const GET_REQUEST: u16 = 4;
    pub(in crate::importers::blktrace) const REQUEUE: u16 = 6;
    pub(in crate::importers::blktrace) const ISSUE: u16 = 7;
    pub(in crate::importers::blktrace) const COMPLETE: u16 = 8;
    pub(in crate::importers::blktrace) const INSERT: u16 = 12;
    pub(in crate::importers::blktrace) const SPLIT: u16 = 13;
    pub(in crate::importers::blktrace) const REMAP: u16 = 15;
    /// Flag: the payload starts with the cgroup of the submitter.
    pub(super) const CGROUP: u16 = 1 << 8;
}

/// Notes, which are not part of a request.
pub(super) mod note {
    pub(in crate::importers::blktrace) const PROCESS: u16 = 0;
    pub(in crate::importers::blktrace) const TIMESTAMP: u16 = 1;
}

/// Categories: the upper half of `action`.
mod category {
    pub(super) const WRITE: u16 = 1 << 1;
    pub(super) const FLUSH: u16 = 1 << 2;
    pub(super) const SYNC: u16 = 1 << 3;
    pub(super) const COMMAND: u16 = 1 << 9;
    pub(super) const NOTIFY: u16 = 1 << 10;
    pub(super) const AHEAD: u16 = 1 << 11;
    pub(super) const META: u16 = 1 << 12;
    pub(super) const DISCARD: u16 = 1 << 13;
    pub(super) const FUA: u16 = 1 << 15;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u32,
    pub(super) time: u64,
    pub(super) sector: u64,
    pub(super) bytes: u32,
    category: u16,
    pub(super) act: u16,
    pub(super) pid: u32,
    pub(super) device: u32,
    pub(super) cpu: u32,
    pub(super) error: u16,
    pub(super) more: u16,
}

/// Byte order of a file that starts with `head`.
pub(super) fn order_of(head: &[u8]) -> Option<bool> {
    let word = head.get(..4)?.try_into().ok()?;
    [false, true].into_iter().find(|is_big_endian| {
        let word = if *is_big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        };
        word == MAGIC | VERSION
    })
}

/// Version of a file that starts with `head`, supported or not.
pub(super) fn version_of(head: &[u8]) -> Option<u32> {
    let word: [u8; 4] = head.get(..4)?.try_into().ok()?;
    let words = [u32::from_le_bytes(word), u32::from_be_bytes(word)];
    let word = words.into_iter().find(|word| word & !0xff == MAGIC)?;
    Some(word & 0xff)
}

impl Record {
    /// None if no record starts here.
    #[inline]
    pub(super) fn parse(bytes: &[u8], is_big_endian: bool) -> Option<Self> {
        let mut bytes = Bytes::new(bytes.get(..RECORD_BYTES)?, is_big_endian);
        if bytes.u32()? != MAGIC | VERSION {
            return None;
        }
        let (sequence, time, sector) = (bytes.u32()?, bytes.u64()?, bytes.u64()?);
        let (size, action) = (bytes.u32()?, bytes.u32()?);
        Some(Self {
            sequence,
            time,
            sector,
            bytes: size,
            category: (action >> 16) as u16,
            act: action as u16,
            pid: bytes.u32()?,
            device: bytes.u32()?,
            cpu: bytes.u32()?,
            error: bytes.u16()?,
            more: bytes.u16()?,
        })
    }

    pub(super) fn size(&self) -> usize {
        RECORD_BYTES + usize::from(self.more)
    }

    pub(super) fn is_note(&self) -> bool {
        self.category & category::NOTIFY != 0
    }

    /// The action without the cgroup flag.
    pub(super) fn act(&self) -> u16 {
        self.act & !act::CGROUP
    }

    /// The payload at the start of `behind`, without the cgroup.
    pub(super) fn payload<'b>(&self, behind: &'b [u8]) -> &'b [u8] {
        const CGROUP_BYTES: usize = 8;
        if self.act & act::CGROUP != 0 {
            behind.get(CGROUP_BYTES..).unwrap_or_default()
        } else {
            behind
        }
    }

    /// A command to the device, which has bytes but no sectors.
    pub(super) fn is_command(&self) -> bool {
        self.category & category::COMMAND != 0
    }

    pub(super) fn sectors(&self) -> i64 {
        i64::from(self.bytes >> 9)
    }

    pub(super) fn flags(&self) -> BlockFlags {
        let has = |bit| self.category & bit != 0;
        let op = if has(category::DISCARD) {
            BlockOp::Discard
        } else if has(category::FLUSH) && self.bytes == 0 {
            BlockOp::Flush
        } else if has(category::WRITE) {
            BlockOp::Write
        } else if self.bytes > 0 {
            BlockOp::Read
        } else {
            BlockOp::Other
        };
        BlockFlags {
            op,
            sync: has(category::SYNC),
            meta: has(category::META),
            ahead: has(category::AHEAD),
            fua: has(category::FUA),
            preflush: has(category::FLUSH) && op != BlockOp::Flush,
            secure: false,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        const NAMES: [&str; 18] = [
            "other",
            "queue",
            "back_merge",
            "front_merge",
            "get_request",
            "sleep_request",
            "requeue",
            "issue",
            "complete",
            "plug",
            "unplug",
            "unplug_timer",
            "insert",
            "split",
            "bounce",
            "remap",
            "abort",
            "driver_data",
        ];
        const NOTES: [&str; 3] = ["process", "timestamp", "message"];
        let names = if self.is_note() {
            &NOTES[..]
        } else {
            &NAMES[..]
        };
        names
            .get(usize::from(self.act()))
            .copied()
            .unwrap_or("other")
    }
}

/// The big-endian number in the payload of a split.
pub(super) fn split_at(payload: &[u8]) -> Option<i64> {
    Bytes::new(payload, true).u64().map(|sector| sector as i64)
}

/// Device and sector of a request before the remap.
pub(super) fn moved_from(payload: &[u8]) -> Option<(i64, i64)> {
    let mut bytes = Bytes::new(payload, true);
    let from = bytes.u32()?;
    let _to = bytes.u32()?;
    Some((i64::from(from), bytes.u64()? as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells_the_order() {
        assert_eq!(order_of(b"\x07tae"), Some(false));
        assert_eq!(order_of(b"eat\x07"), Some(true));
        assert_eq!(order_of(b"eat\x08"), None);
        assert_eq!(version_of(b"eat\x08"), Some(8));
        assert_eq!(version_of(b"\x08tae"), Some(8));
        assert_eq!(version_of(b"tea"), None);
    }

    #[test]
    fn flags_are_those_that_are_printed() {
        let flags = |category, bytes| {
            let record = Record {
                bytes,
                category,
                ..Record::default()
            };
            record.flags().letters()
        };
        assert_eq!(flags(category::WRITE | category::SYNC, 512), "WS");
        assert_eq!(flags(category::AHEAD, 512), "RA");
        assert_eq!(flags(category::FLUSH, 0), "F");
        assert_eq!(
            flags(category::FLUSH | category::WRITE | category::FUA, 512),
            "FWF"
        );
        assert_eq!(flags(category::DISCARD, 512), "D");
        assert_eq!(flags(0, 0), "N");
    }
}
