//! Dictionaries of column chunks: distinct values, numbered in order of first use.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use whyslow_model::{Strings, Sym};

/// Text is already a symbol: no string is hashed or compared.
pub(crate) struct TextDictionary {
    bytes_max: usize,
    /// By symbol: its index plus one; 0 if absent.
    indices: Vec<u32>,
    entries: Vec<Sym>,
    bytes: usize,
}

impl TextDictionary {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            indices: Vec::new(),
            entries: Vec::new(),
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }

    #[inline]
    pub(crate) fn index(&mut self, text: Sym, strings: &Strings) -> u32 {
        match self.indices.get(text.0 as usize) {
            Some(&found) if found > 0 => found - 1,
            _ => self.add(text, strings),
        }
    }

    #[cold]
    fn add(&mut self, text: Sym, strings: &Strings) -> u32 {
        let at = text.0 as usize;
        if at >= self.indices.len() {
            self.indices.resize(at + 1, 0);
        }
        self.entries.push(text);
        self.bytes += 4 + strings.get(text).len();
        self.indices[at] = self.entries.len() as u32;
        self.entries.len() as u32 - 1
    }

    /// The entries as a page; the dictionary is empty afterwards.
    pub(crate) fn take_page(&mut self, strings: &Strings) -> Vec<u8> {
        let mut page = Vec::with_capacity(self.bytes);
        for text in self.entries.drain(..) {
            self.indices[text.0 as usize] = 0;
            put_text(&mut page, strings.get(text));
        }
        self.bytes = 0;
        page
    }
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Numbers below this are looked up by index: threads, descriptors, CPUs, most sizes.
const SMALL: usize = 1 << 16;

pub(crate) struct NumberDictionary {
    bytes_max: usize,
    /// By small number: its index plus one; 0 if absent.
    small: Vec<u32>,
    large: HashMap<i64, u32, FxBuildHasher>,
    entries: Vec<i64>,
}

fn small(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|place| *place < SMALL)
}

impl NumberDictionary {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            small: Vec::new(),
            large: HashMap::default(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn entries(&self) -> &[i64] {
        &self.entries
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() * size_of::<i64>() > self.bytes_max
    }

    #[inline]
    pub(crate) fn index(&mut self, number: i64) -> u32 {
        if let Some(place) = small(number) {
            return match self.small.get(place) {
                Some(&found) if found > 0 => found - 1,
                _ => self.add_small(place, number),
            };
        }
        let next = self.entries.len() as u32;
        let index = *self.large.entry(number).or_insert(next);
        if index == next {
            self.entries.push(number);
        }
        index
    }

    #[cold]
    fn add_small(&mut self, place: usize, number: i64) -> u32 {
        if place >= self.small.len() {
            self.small.resize(place + 1, 0);
        }
        self.entries.push(number);
        self.small[place] = self.entries.len() as u32;
        self.entries.len() as u32 - 1
    }

    pub(crate) fn clear(&mut self) {
        self.large.clear();
        for place in self.entries.drain(..).filter_map(small) {
            self.small[place] = 0;
        }
    }
}
