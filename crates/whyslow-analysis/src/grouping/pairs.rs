//! Combines two numbers into one: codes of pairs, in order of first occurrence.

use rustc_hash::FxHashMap;

use super::{SMALL_INTS, UNSET};

#[derive(Debug, Clone)]
pub(super) struct PairCoder {
    codes: FxHashMap<(u32, u32), u32>,
    pub(super) pairs: Vec<(u32, u32)>,
    /// The same for pairs of small numbers, by index. No larger than needed for the greatest of
    /// them: filling memory dominates the cost where a window has few rows.
    small: Vec<u32>,
    /// Bits of an index that hold the right number.
    right_bits: u32,
    /// The last pair with each right number: a thread has one process, a process one name.
    by_right: Vec<(u32, u32)>,
}

/// Bits of the numbers of a pair that is stored in the table: processes and their file descriptors,
/// or the classes of objects that they use.
const SMALL_LEFT: u32 = 12;
const SMALL_RIGHT: u32 = 8;
/// Initial number of bits for right numbers, until one needs more.
const SMALL_RIGHT_FIRST: u32 = 2;

impl Default for PairCoder {
    fn default() -> Self {
        Self {
            codes: FxHashMap::default(),
            pairs: Vec::new(),
            small: Vec::new(),
            right_bits: SMALL_RIGHT_FIRST,
            by_right: Vec::new(),
        }
    }
}

impl PairCoder {
    #[inline]
    pub(super) fn code(&mut self, pair: (u32, u32)) -> u32 {
        let is_small = pair.0 >> SMALL_LEFT == 0 && pair.1 >> self.right_bits == 0;
        let place = (pair.0 << self.right_bits | pair.1) as usize;
        match self.small.get(place) {
            Some(code) if is_small && *code != UNSET => *code,
            _ => match self.by_right.get(pair.1 as usize) {
                Some((left, code)) if *left == pair.0 => *code,
                _ => self.look_up(pair),
            },
        }
    }

    #[inline(never)]
    fn look_up(&mut self, pair: (u32, u32)) -> u32 {
        let code = *self.codes.entry(pair).or_insert_with(|| {
            self.pairs.push(pair);
            self.pairs.len() as u32 - 1
        });
        if pair.0 >> SMALL_LEFT == 0 && pair.1 >> SMALL_RIGHT == 0 {
            self.put_small(pair, code);
        }
        let right = pair.1 as usize;
        if right < SMALL_INTS {
            let length = self.by_right.len().max(right + 1);
            self.by_right.resize(length, (UNSET, UNSET));
            self.by_right[right] = (pair.0, code);
        }
        code
    }

    fn put_small(&mut self, (left, right): (u32, u32), code: u32) {
        if right >> self.right_bits != 0 {
            // All left numbers move apart.
            let bits = u32::BITS - right.leading_zeros();
            let before = std::mem::take(&mut self.small);
            let mut apart = Vec::with_capacity(before.len() << (bits - self.right_bits));
            for rights in before.chunks(1 << self.right_bits) {
                apart.extend_from_slice(rights);
                apart.resize(apart.len().next_multiple_of(1 << bits), UNSET);
            }
            (self.small, self.right_bits) = (apart, bits);
        }
        let after = ((left + 1) << self.right_bits) as usize;
        if after > self.small.len() {
            self.small.resize(after, UNSET);
        }
        self.small[(left << self.right_bits | right) as usize] = code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_one_code_each_in_the_order_they_come() {
        let mut coder = PairCoder::default();
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let numbers = [
            0,
            1,
            3,
            4,
            7,
            8,
            200,
            255,
            256,
            4095,
            4096,
            70_000,
            u32::MAX - 1,
        ];
        for round in 1..=numbers.len() {
            for left in &numbers[..round] {
                for right in &numbers[..round] {
                    let next = known.len() as u32;
                    let expected = *known.entry((*left, *right)).or_insert(next);
                    assert_eq!(coder.code((*left, *right)), expected, "{left} {right}");
                }
            }
        }
        assert_eq!(coder.pairs.len(), known.len());
        for (code, pair) in (0..).zip(&coder.pairs) {
            assert_eq!(known[pair], code);
        }
    }
}
