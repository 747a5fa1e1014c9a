//! `checksums`: CRCs of all blocks of all table files.
//!
//! A Parquet decoder trusts its input: a flipped bit in compressed numbers becomes other numbers,
//! and one in a page header may even abort the program. Parquet has page checksums, but our writer
//! library does not write them. So files are checksummed in blocks of 16 KiB, and a block that
//! differs is not decoded.
//!
//! Layout, integers little-endian: the eight bytes `WSLSUMS1`; the number of files (4 bytes); for
//! each file the length of its name (2), its name, its size (8), and a CRC-32 (IEEE, 4) of each
//! block, of which the last may be shorter; at the end a CRC-32 (4) of all preceding bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

pub(crate) const FILE_NAME: &str = "checksums";
pub(crate) const BLOCK_BYTES: u64 = 16 << 10;
const MAGIC: &[u8; 8] = b"WSLSUMS1";

/// Checksums of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    pub(crate) bytes: u64,
    blocks: Vec<u32>,
}

/// By file name.
pub(crate) type ByFile = BTreeMap<String, Arc<Checksums>>;

impl Checksums {
    /// Whether this is the original content of the block.
    pub(crate) fn fits(&self, block: u64, content: &[u8]) -> bool {
        let expected = usize::try_from(block)
            .ok()
            .and_then(|block| self.blocks.get(block));
        expected == Some(&crc32fast::hash(content))
    }
}

/// A writer that computes checksums of everything written.
pub(crate) struct Summing<W> {
    inner: W,
    block: crc32fast::Hasher,
    sums: Checksums,
}

impl<W: Write> Summing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            block: crc32fast::Hasher::new(),
            sums: Checksums::default(),
        }
    }

    pub(crate) fn finish(mut self) -> (W, Checksums) {
        if !self.sums.bytes.is_multiple_of(BLOCK_BYTES) {
            self.sums.blocks.push(self.block.finalize());
        }
        (self.inner, self.sums)
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        let mut rest = &buffer[..written];
        while !rest.is_empty() {
            let room = (BLOCK_BYTES - self.sums.bytes % BLOCK_BYTES) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.block.update(now);
            self.sums.bytes += now.len() as u64;
            if self.sums.bytes.is_multiple_of(BLOCK_BYTES) {
                self.sums
                    .blocks
                    .push(std::mem::take(&mut self.block).finalize());
            }
            rest = later;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub(crate) fn encode(files: &ByFile) -> Vec<u8> {
    let mut encoded = MAGIC.to_vec();
    encoded.extend((files.len() as u32).to_le_bytes());
    for (name, sums) in files {
        encoded.extend((name.len() as u16).to_le_bytes());
        encoded.extend(name.as_bytes());
        encoded.extend(sums.bytes.to_le_bytes());
        for block in &sums.blocks {
            encoded.extend(block.to_le_bytes());
        }
    }
    let all = crc32fast::hash(&encoded);
    encoded.extend(all.to_le_bytes());
    encoded
}

/// `None` if it is damaged.
pub(crate) fn decode(encoded: &[u8]) -> Option<ByFile> {
    let (content, all) = encoded.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*all) {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    let count = u32::from_le_bytes(take(&mut rest)?);
    let mut files = ByFile::new();
    for _ in 0..count {
        let length = usize::from(u16::from_le_bytes(take(&mut rest)?));
        let (name, after) = rest.split_at_checked(length)?;
        rest = after;
        let bytes = u64::from_le_bytes(take(&mut rest)?);
        let blocks = usize::try_from(bytes.div_ceil(BLOCK_BYTES)).ok()?;
        let (sums, after) = rest.split_at_checked(blocks.checked_mul(4)?)?;
        rest = after;
        let blocks = sums
            .as_chunks::<4>()
            .0
            .iter()
            .map(|sum| u32::from_le_bytes(*sum))
            .collect();
        let name = std::str::from_utf8(name).ok()?.to_owned();
        files.insert(name, Arc::new(Checksums { bytes, blocks }));
    }
    rest.is_empty().then_some(files)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of(content: &[u8], step: usize) -> Checksums {
        let mut summing = Summing::new(Vec::new());
        for piece in content.chunks(step) {
            summing.write_all(piece).expect("writing to a vector");
        }
        let (written, sums) = summing.finish();
        assert_eq!(written, content);
        sums
    }

    #[test]
    fn sums_do_not_depend_on_how_it_was_written() {
        for length in [0, 1, 16_383, 16_384, 16_385, 50_000, 65_536] {
            let content: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
            let sums = sums_of(&content, 70_000);
            assert_eq!(sums, sums_of(&content, 7));
            assert_eq!(sums.bytes, u64::from(length));
            for (block, content) in content.chunks(BLOCK_BYTES as usize).enumerate() {
                assert!(sums.fits(block as u64, content));
                assert!(!sums.fits(block as u64 + 1, content));
            }
        }
    }

    #[test]
    fn any_change_of_the_sums_themselves_is_noticed() {
        let files = ByFile::from([
            ("a".to_owned(), Arc::new(sums_of(&vec![1; 40_000], 999))),
            ("b".to_owned(), Arc::new(sums_of(&[], 1))),
        ]);
        let encoded = encode(&files);
        assert_eq!(decode(&encoded), Some(files));
        for at in 0..encoded.len() {
            assert_eq!(decode(&encoded[..at]), None, "cut at {at}");
            let mut changed = encoded.clone();
            changed[at] ^= 4;
            assert_eq!(decode(&changed), None, "changed at {at}");
        }
    }
}
