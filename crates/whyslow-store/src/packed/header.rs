//! The header of a tar archive entry, as far as packed recordings use it: POSIX `ustar`, with a
//! binary size above 33 bits.
//!
//! | bytes | field |
//! |---|---|
//! | 0–99 | name, padded with NUL |
//! | 100–135 | mode, owner, group: octal digits |
//! | 124–135 | size: 11 octal digits, or 0x80 and a big-endian number |
//! | 136–147 | time of last change: 0 |
//! | 148–155 | sum of all bytes of the header, counting these as spaces |
//! | 156 | type: `0` for a file |
//! | 257–264 | `ustar`, NUL, `00` |

use std::ops::Range;

pub(super) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const OWNER: Range<usize> = 108..116;
const GROUP: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const TIME: Range<usize> = 136..148;
const SUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..265;
const USTAR: &[u8; 8] = b"ustar\x0000";
/// The same fields in GNU tar archives.
const GNU: &[u8; 8] = b"ustar  \0";
const PREFIX: Range<usize> = 345..500;
const IS_BINARY: u8 = 0x80;
/// Only for the user, in case the archive is unpacked by hand.
const MODE_OF_FILES: u64 = 0o600;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) bytes: u64,
}

impl Header {
    /// `None` for a name that does not fit.
    pub(super) fn to_block(&self) -> Option<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        let name = self.name.as_bytes();
        block[NAME].get_mut(..name.len())?.copy_from_slice(name);
        put_octal(&mut block[MODE], MODE_OF_FILES);
        put_octal(&mut block[OWNER], 0);
        put_octal(&mut block[GROUP], 0);
        if self.bytes >> 33 == 0 {
            put_octal(&mut block[SIZE], self.bytes);
        } else {
            block[SIZE.start] = IS_BINARY;
            block[SIZE.end - 8..SIZE.end].copy_from_slice(&self.bytes.to_be_bytes());
        }
        put_octal(&mut block[TIME], 0);
        block[KIND] = b'0';
        block[MAGIC].copy_from_slice(USTAR);
        let sum = sum(&block);
        put_octal(&mut block[SUM.start..SUM.end - 1], sum);
        block[SUM.end - 1] = b' ';
        Some(block)
    }

    /// `None` for a block of zeros, which ends an archive.
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Option<Self>, &'static str> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if octal(&block[SUM]) != Some(sum(block)) {
            return Err("missing or damaged entry header");
        }
        if block[MAGIC] != *USTAR && block[MAGIC] != *GNU {
            return Err("not a ustar archive");
        }
        if !matches!(block[KIND], b'0' | 0) {
            return Err("an entry is not a regular file");
        }
        let name = &block[NAME];
        let length = name.iter().position(|byte| *byte == 0);
        let name = std::str::from_utf8(&name[..length.unwrap_or(name.len())]);
        let name = name.map_err(|_| "an entry name is not UTF-8")?;
        if block[PREFIX.start] != 0 && block[MAGIC] == *USTAR {
            return Err("an entry is in a directory");
        }
        let size = &block[SIZE];
        let bytes = if size[0] == IS_BINARY {
            binary(&size[1..])
        } else {
            octal(size)
        };
        Ok(Some(Self {
            name: name.to_owned(),
            bytes: bytes.ok_or("an entry size is not a number")?,
        }))
    }
}

fn sum(block: &[u8; BLOCK]) -> u64 {
    let bytes = block.iter().enumerate();
    bytes
        .map(|(at, byte)| u64::from(if SUM.contains(&at) { b' ' } else { *byte }))
        .sum()
}

/// Digits, followed by a NUL.
fn put_octal(field: &mut [u8], mut value: u64) {
    let (last, digits) = field.split_last_mut().expect("fields are not empty");
    *last = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value & 7) as u8;
        value >>= 3;
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let text = text.trim_matches(|character| matches!(character, '\0' | ' '));
    let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    is_octal
        .then(|| u64::from_str_radix(text, 8).ok())
        .flatten()
}

fn binary(field: &[u8]) -> Option<u64> {
    let (high, low) = field.split_last_chunk::<8>()?;
    high.iter()
        .all(|byte| *byte == 0)
        .then(|| u64::from_be_bytes(*low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(name in "[a-z_.]{1,100}", bytes: u64) {
            let header = Header { name, bytes };
            let block = header.to_block().expect("the name fits");
            prop_assert_eq!(Header::parse(&block), Ok(Some(header)));
        }

        #[test]
        fn a_changed_header_is_noticed(at in 0..BLOCK, change in 1_u8..) {
            let header = Header { name: "manifest.json".into(), bytes: 4711 };
            let mut block = header.to_block().expect("the name fits");
            block[at] ^= change;
            // The checksum field itself has several valid spellings.
            let is_same = Header::parse(&block) == Ok(Some(header));
            prop_assert!(!is_same || SUM.contains(&at));
        }
    }

    #[test]
    fn a_name_that_has_no_room_is_refused() {
        let name = "x".repeat(101);
        assert_eq!(Header { name, bytes: 0 }.to_block(), None);
    }
}
