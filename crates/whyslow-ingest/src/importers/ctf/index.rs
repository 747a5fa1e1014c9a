//! Index files of LTTng: a cross-check of the stream, never required to read it.
//!
//! `index/STREAM.idx`, all numbers big-endian: a header of four u32 (magic `0xC1F1DCC1`, major,
//! minor, bytes per entry), then one entry per packet: seven u64 (offset in bytes, packet size and
//! content size in bits, begin, end, discarded events, stream class id) and, since version 1.1, two
//! more (stream id, sequence number).

use std::fs;
use std::path::Path;

use super::packet::Packet;

const MAGIC: u32 = 0xC1F1_DCC1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES_MIN: usize = 7 * 8;
const ENTRY_BYTES_MAX: usize = 1 << 12;
/// About a million packets.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// Entries of one index file that were not compared yet.
#[derive(Debug)]
pub(super) struct PacketIndex {
    bytes: Vec<u8>,
    entry_bytes: usize,
    next: usize,
}

impl PacketIndex {
    /// `Ok(None)` if the stream has no index, an error text if its index is unusable.
    pub(super) fn of_stream(stream: &Path) -> Result<Option<PacketIndex>, &'static str> {
        let (Some(folder), Some(name)) = (stream.parent(), stream.file_name()) else {
            return Ok(None);
        };
        let mut file_name = name.to_owned();
        file_name.push(".idx");
        let path = folder.join("index").join(file_name);
        let Ok(about) = fs::metadata(&path) else {
            return Ok(None);
        };
        if about.len() > INDEX_BYTES_MAX {
            return Ok(None);
        }
        let bytes = fs::read(&path).map_err(|_| "unreadable")?;
        PacketIndex::parse(bytes).map(Some)
    }

    fn parse(bytes: Vec<u8>) -> Result<PacketIndex, &'static str> {
        let word = |place: usize| -> Option<u32> {
            let bytes = bytes.get(place * 4..place * 4 + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        if word(0) != Some(MAGIC) {
            return Err("not an index");
        }
        let entry_bytes = word(3).ok_or("truncated header")? as usize;
        if !(ENTRY_BYTES_MIN..=ENTRY_BYTES_MAX).contains(&entry_bytes) {
            return Err("invalid entry size");
        }
        Ok(PacketIndex {
            bytes,
            entry_bytes,
            next: HEADER_BYTES,
        })
    }

    /// Whether the next entry describes this packet.
    pub(super) fn agrees(&mut self, packet: &Packet) -> bool {
        let Some(entry) = self.bytes.get(self.next..self.next + self.entry_bytes) else {
            return false;
        };
        self.next += self.entry_bytes;
        let number = |place: usize| {
            let bytes = entry[place * 8..place * 8 + 8].try_into();
            u64::from_be_bytes(bytes.expect("entries have seven numbers at least"))
        };
        number(0) == packet.begin
            && number(1) == packet.total_bytes * 8
            && number(2) == packet.content_bits
            && packet.begin_cycles.is_none_or(|begin| number(3) == begin)
    }

    /// Whether there are no further entries.
    pub(super) fn is_at_end(&self) -> bool {
        self.next >= self.bytes.len()
    }
}
