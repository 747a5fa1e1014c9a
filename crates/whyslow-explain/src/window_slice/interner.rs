//! Interned texts.

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId(u32);

#[derive(Debug, Default)]
pub(crate) struct Interner {
    numbers: FxHashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl TextId {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> TextId {
        if let Some(number) = self.numbers.get(text) {
            return TextId(*number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        TextId(number)
    }

    /// The id of a text that was interned.
    pub(crate) fn find(&self, text: &str) -> Option<TextId> {
        self.numbers.get(text).map(|number| TextId(*number))
    }

    pub(crate) fn text_of(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    pub(crate) fn text(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }
}
