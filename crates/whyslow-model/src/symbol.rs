//! Interned strings: a row holds four bytes instead of a name.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A string known to a [`Symbols`]; the empty one by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(pub u32);

impl Sym {
    /// The empty string, the same in every [`Symbols`].
    pub const EMPTY: Sym = Sym(0);
}

/// Strings in the first chunk; each further chunk has twice as many as the previous one.
const FIRST_PIECE: u64 = 1 << 10;
/// Chunks needed for all 32-bit numbers.
const PIECES: usize = 23;

type Piece = Box<[OnceLock<Box<str>>]>;

/// The strings of a [`Symbols`], readable by other threads while it grows: a thread that received a
/// number (in a row, through a channel) finds its string here.
#[derive(Debug)]
pub struct Strings {
    pieces: [OnceLock<Piece>; PIECES],
}

/// Chunk of a number, and its index in the chunk.
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + FIRST_PIECE;
    let piece = shifted.ilog2() - FIRST_PIECE.ilog2();
    (piece as usize, (shifted - (FIRST_PIECE << piece)) as usize)
}

impl Strings {
    fn new() -> Self {
        Self {
            pieces: [const { OnceLock::new() }; PIECES],
        }
    }

    /// Returns the string of a number that was assigned.
    pub fn get(&self, sym: Sym) -> &str {
        let (piece, at) = place(sym.0);
        let string = self.pieces[piece].get().and_then(|piece| piece[at].get());
        string.expect("a number is assigned together with its string")
    }

    fn set(&self, number: u32, text: &str) {
        let (piece, at) = place(number);
        let new = || (0..FIRST_PIECE << piece).map(|_| OnceLock::new()).collect();
        let piece = self.pieces[piece].get_or_init(new);
        piece[at]
            .set(text.into())
            .expect("numbers are assigned once");
    }
}

/// Cache slots for interned literals; a collision only costs a hash lookup.
const LITERALS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Literal {
    address: usize,
    length: usize,
    sym: Sym,
}

/// The interner of one import: it stores each string once, and numbers strings in order of first
/// use.
///
/// Grows with the number of *distinct* strings (names, paths), not with the number of events.
#[derive(Debug)]
pub struct Symbols {
    numbers: HashTable<u32>,
    strings: Arc<Strings>,
    /// String literals of the program, found by address.
    literals: Box<[Literal; LITERALS]>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

/// A clone grows independently.
impl Clone for Symbols {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        for number in 0..self.len() as u32 {
            copy.intern(self.get(Sym(number)));
        }
        copy
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Symbols {
    /// Creates an interner that contains only the empty string.
    pub fn new() -> Self {
        let mut symbols = Self {
            numbers: HashTable::new(),
            strings: Arc::new(Strings::new()),
            // No literal is at address 0.
            literals: Box::new(
                [Literal {
                    address: 0,
                    length: 0,
                    sym: Sym::EMPTY,
                }; LITERALS],
            ),
        };
        symbols.intern("");
        symbols
    }

    /// Returns the number of a string, assigning a new one at first use. Panics at 2^32 distinct
    /// strings.
    pub fn intern(&mut self, text: &str) -> Sym {
        let strings = &*self.strings;
        let hash_ = hash(text);
        let same = |&number: &u32| strings.get(Sym(number)) == text;
        if let Some(&number) = self.numbers.find(hash_, same) {
            return Sym(number);
        }
        let number = u32::try_from(self.numbers.len()).expect("fewer than 2^32 distinct names");
        strings.set(number, text);
        self.numbers
            .insert_unique(hash_, number, |&number| hash(strings.get(Sym(number))));
        Sym(number)
    }

    /// Like [`Symbols::intern`] for a literal: its address identifies it, so nothing is hashed or
    /// compared.
    #[inline]
    pub fn intern_static(&mut self, text: &'static str) -> Sym {
        let (address, length) = (text.as_ptr().addr(), text.len());
        let place = (address ^ address >> 8 ^ length) % LITERALS;
        let known = self.literals[place];
        if known.address == address && known.length == length {
            return known.sym;
        }
        let sym = self.intern(text);
        self.literals[place] = Literal {
            address,
            length,
            sym,
        };
        sym
    }

    /// Interns bytes from a trace; invalid UTF-8 becomes U+FFFD.
    pub fn intern_bytes(&mut self, text: &[u8]) -> Sym {
        match std::str::from_utf8(text) {
            Ok(text) => self.intern(text),
            Err(_) => self.intern(&String::from_utf8_lossy(text)),
        }
    }

    /// Returns the symbol of an interned string, without adding it.
    pub fn find(&self, text: &str) -> Option<Sym> {
        let same = |&number: &u32| self.strings.get(Sym(number)) == text;
        self.numbers.find(hash(text), same).copied().map(Sym)
    }

    /// Returns the string of a number of this interner, or of its [`Symbols::strings`]. Panics on
    /// any other number.
    pub fn get(&self, sym: Sym) -> &str {
        self.strings.get(sym)
    }

    /// The strings, for another thread.
    pub fn strings(&self) -> Arc<Strings> {
        Arc::clone(&self.strings)
    }

    /// Number of distinct strings, including the empty one.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether only the empty string is interned.
    pub fn is_empty(&self) -> bool {
        self.numbers.len() <= 1
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
        assert_eq!(symbols.find("a"), Some(a));
        assert_eq!(symbols.find("b"), None);
        assert_eq!(symbols.intern(""), Sym::EMPTY);
        let bad = symbols.intern_bytes(b"x\xff");
        assert_eq!(symbols.get(bad), "x\u{fffd}");
    }

    #[test]
    fn literals_have_the_symbols_of_their_texts() {
        let mut symbols = Symbols::new();
        const TEXT: &str = "read_write";
        for text in [&TEXT[..4], TEXT, &TEXT[5..], &TEXT[..4], ""] {
            let sym = symbols.intern_static(text);
            assert_eq!(symbols.get(sym), text);
            assert_eq!(symbols.find(text), Some(sym));
        }
    }

    #[test]
    fn many_strings_are_found_again_also_by_another_thread() {
        let mut symbols = Symbols::new();
        let strings = symbols.strings();
        let numbers: Vec<Sym> = (0..10_000)
            .map(|n| symbols.intern(&n.to_string()))
            .collect();
        let copy = symbols.clone();
        assert_eq!(copy.len(), symbols.len());
        let found = std::thread::spawn(move || {
            let texts = numbers.iter().map(|&sym| strings.get(sym).to_owned());
            texts.collect::<Vec<_>>()
        });
        let expected: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        assert_eq!(found.join().expect("reading"), expected);
        let of_copy = expected.iter().map(|text| copy.find(text));
        assert!(of_copy.eq(expected.iter().map(|text| symbols.find(text))));
    }

    #[test]
    fn pieces_meet_without_gap() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(1023), (0, 1023));
        assert_eq!(place(1024), (1, 0));
        assert_eq!(place(3071), (1, 2047));
        assert_eq!(place(3072), (2, 0));
        assert!(place(u32::MAX).0 < PIECES);
    }
}
