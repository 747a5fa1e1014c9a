//! Features that slow keys have and exempt keys lack.

use std::collections::{BTreeMap, BTreeSet};

/// Features of all keys in `slow` and of none in `exempt`, ascending. `features` are pairs of a key
/// and a feature of its items.
pub(super) fn only_of_slow(features: &[(u32, u32)], slow: &[u32], exempt: &[u32]) -> Vec<u32> {
    let mut by_key: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (key, feature) in features {
        by_key.entry(*key).or_default().insert(*feature);
    }
    // Keys without any known feature are ignored.
    let known = |keys: &[u32]| -> Vec<&BTreeSet<u32>> {
        keys.iter().filter_map(|key| by_key.get(key)).collect()
    };
    let (slow, exempt) = (known(slow), known(exempt));
    let (Some(first), false) = (slow.first(), exempt.is_empty()) else {
        return Vec::new();
    };
    let is_only = |feature: &&u32| {
        slow.iter().all(|key| key.contains(feature))
            && exempt.iter().all(|key| !key.contains(feature))
    };
    first.iter().filter(is_only).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::only_of_slow;

    #[test]
    fn what_all_slow_keys_do_and_the_exempt_do_not() {
        let features = [
            (1, 10),
            (1, 11),
            (1, 12),
            (2, 11),
            (2, 10),
            (3, 10),
            (3, 13),
        ];
        assert_eq!(only_of_slow(&features, &[1, 2], &[3]), [11]);
        assert!(only_of_slow(&features, &[1, 2], &[]).is_empty());
        assert!(only_of_slow(&features, &[], &[3]).is_empty());
        // Nothing is known of key 4.
        assert_eq!(only_of_slow(&features, &[1, 2, 4], &[3]), [11]);
    }
}
