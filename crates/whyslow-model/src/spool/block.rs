//! Blocks: written at once, and either complete or absent.

/// `WSPL`
pub const MAGIC: [u8; 4] = *b"WSPL";
/// Size of the head in bytes.
pub const BLOCK_BYTES: usize = 40;
/// A larger payload indicates damage: a recorder writes blocks of a few hundred kilobytes.
pub const PAYLOAD_MAX: u32 = 4 << 20;
/// Name of a spool file: a number and this suffix.
pub const FILE_SUFFIX: &str = ".blocks";

const VERSION: u16 = 1;
/// The payload is compressed with Zstandard.
const COMPRESSED: u16 = 1;
/// The payload contains symbols of addresses, which records of earlier blocks may need.
const NAMES: u16 = 2;

/// Head of a block.
///
/// | bytes | what |
/// |---|---|
/// | 0 | `WSPL` |
/// | 4 | version (1), flags (bit 0: payload compressed with Zstandard; bit 1: it contains symbols of addresses, [`Record::Name`](super::Record::Name)), two bytes each |
/// | 8 | number of the block in the spool, from 0 |
/// | 16 | all events before this time are in this block or an earlier one |
/// | 24 | size of the payload in the file, in bytes |
/// | 28 | size of the uncompressed payload, in bytes |
/// | 32 | number of records |
/// | 36 | CRC-32 of the preceding bytes and of the payload |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Number in the spool, from 0; a gap in the numbers is a lost block.
    pub number: u64,
    /// CLOCK_MONOTONIC in ns: no later block contains a record from before this time.
    pub complete_until: u64,
    /// Size of the payload in the file, in bytes.
    pub payload_bytes: u32,
    /// Size of the uncompressed payload, in bytes.
    pub record_bytes: u32,
    /// Number of records in the payload.
    pub records: u32,
    /// The payload is a Zstandard frame.
    pub is_compressed: bool,
    /// The payload contains [`Kind::Name`](super::Kind::Name) records, which stacks of earlier
    /// blocks may need.
    pub has_names: bool,
    /// CRC-32 (IEEE) of [`Block::head`] and of the payload as it is in the file.
    pub crc: u32,
}

/// Why bytes are not the head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The bytes do not begin with [`MAGIC`].
    #[error("no block starts here")]
    Magic,
    /// Written by a later version.
    #[error("unknown block version {0}")]
    Version(u16),
    /// One of the two sizes exceeds [`PAYLOAD_MAX`], so the head is damaged.
    #[error("impossible block payload size: {0} bytes")]
    Size(u32),
}

impl Block {
    /// The head without its last four bytes; the checksum covers this and the payload.
    pub fn head(&self) -> [u8; BLOCK_BYTES - 4] {
        let mut head = [0; BLOCK_BYTES - 4];
        head[..4].copy_from_slice(&MAGIC);
        head[4..6].copy_from_slice(&VERSION.to_le_bytes());
        let mut flags = if self.is_compressed { COMPRESSED } else { 0 };
        if self.has_names {
            flags |= NAMES;
        }
        head[6..8].copy_from_slice(&flags.to_le_bytes());
        head[8..16].copy_from_slice(&self.number.to_le_bytes());
        head[16..24].copy_from_slice(&self.complete_until.to_le_bytes());
        head[24..28].copy_from_slice(&self.payload_bytes.to_le_bytes());
        head[28..32].copy_from_slice(&self.record_bytes.to_le_bytes());
        head[32..36].copy_from_slice(&self.records.to_le_bytes());
        head
    }

    /// Parses a head. The caller verifies the checksum, because that requires the payload.
    pub fn parse(bytes: &[u8; BLOCK_BYTES]) -> Result<Block, BlockError> {
        if bytes[..4] != MAGIC {
            return Err(BlockError::Magic);
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(BlockError::Version(version));
        }
        let flags = u16::from_le_bytes([bytes[6], bytes[7]]);
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let block = Block {
            number: long(8),
            complete_until: long(16),
            payload_bytes: word(24),
            record_bytes: word(28),
            records: word(32),
            is_compressed: flags & COMPRESSED != 0,
            has_names: flags & NAMES != 0,
            crc: word(36),
        };
        for size in [block.payload_bytes, block.record_bytes] {
            if size > PAYLOAD_MAX {
                return Err(BlockError::Size(size));
            }
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let block = Block {
            number: 7,
            complete_until: u64::MAX - 3,
            payload_bytes: 100,
            record_bytes: 2_000,
            records: 30,
            is_compressed: true,
            has_names: true,
            crc: 0xdead_beef,
        };
        let mut bytes = [0; BLOCK_BYTES];
        bytes[..BLOCK_BYTES - 4].copy_from_slice(&block.head());
        bytes[BLOCK_BYTES - 4..].copy_from_slice(&block.crc.to_le_bytes());
        assert_eq!(Block::parse(&bytes), Ok(block));
        bytes[27] = 0xff;
        assert!(matches!(Block::parse(&bytes), Err(BlockError::Size(_))));
        bytes[4] = 9;
        assert_eq!(Block::parse(&bytes), Err(BlockError::Version(9)));
        bytes[0] = 0;
        assert_eq!(Block::parse(&bytes), Err(BlockError::Magic));
    }
}
