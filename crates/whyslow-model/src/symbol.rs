//! Interned strings: a row carries four bytes instead of a name.

use rustc_hash::FxHashMap;

/// A string known to a [`Symbols`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(pub u32);

impl Sym {
    /// The empty string, the same in every [`Symbols`].
    pub const EMPTY: Sym = Sym(0);
}

/// The interner of one import: a string is stored once, and numbered in order of first use.
///
/// Grows with the number of *distinct* strings (names, paths), not with the number of events.
#[derive(Debug, Clone)]
pub struct Symbols {
    ids: FxHashMap<Box<str>, u32>,
    strings: Vec<Box<str>>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbols {
    pub fn new() -> Self {
        let mut symbols = Self {
            ids: FxHashMap::default(),
            strings: Vec::new(),
        };
        symbols.intern("");
        symbols
    }

    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&id) = self.ids.get(text) {
            return Sym(id);
        }
        let id = u32::try_from(self.strings.len()).expect("fewer than 2^32 distinct names");
        self.strings.push(text.into());
        self.ids.insert(text.into(), id);
        Sym(id)
    }

    /// Interns bytes of a trace; what is not UTF-8 becomes U+FFFD.
    pub fn intern_bytes(&mut self, text: &[u8]) -> Sym {
        match std::str::from_utf8(text) {
            Ok(text) => self.intern(text),
            Err(_) => self.intern(&String::from_utf8_lossy(text)),
        }
    }

    /// The symbol of a string seen before, without adding it.
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.ids.get(text).map(|&id| Sym(id))
    }

    pub fn get(&self, sym: Sym) -> &str {
        &self.strings[sym.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.strings.len() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_symbol_and_bad_utf8_is_replaced() {
        let mut symbols = Symbols::new();
        let a = symbols.intern("a");
        assert_eq!(symbols.intern_bytes(b"a"), a);
        assert_eq!(symbols.intern(""), Sym::EMPTY);
        let bad = symbols.intern_bytes(b"x\xff");
        assert_eq!(symbols.get(bad), "x\u{fffd}");
    }
}
