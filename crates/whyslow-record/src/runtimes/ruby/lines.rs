//! Line of an instruction of MRI: entries, each from a position on, and an index that gives the
//! number of entries up to a position.

/// The index: small positions have a count in seven bits each, nine counts a word; the others have
/// a bit each, counted in blocks of 512.
const SMALL: usize = 54;
const SMALL_BYTES: usize = SMALL / 9 * 8;
const BLOCK: usize = 512;
/// A count of everything before, counts of the first seven words, and the words.
const BLOCK_BYTES: usize = 16 + BLOCK / 8;

/// Bytes of the index for this number of positions.
pub(super) fn index_bytes(positions: usize) -> usize {
    SMALL_BYTES + positions.saturating_sub(SMALL).div_ceil(BLOCK) * BLOCK_BYTES
}

/// Index of the entry of a position.
pub(super) fn entry(index: &[u8], position: usize) -> Option<usize> {
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(index.get(at..)?.first_chunk().copied()?))
    };
    if position < SMALL {
        let count = word(position / 9 * 8)? >> (position % 9 * 7) & 0x7f;
        return usize::try_from(count).ok()?.checked_sub(1);
    }
    let within = position - SMALL;
    let block = SMALL_BYTES + within / BLOCK * BLOCK_BYTES;
    let before = word(block)? & u64::from(u32::MAX);
    let (place, bit) = (within % BLOCK / 64, within % 64);
    let in_block = match place {
        0 => 0,
        _ => word(block + 8)? >> ((place - 1) * 9) & 0x1ff,
    };
    let bits = word(block + 16 + place * 8)? << (63 - bit);
    let count = before + in_block + u64::from(bits.count_ones());
    usize::try_from(count).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of entries that start at these positions.
    fn index(begins: &[usize], positions: usize) -> Vec<u8> {
        let mut bytes = vec![0; index_bytes(positions)];
        let count = |until: usize| begins.iter().filter(|begin| **begin <= until).count() as u64;
        let put = |bytes: &mut Vec<u8>, at: usize, or: u64| {
            let old = u64::from_le_bytes(*bytes[at..].first_chunk().expect("room"));
            bytes[at..at + 8].copy_from_slice(&(old | or).to_le_bytes());
        };
        for small in 0..SMALL {
            put(&mut bytes, small / 9 * 8, count(small) << (small % 9 * 7));
        }
        for at in SMALL..positions {
            let within = at - SMALL;
            let block = SMALL_BYTES + within / BLOCK * BLOCK_BYTES;
            let start = SMALL + within / BLOCK * BLOCK;
            if within.is_multiple_of(BLOCK) {
                put(&mut bytes, block, count(at.wrapping_sub(1)));
                for word in 1..8 {
                    let inside = count(start + word * 64 - 1) - count(start - 1);
                    put(&mut bytes, block + 8, inside << ((word - 1) * 9));
                }
            }
            if begins.contains(&at) {
                put(
                    &mut bytes,
                    block + 16 + within % BLOCK / 64 * 8,
                    1 << (within % 64),
                );
            }
        }
        bytes
    }

    #[test]
    fn each_position_finds_its_entry() {
        let begins = [0, 3, 9, 53, 54, 55, 118, 400, 565, 566, 700, 1080];
        let index = index(&begins, 1200);
        for position in 0..1200 {
            let expected = begins.iter().filter(|begin| **begin <= position).count() - 1;
            assert_eq!(entry(&index, position), Some(expected), "{position}");
        }
        assert_eq!(entry(&index, 1 << 20), None);
        assert_eq!(entry(&[0xff; 3], 1), None);
    }
}
