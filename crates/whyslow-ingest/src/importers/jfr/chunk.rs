//! Chunks: their start and end, even if their headers are wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use whyslow_model::Ns;

pub(super) const MAGIC: &[u8; 4] = b"FLR\0";
/// Size of a header.
pub(super) const HEADER_BYTES: usize = 68;

/// Times and durations above this (the year 2116) are invalid, and their sums would overflow.
const TIME_MAX: Ns = 1 << 62;
const NS: i64 = 1_000_000_000;

/// Header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) major: u16,
    pub(super) minor: u16,
    pub(super) size: i64,
    pub(super) pools_at: i64,
    pub(super) metadata_at: i64,
    pub(super) start_ns: Ns,
    pub(super) start_ticks: i64,
    pub(super) ticks_per_second: i64,
    /// Integers are LEB128: all writers do so, although it is optional.
    pub(super) is_compressed: bool,
}

impl Header {
    /// From the first bytes of a chunk.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| {
            let field = bytes[at..at + 8].try_into();
            field.map(i64::from_be_bytes).unwrap_or_default()
        };
        (bytes[..4] == *MAGIC).then(|| Self {
            major: short(4),
            minor: short(6),
            size: long(8),
            pools_at: long(16),
            metadata_at: long(24),
            start_ns: long(32),
            start_ticks: long(48),
            ticks_per_second: long(56),
            is_compressed: bytes[67] & 1 != 0,
        })
    }

    /// Whether the chunk is of a supported version and valid.
    pub(super) fn is_valid(&self) -> bool {
        matches!(self.major, 1..=2) && self.ticks_per_second > 0 && self.start_ns >= 0
    }

    /// Converts ticks of its clock to a time.
    #[inline]
    pub(super) fn time(&self, ticks: i64) -> Ns {
        let since = ticks.wrapping_sub(self.start_ticks);
        let ts = self.start_ns.saturating_add(self.span(since));
        ts.clamp(0, TIME_MAX)
    }

    /// Converts ticks to nanoseconds.
    #[inline]
    pub(super) fn span(&self, ticks: i64) -> Ns {
        if self.ticks_per_second == NS {
            return ticks.clamp(-TIME_MAX, TIME_MAX);
        }
        if ticks == 0 {
            return 0;
        }
        // Whole seconds and the rest separately: both fit, and rounding is the same.
        let (seconds, rest) = (ticks / self.ticks_per_second, ticks % self.ticks_per_second);
        match (seconds.checked_mul(NS), rest.checked_mul(NS)) {
            (Some(seconds), Some(rest)) => seconds
                .saturating_add(rest / self.ticks_per_second)
                .clamp(-TIME_MAX, TIME_MAX),
            _ => self.span_wide(ticks),
        }
    }

    #[cold]
    fn span_wide(&self, ticks: i64) -> Ns {
        let ns = i128::from(ticks) * i128::from(NS) / i128::from(self.ticks_per_second);
        ns.clamp(-i128::from(TIME_MAX), i128::from(TIME_MAX)) as i64
    }
}

/// One chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) header: Header,
    /// Its size is right, so its other offsets can be trusted, too.
    pub(super) is_whole: bool,
}

/// Bytes between chunks that belong to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stray {
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// All chunks, and the bytes between them.
pub(super) fn chunks(bytes: &[u8]) -> (Vec<Chunk>, Vec<Stray>) {
    let (mut chunks, mut strays) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let header = Header::read(&bytes[at..]).filter(Header::is_valid);
        let Some(header) = header else {
            let end = next_header(bytes, at + 1).unwrap_or(bytes.len());
            strays.push(Stray { begin: at, end });
            at = end;
            continue;
        };
        let stated_end = usize::try_from(header.size)
            .ok()
            .and_then(|size| at.checked_add(size));
        let stated_end = stated_end.filter(|end| {
            let is_border = *end == bytes.len() || starts_chunk(bytes, *end);
            *end >= at + HEADER_BYTES && is_border
        });
        // Written while it is recorded: until the chunk is complete, its size is a guess.
        let end = stated_end.or_else(|| next_header(bytes, at + HEADER_BYTES));
        chunks.push(Chunk {
            begin: at,
            end: end.unwrap_or(bytes.len()),
            header,
            is_whole: stated_end.is_some() && header.pools_at > 0 && header.metadata_at > 0,
        });
        at = end.unwrap_or(bytes.len());
    }
    (chunks, strays)
}

/// The chunks of a file that consists of complete chunks only; none otherwise.
pub(super) fn whole_chunks(file: &File, bytes: u64) -> io::Result<Option<Vec<Chunk>>> {
    let Ok(bytes) = usize::try_from(bytes) else {
        return Ok(None);
    };
    let (mut chunks, mut at) = (Vec::new(), 0);
    while at < bytes {
        let mut head = [0; HEADER_BYTES];
        if bytes - at < head.len() {
            return Ok(None);
        }
        file.read_exact_at(&mut head, at as u64)?;
        let header = Header::read(&head).filter(Header::is_valid);
        let end = header.and_then(|header| {
            let end = at.checked_add(usize::try_from(header.size).ok()?)?;
            (end >= at + HEADER_BYTES && end <= bytes).then_some((header, end))
        });
        let Some((header, end)) = end else {
            return Ok(None);
        };
        if header.pools_at <= 0 || header.metadata_at <= 0 {
            return Ok(None);
        }
        chunks.push(Chunk {
            begin: at,
            end,
            header,
            is_whole: true,
        });
        at = end;
    }
    Ok(Some(chunks))
}

fn starts_chunk(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at..)
        .and_then(Header::read)
        .is_some_and(|header| header.is_valid())
}

fn next_header(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    memchr::memmem::find_iter(rest, MAGIC)
        .map(|at| from + at)
        .find(|at| starts_chunk(bytes, *at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ticks_become_nanoseconds_exactly(
            ticks in prop_oneof![any::<i64>(), -1i64 << 50..1i64 << 50],
            ticks_per_second in prop_oneof![1..i64::MAX, 1i64..10_000_000_000],
        ) {
            let bytes = [&MAGIC[..], &[0; HEADER_BYTES]].concat();
            let header = Header::read(&bytes).expect("a header");
            let header = Header { ticks_per_second, ..header };
            prop_assert_eq!(header.span(ticks), header.span_wide(ticks));
        }
    }
}
