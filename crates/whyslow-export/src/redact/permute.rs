//! Replaces a value by another one of the same shape, without collisions.
//!
//! A hash truncated to the length of the value would map different numbers to the same one: with
//! four digits, soon. So short values are permuted: a Feistel network with a keyed hash as round
//! function is a permutation of the numbers below a power of four. It is applied until the result
//! is an allowed value (cycle walking), which is a permutation of the allowed values. Values from a
//! range of more than 2^62 are hashed: collisions are less likely than memory errors.

use blake3::{Hasher, OutputReader};

use super::Key;

/// Ranges up to this size are permuted.
const PERMUTED_MAX: u64 = 1 << 62;
/// Four are enough for large ranges; small ones need more.
const ROUNDS: u8 = 8;

/// A random function that cannot be computed without the key.
#[derive(Debug, Clone)]
pub(super) struct Cipher {
    key: Key,
}

impl Cipher {
    pub(super) fn new(key: Key) -> Self {
        Self { key }
    }

    /// Pseudorandom bytes that depend on the key, the purpose and a value.
    pub(super) fn bytes(&self, purpose: &str, value: &[u8]) -> OutputReader {
        let mut hasher = Hasher::new_keyed(self.key.bytes());
        hasher.update(&(purpose.len() as u64).to_le_bytes());
        hasher.update(purpose.as_bytes());
        hasher.update(value);
        hasher.finalize_xof()
    }

    pub(super) fn random(&self, purpose: &str, value: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        self.bytes(purpose, value).fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A permutation of the allowed numbers below `size`, of which `value` is one.
    pub(super) fn number(
        &self,
        purpose: &str,
        (value, size): (u64, u64),
        is_wanted: impl Fn(u64) -> bool,
    ) -> u64 {
        if size <= 1 {
            return value;
        }
        let bits = u64::BITS - (size - 1).leading_zeros();
        let half = bits.div_ceil(2);
        let mut at = value;
        loop {
            at = self.shuffle(purpose, at, half);
            // Terminates, since the cycle leads back to the value.
            if at < size && is_wanted(at) || at == value {
                return at;
            }
        }
    }

    fn shuffle(&self, purpose: &str, value: u64, half: u32) -> u64 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (value >> half, value & mask);
        for round in 0..ROUNDS {
            let mut block = [0; 10];
            block[..8].copy_from_slice(&right.to_le_bytes());
            (block[8], block[9]) = (round, half as u8);
            let mixed = left ^ (self.random(purpose, &block) & mask);
            (left, right) = (right, mixed);
        }
        left << half | right
    }

    /// The same for a row of digits, each below its own radix.
    pub(super) fn digits(
        &self,
        purpose: &str,
        radixes: &[u32],
        digits: &mut [u32],
        is_wanted: impl Fn(&[u32]) -> bool,
    ) {
        let multiply = |size: u64, radix: &u32| {
            size.checked_mul(u64::from(*radix))
                .filter(|size| *size <= PERMUTED_MAX)
        };
        match radixes.iter().try_fold(1, multiply) {
            Some(size) => {
                // Each shape has its own permutation.
                let shape: Vec<String> = radixes.iter().map(u32::to_string).collect();
                let purpose = format!("{purpose} {}", shape.join(","));
                let digit = |value: u64, (digit, radix): (&u32, &u32)| {
                    value * u64::from(*radix) + u64::from(*digit)
                };
                let value = digits.iter().zip(radixes).fold(0, digit);
                let is_wanted = |value| is_wanted(&split(value, radixes));
                let new = self.number(&purpose, (value, size), is_wanted);
                digits.copy_from_slice(&split(new, radixes));
            }
            None => self.hash(purpose, radixes, digits, is_wanted),
        }
    }

    fn hash(
        &self,
        purpose: &str,
        radixes: &[u32],
        digits: &mut [u32],
        is_wanted: impl Fn(&[u32]) -> bool,
    ) {
        let value: Vec<u8> = digits
            .iter()
            .flat_map(|digit| digit.to_le_bytes())
            .collect();
        let mut stream = self.bytes(purpose, &value);
        // Rejections are rare in such a large range; if all are rejected, the last one is used.
        for _ in 0..16 {
            for (digit, radix) in digits.iter_mut().zip(radixes) {
                let mut bytes = [0; 4];
                stream.fill(&mut bytes);
                *digit = u32::from_le_bytes(bytes) % radix;
            }
            if is_wanted(digits) {
                return;
            }
        }
    }
}

fn split(mut value: u64, radixes: &[u32]) -> Vec<u32> {
    let mut digits = vec![0; radixes.len()];
    for (digit, radix) in digits.iter_mut().zip(radixes).rev() {
        *digit = (value % u64::from(*radix)) as u32;
        value /= u64::from(*radix);
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn cipher() -> Cipher {
        Cipher::new(Key::of(b"a test"))
    }

    #[test]
    fn numbers_are_permuted_among_those_that_are_wanted() {
        for size in [1, 2, 3, 10, 100, 1000, 4097] {
            let is_wanted = |value: u64| size == 1 || !value.is_multiple_of(3);
            let wanted: BTreeSet<u64> = (0..size).filter(|value| is_wanted(*value)).collect();
            let new = wanted
                .iter()
                .map(|value| cipher().number("x", (*value, size), is_wanted));
            assert_eq!(new.collect::<BTreeSet<u64>>(), wanted, "{size}");
        }
    }

    #[test]
    fn rows_of_digits_keep_their_radixes_and_their_difference() {
        let radixes = [10, 6, 2];
        let mut found = BTreeSet::new();
        for value in 0..120 {
            let mut digits = split(value, &radixes);
            cipher().digits("x", &radixes, &mut digits, |_| true);
            assert!(
                digits
                    .iter()
                    .zip(&radixes)
                    .all(|(digit, radix)| digit < radix)
            );
            assert!(found.insert(digits));
        }
        assert_eq!(found.len(), 120);
    }

    #[test]
    fn long_rows_are_hashed_by_key() {
        let radixes = [16; 32];
        let of = |cipher: &Cipher, digit| {
            let mut digits = [digit; 32];
            cipher.digits("x", &radixes, &mut digits, |_| true);
            digits
        };
        assert_eq!(of(&cipher(), 1), of(&cipher(), 1));
        assert_ne!(of(&cipher(), 1), of(&cipher(), 2));
        assert_ne!(of(&cipher(), 1), of(&Cipher::new(Key::of(b"another")), 1));
    }
}
