//! Constants: the values behind the keys in events. They belong to one chunk.

use rustc_hash::FxHashMap;

use super::bytes::{Cursor, TEXT_BYTES_MAX, Text};
use super::metadata::{Class, Field, Shape, Types};

/// Maximum number of checkpoints in a chain; also ends circular chains.
const CHAIN_MAX: usize = 1 << 16;

/// Offset of each constant, by class id and key.
#[derive(Debug, Default)]
pub(super) struct Pools {
    places: FxHashMap<i64, FxHashMap<i64, usize>>,
    /// Checkpoints that could not be read completely.
    pub(super) damaged: u64,
}

impl Pools {
    /// Adds the checkpoint at `last`, and all previous ones in its chain.
    pub(super) fn add_chain(&mut self, bytes: &[u8], last: usize, types: &Types) -> Option<()> {
        let mut at = last;
        for _ in 0..CHAIN_MAX {
            let delta = self.add(bytes, at, types)?;
            if delta == 0 {
                return Some(());
            }
            // Deltas point backwards; otherwise the chain would not end.
            let before = i64::try_from(at).ok()?.checked_add(delta)?;
            let before = usize::try_from(before).ok()?;
            if before >= at {
                return None;
            }
            at = before;
        }
        None
    }

    /// Adds one checkpoint; returns the distance to the previous one.
    pub(super) fn add(&mut self, bytes: &[u8], at: usize, types: &Types) -> Option<i64> {
        let mut cursor = Cursor::new(bytes, at);
        let size = usize::try_from(cursor.varint()?).ok()?;
        let end = at.checked_add(size).filter(|end| *end <= bytes.len())?;
        let mut cursor = Cursor::new(&bytes[..end], cursor.at());
        if cursor.varint()? != 1 {
            return None;
        }
        // Start, duration.
        cursor.varint()?;
        cursor.varint()?;
        let delta = cursor.varint()?;
        cursor.byte()?;
        if self.values(&mut cursor, types).is_none() {
            self.damaged += 1;
        }
        Some(delta)
    }

    fn values(&mut self, cursor: &mut Cursor<'_>, types: &Types) -> Option<()> {
        for _ in 0..cursor.count()? {
            let class = types.class(cursor.varint()?)?;
            let count = cursor.count()?;
            let places = self.places.entry(class.id).or_default();
            for _ in 0..count {
                let key = cursor.varint()?;
                let place = cursor.at();
                types.skip_value(cursor, class.shape)?;
                places.insert(key, place);
            }
        }
        Some(())
    }

    pub(super) fn place(&self, class: i64, key: i64) -> Option<usize> {
        self.places.get(&class)?.get(&key).copied()
    }
}

/// The bytes of a chunk with its constants.
#[derive(Clone, Copy)]
pub(super) struct Constants<'c> {
    pub(super) bytes: &'c [u8],
    pub(super) types: &'c Types,
    pub(super) pools: &'c Pools,
}

impl<'c> Constants<'c> {
    /// The field of a constant.
    pub(super) fn field(&self, class: &Class, key: i64, name: &str) -> Option<Value<'c>> {
        let place = self.pools.place(class.id, key)?;
        let class = self.types.class(class.id)?;
        let (cursor, field) = self.types.field_of((self.bytes, place), class, name)?;
        Some(Value {
            cursor,
            class: field.class,
            is_key: field.is_key,
        })
    }

    /// The text of a value: that of a symbol, the name of a class, the name of a state.
    pub(super) fn text(&self, value: Value<'_>) -> Option<String> {
        self.long_text(value, TEXT_BYTES_MAX)
    }

    /// The same, truncated to `bytes_max`.
    pub(super) fn long_text(&self, value: Value<'_>, bytes_max: usize) -> Option<String> {
        self.text_within(value, 0, bytes_max)
    }

    fn text_within(&self, mut value: Value<'_>, depth: usize, bytes_max: usize) -> Option<String> {
        // A class refers to a symbol, a symbol contains a string, a string may be in the pool.
        if depth > 4 {
            return None;
        }
        if !value.is_key {
            return match value.cursor.text(bytes_max)? {
                Text::Plain(text) => Some(text),
                Text::Null => None,
                Text::Pooled(key) => {
                    let class = self.types.named("java.lang.String")?;
                    let place = self.pools.place(class.id, key)?;
                    match Cursor::new(self.bytes, place).text(bytes_max)? {
                        Text::Plain(text) => Some(text),
                        Text::Null | Text::Pooled(_) => None,
                    }
                }
            };
        }
        let key = value.cursor.varint()?;
        self.constant_text_within((value.class, key), depth, bytes_max)
    }

    /// The text of a constant: its name field, else the first text field.
    pub(super) fn constant_text(&self, class: i64, key: i64) -> Option<String> {
        self.constant_text_within((class, key), 0, TEXT_BYTES_MAX)
    }

    fn constant_text_within(
        &self,
        (class, key): (i64, i64),
        depth: usize,
        bytes_max: usize,
    ) -> Option<String> {
        let class = self.types.class(class)?;
        if class.name == "java.lang.String" {
            let place = self.pools.place(class.id, key)?;
            let cursor = Cursor::new(self.bytes, place);
            let value = Value {
                cursor,
                class: class.id,
                is_key: false,
            };
            return self.text_within(value, depth + 1, bytes_max);
        }
        let names = ["name", "string", "description"];
        let named = class
            .fields
            .iter()
            .find(|field| names.contains(&field.name.as_str()));
        let is_text = |field: &&Field| field.shape == Shape::Text && !field.is_array;
        let field = named.or_else(|| class.fields.iter().find(is_text))?;
        self.text_within(self.field(class, key, &field.name)?, depth + 1, bytes_max)
    }
}

/// A located value that was not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'b> {
    pub(super) cursor: Cursor<'b>,
    pub(super) class: i64,
    pub(super) is_key: bool,
}

impl Value<'_> {
    /// Class and key of the constant that it refers to, if any: equal references have equal text.
    pub(super) fn constant(mut self) -> Option<(i64, i64)> {
        /// Not a class id.
        const POOLED: i64 = i64::MIN;
        if self.is_key {
            return Some((self.class, self.cursor.varint()?));
        }
        Some((POOLED, self.cursor.pooled()?))
    }
}
