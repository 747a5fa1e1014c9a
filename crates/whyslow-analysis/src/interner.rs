//! Interns texts by hash.
//!
//! Each row group has its own dictionary, so a file with many names looks up the same ones for
//! every row group. The caller that assigns the numbers stores the texts; only hashes are stored
//! here.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// Finds texts among numbered ones. At most half of the slots are used.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    slots: Vec<Slot>,
    used: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    number: u32,
}

const FREE: u32 = u32::MAX;
const SLOTS_MIN: usize = 64;

impl Interner {
    /// Number of the text if it has one, otherwise `next`, which it gets. `is` checks whether a
    /// number is that of the text.
    pub(crate) fn number(&mut self, text: &str, next: u32, is: impl Fn(u32) -> bool) -> u32 {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = (FxBuildHasher.hash_one(text) >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.number == FREE {
                let number = next;
                self.slots[place] = Slot { hash, number };
                self.used += 1;
                return next;
            }
            if slot.hash == hash && is(slot.number) {
                return slot.number;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
        let free = Slot {
            hash: 0,
            number: FREE,
        };
        let before = std::mem::replace(&mut self.slots, vec![free; length]);
        for slot in before.into_iter().filter(|slot| slot.number != FREE) {
            let mut place = slot.hash as usize & (length - 1);
            while self.slots[place].number != FREE {
                place = (place + 1) & (length - 1);
            }
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Interner;

    #[test]
    fn each_text_keeps_its_number() {
        let texts: Vec<String> = (0..5_000).map(|at| format!("/var/log/{at}")).collect();
        let mut words = Interner::default();
        for round in 0..2 {
            for (at, text) in texts.iter().enumerate() {
                let next = if round == 0 { at as u32 } else { 9_999 };
                let number = words.number(text, next, |number| texts[number as usize] == *text);
                assert_eq!(number, at as u32, "{text}");
            }
        }
    }
}
