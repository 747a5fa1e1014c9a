//! Encodes the values of one page.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use parquet::basic::{Encoding, Type};
use whyslow_model::Strings;

use super::chunk::DictionaryPage;
use super::delta::put_delta;
use super::dictionary::{NumberDictionary, TextDictionary, put_text};
use super::hybrid::{bits_for, put_indices};
use crate::cells::Values;
use crate::limits::Limits;

/// Values of the current page, in the form in which the column is stored.
enum Store {
    /// Times, ids and other numbers that increase or hardly repeat.
    Delta(Vec<i64>),
    Numbers {
        dictionary: NumberDictionary,
        indices: Vec<u32>,
        /// Values since the dictionary was full.
        plain: Vec<i64>,
    },
    Text {
        dictionary: TextDictionary,
        indices: Vec<u32>,
        plain: Vec<u8>,
    },
    Floats(Vec<f64>),
    Bools(BooleanBufferBuilder),
}

struct Form {
    is_32_bit: bool,
    /// Bytes of plain text that end a page.
    page_bytes: usize,
    /// The dictionary is full: pages are plain until the end of the chunk.
    overflowed: bool,
}

pub(super) struct PageValues {
    store: Store,
    form: Form,
}

impl PageValues {
    /// `delta`: for numbers that increase or hardly repeat.
    pub(super) fn new(physical: Type, delta: bool, limits: &Limits) -> Self {
        let store = match physical {
            Type::INT32 | Type::INT64 if delta => Store::Delta(Vec::new()),
            Type::INT32 | Type::INT64 => Store::Numbers {
                dictionary: NumberDictionary::new(limits.dictionary_bytes),
                indices: Vec::new(),
                plain: Vec::new(),
            },
            Type::DOUBLE => Store::Floats(Vec::new()),
            Type::BOOLEAN => Store::Bools(BooleanBufferBuilder::new(0)),
            _ => Store::Text {
                dictionary: TextDictionary::new(limits.dictionary_bytes),
                indices: Vec::new(),
                plain: Vec::new(),
            },
        };
        Self {
            store,
            form: Form {
                is_32_bit: physical == Type::INT32,
                page_bytes: limits.page_bytes,
                overflowed: false,
            },
        }
    }

    /// Appends values until the page is full; returns the number of rows taken.
    pub(super) fn take(
        &mut self,
        values: &Values,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        strings: &Strings,
    ) -> usize {
        let (begin, length) = (rows.start, rows.len());
        match (&mut self.store, values) {
            (Store::Delta(page), Values::I64(values)) => match nulls {
                None => page.extend_from_slice(&values[rows]),
                Some(_) => each(nulls, rows, |row| page.push(values[row])),
            },
            (Store::Delta(page), Values::I32(values)) => {
                each(nulls, rows, |row| page.push(i64::from(values[row])));
            }
            (Store::Floats(page), Values::F64(values)) => {
                each(nulls, rows, |row| page.push(values[row]));
            }
            (Store::Bools(page), Values::Bool(values)) => {
                each(nulls, rows, |row| page.append(values.get_bit(row)));
            }
            (
                Store::Numbers {
                    dictionary,
                    indices,
                    plain,
                },
                values,
            ) => {
                let number = |row: usize| match values {
                    Values::I32(values) => i64::from(values[row]),
                    Values::I64(values) => values[row],
                    _ => unreachable!("number columns contain numbers"),
                };
                if self.form.overflowed {
                    each(nulls, rows, |row| plain.push(number(row)));
                } else {
                    return each_until(nulls, rows, |row| {
                        indices.push(dictionary.index(number(row)));
                        dictionary.is_full()
                    })
                    .map_or(length, |row| row + 1 - begin);
                }
            }
            (
                Store::Text {
                    dictionary,
                    indices,
                    plain,
                },
                Values::Text(texts),
            ) => {
                return each_until(nulls, rows, |row| {
                    if self.form.overflowed {
                        put_text(plain, strings.get(texts[row]));
                        plain.len() >= self.form.page_bytes
                    } else {
                        indices.push(dictionary.index(texts[row], strings));
                        dictionary.is_full()
                    }
                })
                .map_or(length, |row| row + 1 - begin);
            }
            _ => unreachable!("columns contain values of their type"),
        }
        length
    }

    /// Appends the values of the page to its levels, and starts the next page.
    pub(super) fn put_page(&mut self, page: &mut Vec<u8>) -> (Encoding, Bounds) {
        let put = self.store.put(page, &self.form);
        self.form.overflowed |= self.store.dictionary_is_full();
        put
    }

    /// Ends the chunk: returns its dictionary, with the bounds of numbers in it.
    pub(super) fn end_dictionary(&mut self, strings: &Strings) -> (Option<DictionaryPage>, Bounds) {
        self.form.overflowed = false;
        match &mut self.store {
            Store::Numbers { dictionary, .. } => {
                let bounds = Bounds::of(dictionary.entries());
                let mut bytes = Vec::new();
                put_numbers(&mut bytes, dictionary.entries(), self.form.is_32_bit);
                let entries = dictionary.entries().len();
                dictionary.clear();
                (Some(DictionaryPage { bytes, entries }), bounds)
            }
            Store::Text { dictionary, .. } => {
                let entries = dictionary.len();
                let bytes = dictionary.take_page(strings);
                (Some(DictionaryPage { bytes, entries }), Bounds::default())
            }
            _ => (None, Bounds::default()),
        }
    }
}

impl Store {
    /// Appends the values of the page to its levels.
    fn put(&mut self, page: &mut Vec<u8>, form: &Form) -> (Encoding, Bounds) {
        let none = Bounds::default();
        match self {
            Store::Delta(values) => {
                let bounds = Bounds::of(values);
                put_delta(page, values, form.is_32_bit);
                values.clear();
                (Encoding::DELTA_BINARY_PACKED, bounds)
            }
            Store::Numbers { plain, .. } if form.overflowed => {
                let bounds = Bounds::of(plain);
                put_numbers(page, plain, form.is_32_bit);
                plain.clear();
                (Encoding::PLAIN, bounds)
            }
            Store::Numbers {
                dictionary,
                indices,
                ..
            } => {
                put_page_of_indices(page, indices, dictionary.entries().len());
                (Encoding::RLE_DICTIONARY, none)
            }
            Store::Text { plain, .. } if form.overflowed => {
                page.append(plain);
                (Encoding::PLAIN, none)
            }
            Store::Text {
                dictionary,
                indices,
                ..
            } => {
                put_page_of_indices(page, indices, dictionary.len());
                (Encoding::RLE_DICTIONARY, none)
            }
            Store::Floats(values) => {
                page.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                values.clear();
                (Encoding::PLAIN, none)
            }
            Store::Bools(values) => {
                put_bools(page, &values.finish());
                (Encoding::PLAIN, none)
            }
        }
    }

    fn dictionary_is_full(&self) -> bool {
        match self {
            Store::Numbers { dictionary, .. } => dictionary.is_full(),
            Store::Text { dictionary, .. } => dictionary.is_full(),
            _ => false,
        }
    }
}

fn put_page_of_indices(page: &mut Vec<u8>, indices: &mut Vec<u32>, distinct: usize) {
    let width = bits_for(distinct);
    page.push(width as u8);
    put_indices(page, indices, width);
    indices.clear();
}

/// Minimum and maximum, if there is a value.
#[derive(Default, Clone, Copy)]
pub(super) struct Bounds(pub(super) Option<(i64, i64)>);

impl Bounds {
    pub(super) fn of(values: &[i64]) -> Self {
        let ends = values.split_first().map(|(first, rest)| {
            let wider = |(least, greatest): (i64, i64), value: &i64| {
                (least.min(*value), greatest.max(*value))
            };
            rest.iter().fold((*first, *first), wider)
        });
        Self(ends)
    }

    pub(super) fn include(&mut self, other: Self) {
        self.0 = match (self.0, other.0) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }
}

/// The rows of a range that have a value. `nulls` are those of the range.
fn each(nulls: Option<&NullBuffer>, rows: Range<usize>, mut take: impl FnMut(usize)) {
    match nulls {
        None => rows.for_each(take),
        Some(nulls) => {
            let begin = rows.start;
            nulls.valid_indices().for_each(|row| take(begin + row));
        }
    }
}

/// The same until `take` has enough; returns the row after that.
fn each_until(
    nulls: Option<&NullBuffer>,
    mut rows: Range<usize>,
    mut take: impl FnMut(usize) -> bool,
) -> Option<usize> {
    match nulls {
        None => rows.find(|row| take(*row)),
        Some(nulls) => {
            let begin = rows.start;
            let mut valid = nulls.valid_indices().map(|row| begin + row);
            valid.find(|row| take(*row))
        }
    }
}

fn put_numbers(page: &mut Vec<u8>, values: &[i64], is_32_bit: bool) {
    if is_32_bit {
        let narrow = values.iter().map(|value| (*value as i32).to_le_bytes());
        page.extend(narrow.flatten());
    } else {
        page.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

fn put_bools(page: &mut Vec<u8>, values: &BooleanBuffer) {
    let bytes = page.len() + values.len().div_ceil(8);
    for word in values.bit_chunks().iter_padded() {
        page.extend_from_slice(&word.to_le_bytes());
    }
    page.truncate(bytes);
}
