//! Maps keys of constants to values, with an array for small keys: one lookup per field of a
//! sample.

use rustc_hash::FxHashMap;

/// Upper limit of keys stored in the array: threads, states, and the stacks of one chunk.
const SMALL: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Keyed<T> {
    small: Vec<Option<T>>,
    /// Keys below this are stored in the array.
    small_max: usize,
    large: FxHashMap<i64, T>,
}

impl<T: Copy> Keyed<T> {
    /// For a chunk of this size: a short one gets no large array.
    pub(super) fn within(bytes: usize) -> Self {
        Self {
            small: Vec::new(),
            small_max: SMALL.min(bytes),
            large: FxHashMap::default(),
        }
    }

    #[inline]
    fn place(&self, key: i64) -> Option<usize> {
        usize::try_from(key).ok().filter(|at| *at < self.small_max)
    }

    #[inline]
    pub(super) fn get(&self, key: i64) -> Option<T> {
        match self.place(key) {
            Some(at) => self.small.get(at).copied().flatten(),
            None => self.large.get(&key).copied(),
        }
    }

    pub(super) fn insert(&mut self, key: i64, value: T) {
        let Some(at) = self.place(key) else {
            self.large.insert(key, value);
            return;
        };
        if at >= self.small.len() {
            self.small.resize(at + 1, None);
        }
        self.small[at] = Some(value);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, T)> {
        let small = self.small.iter().enumerate();
        let small = small.filter_map(|(key, value)| Some((key as i64, (*value)?)));
        small.chain(self.large.iter().map(|(key, value)| (*key, *value)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_key_has_what_was_put_last(
            puts in prop::collection::vec((prop_oneof![-3..3i64, 65_530..65_545i64], any::<u8>()), 0..40),
            bytes in prop_oneof![0..4usize, Just(1 << 20)],
        ) {
            let (mut keyed, mut wanted) = (Keyed::within(bytes), std::collections::BTreeMap::new());
            for (key, value) in &puts {
                keyed.insert(*key, *value);
                wanted.insert(*key, *value);
            }
            for key in (-4..4).chain(65_529..65_546) {
                prop_assert_eq!(keyed.get(key), wanted.get(&key).copied());
            }
            let all: std::collections::BTreeMap<i64, u8> = keyed.iter().collect();
            prop_assert_eq!(all, wanted);
        }
    }
}
