//! Parquet's DELTA_BINARY_PACKED: differences of consecutive values, packed in small blocks.

use super::hybrid::put_varint;

const BLOCK: usize = 128;
const MINI_BLOCKS: usize = 4;
const MINI_BLOCK: usize = BLOCK / MINI_BLOCKS;

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// Encodes integers. Those of a 32-bit column have 32-bit differences, which wrap.
pub(crate) fn put_delta(out: &mut Vec<u8>, values: &[i64], is_32_bit: bool) {
    put_varint(out, BLOCK as u64);
    put_varint(out, MINI_BLOCKS as u64);
    put_varint(out, values.len() as u64);
    let Some(first) = values.first() else {
        return put_varint(out, 0);
    };
    put_varint(out, zigzag(*first));
    let difference = |pair: &[i64]| {
        let difference = pair[1].wrapping_sub(pair[0]);
        if is_32_bit {
            i64::from(difference as i32)
        } else {
            difference
        }
    };
    let mut deltas = [0_i64; BLOCK];
    for begin in (0..values.len() - 1).step_by(BLOCK) {
        let length = BLOCK.min(values.len() - 1 - begin);
        let pairs = values[begin..=begin + length].windows(2);
        for (delta, pair) in deltas.iter_mut().zip(pairs) {
            *delta = difference(pair);
        }
        put_block(out, &deltas[..length], is_32_bit);
    }
}

fn put_block(out: &mut Vec<u8>, deltas: &[i64], is_32_bit: bool) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    let mut above = [0_u64; BLOCK];
    for (above, delta) in above.iter_mut().zip(deltas) {
        let distance = delta.wrapping_sub(least).cast_unsigned();
        *above = if is_32_bit {
            u64::from(distance as u32)
        } else {
            distance
        };
    }
    put_varint(out, zigzag(least));
    let mini_blocks = above.chunks(MINI_BLOCK);
    let width = |mini_block: &[u64]| {
        let all = mini_block.iter().fold(0, |all, value| all | value);
        u64::BITS - all.leading_zeros()
    };
    let mut widths = [0_u32; MINI_BLOCKS];
    for (to, mini_block) in widths.iter_mut().zip(mini_blocks.clone()) {
        *to = width(mini_block);
    }
    out.extend(widths.map(|width| width as u8));
    let used = deltas.len().div_ceil(MINI_BLOCK);
    for (mini_block, width) in mini_blocks.zip(widths).take(used) {
        put_mini_block(out, mini_block, width);
    }
}

/// 32 values of `width` bits: `4 * width` bytes.
fn put_mini_block(out: &mut Vec<u8>, values: &[u64], width: u32) {
    let (mut word, mut bits) = (0_u128, 0);
    for value in values {
        word |= u128::from(*value) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= 64;
            bits -= 64;
        }
    }
    let bytes = bits.div_ceil(8) as usize;
    out.extend_from_slice(&(word as u64).to_le_bytes()[..bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_formats_description_come_out_as_there() {
        // 1, 2, 3, 4, 5: first value 1, minimum difference 1, no bits needed.
        let mut out = Vec::new();
        put_delta(&mut out, &[1, 2, 3, 4, 5], false);
        assert_eq!(out, [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);

        // 7, 5, 3, 1, 2, 3, 4, 5: differences -2 -2 -2 1 1 1 1; minus the minimum 0 0 0 3 3 3 3.
        let mut out = Vec::new();
        put_delta(&mut out, &[7, 5, 3, 1, 2, 3, 4, 5], false);
        let expected = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        assert_eq!(out[..12], expected);
        assert_eq!(out[12..], [0; 6]);
    }

    #[test]
    fn no_value_and_one_value_have_no_block() {
        let mut out = Vec::new();
        put_delta(&mut out, &[], false);
        assert_eq!(out, [128, 1, 4, 0, 0]);
        let mut out = Vec::new();
        put_delta(&mut out, &[-1], false);
        assert_eq!(out, [128, 1, 4, 1, 1]);
    }
}
