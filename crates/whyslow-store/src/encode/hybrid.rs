//! Parquet's hybrid of run-length encoding and bit packing, for dictionary indices and for nulls.

use arrow_buffer::BooleanBuffer;

/// Minimum length of a run: the format packs literals in groups of eight.
const RUN_MIN: usize = 8;

/// Bits needed for all numbers below `distinct`.
pub(crate) fn bits_for(distinct: usize) -> u32 {
    match distinct {
        0 | 1 => 0,
        more => (more - 1).ilog2() + 1,
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Packs eight numbers of `width` bits into `width` bytes, least significant first.
#[inline]
fn pack_group(out: &mut Vec<u8>, group: [u32; 8], width: u32) {
    if width <= 16 {
        let mut word = 0_u128;
        for (place, value) in (0..).zip(group) {
            word |= u128::from(value) << (place * width);
        }
        out.extend_from_slice(&word.to_le_bytes()[..width as usize]);
    } else {
        let half = |values: &[u32]| {
            let places = (0..).zip(values);
            places.fold(0, |word, (place, value)| {
                word | u128::from(*value) << (place * width)
            })
        };
        let (low, high) = (half(&group[..4]), half(&group[4..]));
        let low_bits = 4 * width;
        let first = low | high.checked_shl(low_bits).unwrap_or(0);
        let rest = high >> (128 - low_bits);
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&first.to_le_bytes());
        bytes[16..].copy_from_slice(&rest.to_le_bytes());
        out.extend_from_slice(&bytes[..width as usize]);
    }
}

fn put_literals(out: &mut Vec<u8>, values: &[u32], width: u32) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    out.reserve(groups * width as usize);
    let (full, rest) = values.as_chunks::<8>();
    for group in full {
        pack_group(out, *group, width);
    }
    if !rest.is_empty() {
        let mut group = [0; 8];
        group[..rest.len()].copy_from_slice(rest);
        pack_group(out, group, width);
    }
}

fn put_run(out: &mut Vec<u8>, length: usize, value: u32, width: u32) {
    put_varint(out, (length as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Encodes numbers below 2^`width`.
pub(crate) fn put_indices(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let mut literals = 0; // start of the pending literals
    let mut at = 0;
    while at < values.len() {
        let value = values[at];
        let same = values[at..].iter().take_while(|next| **next == value);
        let run = same.count();
        // Literals before a run fill up their last group with values of the run.
        let missing = (at - literals).next_multiple_of(8) - (at - literals);
        if run >= RUN_MIN + missing {
            put_literals(out, &values[literals..at + missing], width);
            put_run(out, run - missing, value, width);
            literals = at + run;
        }
        at += run;
    }
    put_literals(out, &values[literals..], width);
}

/// Definition levels of a flat column: 1 for a value. `valid` is `None` if there are no nulls.
pub(crate) fn put_levels(out: &mut Vec<u8>, rows: usize, valid: Option<&BooleanBuffer>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match valid {
        None => put_run(out, rows, 1, 1),
        Some(valid) if valid.count_set_bits() == 0 => put_run(out, rows, 0, 1),
        Some(valid) => {
            put_varint(out, (rows.div_ceil(8) as u64) << 1 | 1);
            // A packed run has the bit order of a bitmap.
            let chunks = valid.bit_chunks();
            let bytes = out.len() + rows.div_ceil(8);
            for word in chunks.iter_padded() {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.truncate(bytes);
        }
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_hold_every_index() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 256, 257].map(bits_for),
            [0, 0, 1, 2, 2, 3, 8, 9]
        );
    }

    #[test]
    fn runs_take_from_literals_only_what_these_need() {
        // The example of the format specification: 0 to 7 in three bits.
        let mut out = Vec::new();
        put_indices(&mut out, &[0, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);

        let mut out = Vec::new();
        put_indices(&mut out, &[5; 100], 3);
        assert_eq!(out, [200, 1, 5]);

        let mut values = vec![1, 2, 3];
        values.extend([9; 20]);
        values.push(4);
        let mut out = Vec::new();
        put_indices(&mut out, &values, 8);
        let expected = [3, 1, 2, 3, 9, 9, 9, 9, 9, 30, 9, 3, 4, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(out, expected);
    }
}
