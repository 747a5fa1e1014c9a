//! Stable sorts that share their code.
//!
//! The sort of the standard library is instantiated for every type and every comparison, 6 to 9 kB
//! each, which adds up to megabytes in a program with hundreds of answers. Here one function for
//! all types sorts indexes, and the items are moved to their places afterwards. Equal items keep
//! their order, as with `sort_by`, so the result is the same.
//!
//! [`IndexSort::index_sort_by`] calls the comparison through a pointer: for answers, which are
//! short. [`IndexSort::index_sort_by_ints`] compares keys that are adjacent in memory: for rows, of
//! which there may be millions. It moves each row once, whatever its size.
//! there may be millions; it moves each of them once, however large it is.

use std::cmp::Ordering;

/// Stable sorts of a slice.
pub trait IndexSort<T> {
    /// Like `sort_by`.
    fn index_sort_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Like `sort_by_key`.
    fn index_sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.index_sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Like `sort`.
    fn index_sort(&mut self)
    where
        T: Ord,
    {
        self.index_sort_by(T::cmp);
    }

    /// Sorts by the first number, then the second, then the third. Computes the key of each item
    /// once.
    fn index_sort_by_ints(&mut self, key: impl FnMut(&T) -> [i64; 3]);
}

impl<T> IndexSort<T> for [T] {
    fn index_sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        if self.is_sorted_by(|a, b| compare(a, b) != Ordering::Greater) {
            return;
        }
        let mut order = order_of(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        put_in(&mut order, &mut |a, b| self.swap(a, b));
    }

    fn index_sort_by_ints(&mut self, mut key: impl FnMut(&T) -> [i64; 3]) {
        if self.is_sorted_by_key(&mut key) {
            return;
        }
        let mut order = order_of_ints(self.iter().map(key).collect());
        put_in(&mut order, &mut |a, b| self.swap(a, b));
    }
}

/// Maps a float to an integer so that the integers compare as [`f64::total_cmp`] does.
#[inline]
pub fn float_key(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    // The other bits of negative values are inverted: a greater magnitude means a smaller value.
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Returns the indexes, sorted by the items at these indexes.
fn order_of(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[expect(
    clippy::stable_sort_primitive,
    reason = "rows are nearly sorted, which only the stable sort exploits"
)]
fn order_of_ints(keys: Vec<[i64; 3]>) -> Vec<usize> {
    let mut order: Vec<([i64; 3], usize)> = keys.into_iter().zip(0..).collect();
    order.sort();
    order.into_iter().map(|(_, place)| place).collect()
}

/// Moves the item at index `order[n]` to index `n`, cycle by cycle.
fn put_in(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for begin in 0..order.len() {
        let mut place = begin;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == begin {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_floats_compare_as_these() {
        let values = [
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
            -f64::NAN,
        ];
        for a in values {
            for b in values {
                assert_eq!(float_key(a).cmp(&float_key(b)), a.total_cmp(&b), "{a} {b}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(
            keys in prop::collection::vec(-3i64..4, 0..200),
        ) {
            let items: Vec<(i64, usize)> = keys.into_iter().zip(0..).collect();
            let by_key = |item: &(i64, usize)| item.0;
            let mut expected = items.clone();
            expected.sort_by_key(by_key);
            let mut found = items.clone();
            found.index_sort_by_key(by_key);
            prop_assert_eq!(&found, &expected);
            found.clone_from(&items);
            found.index_sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(&found, &expected);
            found.clone_from(&items);
            found.index_sort_by_ints(|item| [item.0, 0, 0]);
            prop_assert_eq!(&found, &expected);
            found.clone_from(&items);
            found.index_sort_by_ints(|item| [0, item.0 / 2, -item.0]);
            expected.clone_from(&items);
            expected.sort_by_key(|item| (item.0 / 2, -item.0));
            prop_assert_eq!(&found, &expected);
            found.index_sort();
            prop_assert!(found.is_sorted());
        }
    }
}
