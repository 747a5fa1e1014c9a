//! Values at a position in a window.

use super::class::ByteOrder;
use super::plan::{Load, LoadKind, Number, OddLoad, Plan};
use super::slot::{Slot, SlotKind};

/// Length of the part of a text that is searched for the terminator inline.
const SHORT_TEXT_BYTES: usize = 16;

/// Bit positions of the elements of an array.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) count: usize,
}

/// The elements of an array, sign-extended to 64 bits.
#[inline]
pub(super) fn append_numbers(
    plan: &Plan,
    window: &[u8],
    places: Places,
    load: &Load,
    column: &mut Vec<u64>,
) {
    let places = (0..places.count).map(|index| places.first + index * places.stride);
    let (bits, unused) = (u32::from(load.bits), unused_bits(load));
    match load.kind {
        LoadKind::Little => column.extend(
            places.map(|at| sign_extended(unsigned_little(window, at, bits), unused) as u64),
        ),
        LoadKind::Big => column
            .extend(places.map(|at| sign_extended(unsigned_big(window, at, bits), unused) as u64)),
        _ => column.extend(places.map(|at| other_slot(plan, window, at, load).bits)),
    }
}

/// An integer within one word, sign-extended if its class is signed.
#[inline]
pub(super) fn integer(window: &[u8], at: usize, load: &Load) -> u64 {
    let bits = u32::from(load.bits);
    let value = if load.kind == LoadKind::Little {
        unsigned_little(window, at, bits)
    } else {
        unsigned_big(window, at, bits)
    };
    sign_extended(value, unused_bits(load)) as u64
}

/// Number of bits above a signed integer.
#[inline]
fn unused_bits(load: &Load) -> u32 {
    if load.gives == SlotKind::Signed {
        64 - u32::from(load.bits)
    } else {
        0
    }
}

/// Everything except integers within one word.
pub(super) fn other_slot(plan: &Plan, window: &[u8], at: usize, load: &Load) -> Slot {
    let (begin, extent) = (at / 8, load.extent as usize);
    match load.kind {
        LoadKind::Little | LoadKind::Big => Slot {
            kind: load.gives,
            len: 0,
            bits: integer(window, at, load),
        },
        LoadKind::Text => bytes_slot(window, begin, extent, Some(1)),
        LoadKind::WideText => bytes_slot(window, begin, extent, Some(usize::from(load.bits))),
        LoadKind::Blob => bytes_slot(window, begin, extent, None),
        LoadKind::Odd => odd(window, at, plan.odd[load.extent as usize]),
    }
}

/// Bytes, or text up to a zero unit or the end of its field.
#[inline]
pub(super) fn bytes_slot(
    window: &[u8],
    begin: usize,
    extent: usize,
    unit_bytes: Option<usize>,
) -> Slot {
    let (kind, len) = match unit_bytes {
        None => (SlotKind::Bytes, extent),
        Some(unit) => {
            let len = zero_unit(&window[begin..begin + extent], unit);
            (SlotKind::Str, len.unwrap_or(extent))
        }
    };
    Slot {
        kind,
        len: len as u32,
        bits: begin as u64,
    }
}

/// Index of the first unit whose bytes are all zero.
#[inline]
pub(super) fn zero_unit(bytes: &[u8], unit_bytes: usize) -> Option<usize> {
    if unit_bytes == 1 {
        return first_zero(bytes);
    }
    let is_zero = |unit: &[u8]| unit.iter().all(|&byte| byte == 0);
    bytes
        .chunks_exact(unit_bytes)
        .position(is_zero)
        .map(|units| units * unit_bytes)
}

/// Thread names and similar texts are short; longer ones are searched by a call.
#[inline]
pub(super) fn first_zero(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut at = 0;
    while at < SHORT_TEXT_BYTES
        && let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk)
    {
        let word = u64::from_le_bytes(*word);
        // The lowest of these bits is that of the first zero; higher ones may be wrong.
        let zeros = word.wrapping_sub(ONES) & !word & TOPS;
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = &bytes[at..];
    if rest.is_empty() {
        return None;
    }
    memchr::memchr(0, rest).map(|len| at + len)
}

#[inline]
fn word(window: &[u8], byte: usize) -> [u8; 8] {
    let bytes = &window[byte..byte + 8];
    bytes
        .try_into()
        .expect("a slice of eight bytes is eight bytes")
}

/// The integer of `bits` (1 to 64) bits in the eight bytes at bit `at`.
#[inline]
pub(super) fn unsigned_little(window: &[u8], at: usize, bits: u32) -> u64 {
    let shifted = u64::from_le_bytes(word(window, at / 8)) >> (at % 8);
    let unused = 64 - bits;
    shifted << unused >> unused
}

#[inline]
pub(super) fn unsigned_big(window: &[u8], at: usize, bits: u32) -> u64 {
    u64::from_be_bytes(word(window, at / 8)) << (at % 8) >> (64 - bits)
}

#[inline]
pub(super) fn sign_extended(value: u64, unused: u32) -> i64 {
    (value << unused) as i64 >> unused
}

/// Integers larger than a word, floats and bits in unusual order.
#[cold]
fn odd(window: &[u8], at: usize, class: OddLoad) -> Slot {
    let bytes: [u8; 16] = window[at / 8..at / 8 + 16]
        .try_into()
        .expect("a slice of sixteen bytes is sixteen bytes");
    let (shift, bits) = ((at % 8) as u32, class.bits);
    let mut value = match class.byte_order {
        ByteOrder::Little => (u128::from_le_bytes(bytes) >> shift) as u64,
        ByteOrder::Big => (u128::from_be_bytes(bytes) << shift >> (128 - bits)) as u64,
    };
    value = value << (64 - bits) >> (64 - bits);
    if class.reversed {
        value = value.reverse_bits() >> (64 - bits);
    }
    let (kind, bits) = match class.number {
        Number::Unsigned => (SlotKind::Unsigned, value),
        Number::Signed => (SlotKind::Signed, sign_extended(value, 64 - bits) as u64),
        Number::Float => match bits {
            16 => (SlotKind::Float, half(value as u16).to_bits()),
            32 => (
                SlotKind::Float,
                f64::from(f32::from_bits(value as u32)).to_bits(),
            ),
            64 => (SlotKind::Float, value),
            _ => return Slot::ABSENT,
        },
    };
    Slot { kind, len: 0, bits }
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::first_zero;

    #[test]
    fn the_first_zero_is_found_wherever_it_is() {
        for len in 0..40 {
            for at in 0..len {
                for before in [1, 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![before; len];
                    bytes[at] = 0;
                    bytes[at + 1..].fill(1);
                    assert_eq!(first_zero(&bytes), Some(at), "{before} {len}");
                }
            }
            assert_eq!(first_zero(&vec![0x80; len]), None);
        }
    }
}
