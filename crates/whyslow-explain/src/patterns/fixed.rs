//! Items that are slow by their own measure only, while many others take a fixed additional time.
//!
//! An item is slow if it takes several times the usual duration of its key. For a page that takes
//! 0.3 ms these are a few milliseconds, which any item may lose on a busy machine. They are
//! unrelated to pages of 90 ms that sometimes wait 5 s, and would hide that a key is exempt from
//! the 5 s. So if slow items of several keys have the same additional time, far from all others and
//! with nearly all of the lost time, only these count as slow.
//!
//! A cause that takes a share of the usual duration, such as a busy CPU, adds different times to
//! different keys, so all of its items stay slow.

use std::collections::BTreeSet;

use whyslow_model::sort::IndexSort;

use super::ranks::{deviation, median};

/// Minimum number of items with the fixed time, and of their keys.
const ITEMS_MIN: usize = 5;
const KEYS_MIN: usize = 2;
/// Minimum ratio of the smallest of them to the next largest excess …
const APART_MIN: f64 = 5.0;
/// … minimum share of all lost time …
const LOST_MIN: f64 = 0.8;
/// … and maximum MAD, as a share of their median.
const SPREAD_MAX: f64 = 0.25;

/// A slow item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// Index into [`Input::items`](super::Input::items).
    pub place: usize,
    /// Its key.
    pub key: u32,
    /// Time beyond the usual of its key, ns.
    pub excess: f64,
}

/// Indexes of items that are slow by their own measure only; none if there is no fixed additional
/// time.
pub fn lesser(mut slow: Vec<Slow>) -> Vec<usize> {
    slow.index_sort_by(|a, b| {
        let by_excess = b.excess.total_cmp(&a.excess);
        by_excess.then(a.place.cmp(&b.place))
    });
    let ratio = |rank: usize| slow[rank - 1].excess / slow[rank].excess.max(1.0);
    let ranks = ITEMS_MIN..slow.len();
    let widest = ranks.max_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(b.cmp(a)));
    let Some(rank) = widest.filter(|rank| ratio(*rank) >= APART_MIN) else {
        return Vec::new();
    };
    let (above, below) = slow.split_at(rank);
    let sum = |of: &[Slow]| of.iter().map(|one| one.excess.max(0.0)).sum::<f64>();
    let keys: BTreeSet<u32> = above.iter().map(|one| one.key).collect();
    let excesses = || above.iter().map(|one| one.excess);
    let middle = median(excesses().collect()).unwrap_or(0.0);
    let spread = deviation(excesses(), middle).unwrap_or(f64::MAX);
    let is_fixed = keys.len() >= KEYS_MIN
        && spread <= SPREAD_MAX * middle
        && sum(above) >= LOST_MIN * (sum(above) + sum(below));
    if is_fixed {
        below.iter().map(|one| one.place).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and additional time of each item, ms.
    fn check(slow: &[(u32, f64)], expected: &[usize]) {
        let of = |(place, (key, ms)): (usize, &(u32, f64))| Slow {
            place,
            key: *key,
            excess: ms * 1e6,
        };
        let slow = slow.iter().enumerate().map(of).collect();
        assert_eq!(lesser(slow), expected);
    }

    #[test]
    fn a_fixed_time_of_several_keys_leaves_out_what_is_slow_for_what_it_is() {
        let five = [
            (1, 5004.0),
            (2, 5001.0),
            (1, 5090.0),
            (3, 4990.0),
            (2, 10_010.0),
        ];
        let with = |more: &[(u32, f64)]| [&five[..], more].concat();
        check(&with(&[(0, 7.0), (0, 3.0)]), &[5, 6]);
        check(&with(&[]), &[]);
        // Too close to be separate.
        check(&with(&[(0, 1200.0)]), &[]);
        // Four are too few, and so is one key.
        check(&with(&[(0, 7.0)])[1..], &[]);
        let one_key: Vec<_> = with(&[(0, 7.0)]).iter().map(|one| (9, one.1)).collect();
        check(&one_key, &[]);
        // Many small ones have most of the lost time.
        check(&with(&[(0, 900.0); 40]), &[]);
    }

    #[test]
    fn a_share_of_what_keys_take_is_no_fixed_time() {
        let slow: Vec<(u32, f64)> = (0..40)
            .map(|item| {
                let key = item % 4;
                (key, 10f64.powi(key as i32) * (1.0 + f64::from(item) / 40.0))
            })
            .collect();
        check(&slow, &[]);
    }
}
