//! Interned texts.

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Word(u32);

#[derive(Debug, Default)]
pub(crate) struct Words {
    numbers: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Word {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl Words {
    pub(crate) fn intern(&mut self, text: &str) -> Word {
        if let Some(number) = self.numbers.get(text) {
            return Word(*number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Word(number)
    }

    pub(crate) fn text_of(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        &self.texts[word.0 as usize]
    }
}
