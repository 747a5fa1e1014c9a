//! Parser for perf records.

use super::attr::{
    ADDR, Attr, CALLCHAIN, CPU, ID, IDENTIFIER, IP, PERIOD, RAW, READ, STREAM_ID, TID, TIME,
};
use crate::importers::bytes::Bytes;

/// Values of `perf_event_header.type`.
pub(super) mod kind {
    pub(in crate::importers::perf) const MMAP: u32 = 1;
    pub(in crate::importers::perf) const LOST: u32 = 2;
    pub(in crate::importers::perf) const COMM: u32 = 3;
    pub(in crate::importers::perf) const EXIT: u32 = 4;
    pub(in crate::importers::perf) const THROTTLE: u32 = 5;
    pub(in crate::importers::perf) const FORK: u32 = 7;
    pub(in crate::importers::perf) const SAMPLE: u32 = 9;
    pub(in crate::importers::perf) const MMAP2: u32 = 10;
    pub(in crate::importers::perf) const LOST_SAMPLES: u32 = 13;
    pub(in crate::importers::perf) const SWITCH_CPU_WIDE: u32 = 15;
    /// From here on, records of the perf tool, not of the kernel.
    pub(in crate::importers::perf) const USER: u32 = 64;
    pub(in crate::importers::perf) const ATTR: u32 = 64;
    pub(in crate::importers::perf) const TRACING_DATA: u32 = 66;
    pub(in crate::importers::perf) const BUILD_ID: u32 = 67;
    pub(in crate::importers::perf) const FINISHED_ROUND: u32 = 68;
    pub(in crate::importers::perf) const AUXTRACE: u32 = 71;
    pub(in crate::importers::perf) const FEATURE: u32 = 80;
    pub(in crate::importers::perf) const COMPRESSED: u32 = 81;
    pub(in crate::importers::perf) const COMPRESSED2: u32 = 83;
}

pub(super) const HEADER_BYTES: usize = 8;

const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) size: u16,
}

impl Header {
    pub(super) fn parse(bytes: [u8; HEADER_BYTES], is_big_endian: bool) -> Option<Self> {
        let mut bytes = Bytes::new(&bytes, is_big_endian);
        Some(Self {
            kind: bytes.u32()?,
            misc: bytes.u16()?,
            size: bytes.u16()?,
        })
    }
}

/// Time, CPU and thread of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Where {
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<i32>,
}

#[derive(Debug, Default)]
pub(super) struct Sample<'b> {
    pub(super) place: Where,
    pub(super) ip: Option<u64>,
    /// Innermost first, with markers between kernel and user frames.
    pub(super) chain: Chain<'b>,
    pub(super) raw: &'b [u8],
}

/// Addresses as encoded in the file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chain<'b> {
    bytes: &'b [u8],
    is_big_endian: bool,
}

impl<'b> Chain<'b> {
    pub(super) fn addresses(self) -> impl Iterator<Item = u64> + use<'b> {
        self.bytes.chunks_exact(8).filter_map(move |bytes| {
            let mut bytes = Bytes::new(bytes, self.is_big_endian);
            bytes.u64()
        })
    }

    pub(super) fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'b> Sample<'b> {
    /// None if the sample is truncated.
    pub(super) fn parse(body: &'b [u8], attr: &Attr, is_big_endian: bool) -> Option<Self> {
        let mut bytes = Bytes::new(body, is_big_endian);
        let mut sample = Self::default();
        if attr.has(IDENTIFIER) {
            bytes.skip(8)?;
        }
        if attr.has(IP) {
            sample.ip = Some(bytes.u64()?);
        }
        if attr.has(TID) {
            sample.place.pid = Some(bytes.i32()?);
            sample.place.tid = Some(bytes.i32()?);
        }
        for field in [TIME, ADDR, ID, STREAM_ID] {
            if attr.has(field) {
                bytes.skip(8)?;
            }
        }
        if attr.has(CPU) {
            sample.place.cpu = Some(bytes.i32()?).filter(|cpu| *cpu >= 0);
            bytes.skip(4)?;
        }
        if attr.has(PERIOD) {
            bytes.skip(8)?;
        }
        if attr.has(READ) {
            skip_read(&mut bytes, attr.read_format)?;
        }
        if attr.has(CALLCHAIN) {
            let count = usize::try_from(bytes.u64()?).ok()?;
            sample.chain = Chain {
                bytes: bytes.take(count.checked_mul(8)?)?,
                is_big_endian,
            };
        }
        if attr.has(RAW) {
            let size = bytes.u32()? as usize;
            sample.raw = bytes.take(size)?;
        }
        Some(sample)
    }
}

fn skip_read(bytes: &mut Bytes<'_>, format: u64) -> Option<()> {
    let has = |flag| usize::from(format & flag != 0);
    let times = has(READ_ENABLED) + has(READ_RUNNING);
    let each = 1 + has(READ_ID) + has(READ_LOST);
    if format & READ_GROUP != 0 {
        let count = usize::try_from(bytes.u64()?).ok()?;
        let words = count.checked_mul(each)?.checked_add(times)?;
        bytes.skip(words.checked_mul(8)?)
    } else {
        bytes.skip(8 * (each + times))
    }
}

impl Where {
    /// From the end of a non-sample record.
    pub(super) fn of_end(body: &[u8], attr: &Attr, is_big_endian: bool) -> Self {
        Self::read_end(body, attr, is_big_endian).unwrap_or_default()
    }

    fn read_end(body: &[u8], attr: &Attr, is_big_endian: bool) -> Option<Self> {
        if !attr.has_sample_ids() {
            return None;
        }
        let fields = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let count = fields.iter().filter(|field| attr.has(**field)).count();
        let begin = body.len().checked_sub(8 * count)?;
        let mut bytes = Bytes::new(&body[begin..], is_big_endian);
        let mut place = Self::default();
        if attr.has(TID) {
            place.pid = Some(bytes.i32()?);
            place.tid = Some(bytes.i32()?);
        }
        for field in [TIME, ID, STREAM_ID] {
            if attr.has(field) {
                bytes.skip(8)?;
            }
        }
        if attr.has(CPU) {
            place.cpu = Some(bytes.i32()?).filter(|cpu| *cpu >= 0);
        }
        Some(place)
    }
}

/// A file mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped<'b> {
    pub(super) pid: i32,
    pub(super) begin: u64,
    pub(super) len: u64,
    /// File offset of the start.
    pub(super) offset: u64,
    /// Device and inode of the file, or its build id: they identify the file.
    pub(super) inode: Option<u64>,
    pub(super) build_id: Option<&'b [u8]>,
    pub(super) path: &'b [u8],
}

impl<'b> Mapped<'b> {
    const MISC_BUILD_ID: u16 = 1 << 14;

    pub(super) fn parse(header: Header, body: &'b [u8], is_big_endian: bool) -> Option<Self> {
        let mut bytes = Bytes::new(body, is_big_endian);
        let mut mapped = Self {
            pid: bytes.i32()?,
            begin: {
                bytes.skip(4)?;
                bytes.u64()?
            },
            len: bytes.u64()?,
            offset: bytes.u64()?,
            inode: None,
            build_id: None,
            path: b"",
        };
        if header.kind == kind::MMAP2 {
            if header.misc & Self::MISC_BUILD_ID != 0 {
                let size = usize::from(bytes.byte()?).min(20);
                bytes.skip(3)?;
                mapped.build_id = Some(&bytes.take(20)?[..size]);
            } else {
                bytes.skip(8)?;
                mapped.inode = Some(bytes.u64()?).filter(|inode| *inode != 0);
                bytes.skip(8)?;
            }
            bytes.skip(8)?;
        }
        mapped.path = bytes.text();
        Some(mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_ends_early_is_none() {
        let attr = Attr {
            sample_type: IP | TID | TIME | CPU | CALLCHAIN | RAW,
            ..Attr::default()
        };
        let mut body = Vec::new();
        for word in [7_u64, 5 << 32 | 4, 1_000, 1, 2, 11, 12] {
            body.extend(word.to_le_bytes());
        }
        body.extend(3_u32.to_le_bytes());
        body.extend(b"abc");
        let sample = Sample::parse(&body, &attr, false).expect("a sample");
        assert_eq!((sample.place.pid, sample.place.tid), (Some(4), Some(5)));
        assert_eq!(sample.place.cpu, Some(1));
        assert_eq!(sample.chain.addresses().collect::<Vec<_>>(), [11, 12]);
        assert_eq!(sample.raw, b"abc");
        for end in 0..body.len() {
            assert!(Sample::parse(&body[..end], &attr, false).is_none(), "{end}");
        }
    }

    #[test]
    fn counts_are_not_believed() {
        let attr = Attr {
            sample_type: CALLCHAIN,
            ..Attr::default()
        };
        assert!(Sample::parse(&u64::MAX.to_le_bytes(), &attr, false).is_none());
        let attr = Attr {
            sample_type: READ,
            read_format: READ_GROUP | READ_ID,
            ..Attr::default()
        };
        assert!(Sample::parse(&u64::MAX.to_le_bytes(), &attr, false).is_none());
    }
}
