//! Types: the layout of the values of each event and constant, as described in the chunk itself.

use rustc_hash::FxHashMap;

use super::bytes::{Cursor, NAME_BYTES_MAX, Text};

/// Maximum nesting depth of elements; those of real files are four deep.
const DEPTH_MAX: usize = 16;
/// Maximum nesting depth of values.
const NESTING_MAX: usize = 8;

/// Encoding of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number, or a key of a pool.
    Number,
    Byte,
    /// A fixed number of bytes: floating-point numbers.
    Fixed(usize),
    Text,
    /// Consecutive fields, of the class with this index.
    Struct(usize),
    /// Undescribed.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Class id; also the pool to look in if the value is a key.
    pub(super) class: i64,
    pub(super) is_key: bool,
    pub(super) is_array: bool,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// Encoding of its constants.
    pub(super) shape: Shape,
}

/// All classes of a chunk.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) classes: Vec<Class>,
    by_id: FxHashMap<i64, usize>,
}

impl Types {
    /// From the metadata event at `at`.
    pub(super) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, at);
        let size = usize::try_from(cursor.varint()?).ok()?;
        let end = at
            .checked_add(size)
            .filter(|end| *end <= bytes.len() && size > 0)?;
        let mut cursor = Cursor::new(&bytes[..end], cursor.at());
        if cursor.varint()? != 0 {
            return None;
        }
        // Start, duration, id of the metadata.
        for _ in 0..3 {
            cursor.varint()?;
        }
        let mut strings = Vec::new();
        for _ in 0..cursor.count()? {
            strings.push(match cursor.text(NAME_BYTES_MAX)? {
                Text::Plain(text) => text,
                Text::Null | Text::Pooled(_) => String::new(),
            });
        }
        let mut types = Self::default();
        Element::read(&mut cursor, &strings, 0, &mut types, None)?;
        types.settle();
        Some(types)
    }

    pub(super) fn class(&self, id: i64) -> Option<&Class> {
        self.by_id.get(&id).map(|at| &self.classes[*at])
    }

    pub(super) fn named(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }

    fn add(&mut self, class: Class) -> usize {
        let at = self.classes.len();
        self.by_id.insert(class.id, at);
        self.classes.push(class);
        at
    }

    /// Resolves the encoding of each field, now that all classes are known.
    fn settle(&mut self) {
        let by_id = &self.by_id;
        let shapes: Vec<Shape> = self
            .classes
            .iter()
            .enumerate()
            .map(|(at, class)| match class.name.as_str() {
                "boolean" | "byte" => Shape::Byte,
                "char" | "short" | "int" | "long" => Shape::Number,
                "float" => Shape::Fixed(4),
                "double" => Shape::Fixed(8),
                "java.lang.String" => Shape::Text,
                // A class without fields takes no bytes: an array of them could have a million
                // elements in no space.
                _ if class.fields.is_empty() => Shape::Unknown,
                _ => Shape::Struct(at),
            })
            .collect();
        for (class, shape) in self.classes.iter_mut().zip(&shapes) {
            class.shape = *shape;
            for field in &mut class.fields {
                let known = by_id.get(&field.class).map(|at| shapes[*at]);
                field.shape = if field.is_key {
                    Shape::Number
                } else {
                    known.unwrap_or(Shape::Unknown)
                };
            }
        }
    }

    /// Skips the value of a field.
    #[inline]
    pub(super) fn skip(&self, cursor: &mut Cursor<'_>, field: &Field) -> Option<()> {
        self.skip_nested(cursor, field, 0)
    }

    fn skip_nested(&self, cursor: &mut Cursor<'_>, field: &Field, nesting: usize) -> Option<()> {
        if !field.is_array {
            return self.skip_shape(cursor, field.shape, nesting);
        }
        for _ in 0..cursor.count()? {
            self.skip_shape(cursor, field.shape, nesting)?;
        }
        Some(())
    }

    pub(super) fn skip_value(&self, cursor: &mut Cursor<'_>, shape: Shape) -> Option<()> {
        self.skip_shape(cursor, shape, 0)
    }

    fn skip_shape(&self, cursor: &mut Cursor<'_>, shape: Shape, nesting: usize) -> Option<()> {
        match shape {
            Shape::Number => cursor.varint().map(|_| ()),
            Shape::Byte => cursor.skip(1),
            Shape::Fixed(bytes) => cursor.skip(bytes),
            Shape::Text => cursor.skip_text(),
            Shape::Struct(_) if nesting >= NESTING_MAX => None,
            Shape::Struct(at) => {
                for field in &self.classes[at].fields {
                    self.skip_nested(cursor, field, nesting + 1)?;
                }
                Some(())
            }
            Shape::Unknown => None,
        }
    }

    /// A cursor at the value of the named field.
    pub(super) fn field_of<'b, 't>(
        &'t self,
        (bytes, at): (&'b [u8], usize),
        class: &'t Class,
        name: &str,
    ) -> Option<(Cursor<'b>, &'t Field)> {
        let mut cursor = Cursor::new(bytes, at);
        for field in &class.fields {
            if field.name == name {
                return Some((cursor, field));
            }
            self.skip(&mut cursor, field)?;
        }
        None
    }
}

/// An element of the tree that describes the types: name, attributes, and child elements.
struct Element;

impl Element {
    /// Adds its classes to the types, and its fields to the enclosing class.
    fn read(
        cursor: &mut Cursor<'_>,
        strings: &[String],
        depth: usize,
        types: &mut Types,
        of_class: Option<usize>,
    ) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let name = string(cursor, strings)?;
        let mut attributes = Vec::new();
        for _ in 0..cursor.count()? {
            attributes.push((string(cursor, strings)?, string(cursor, strings)?));
        }
        let value = |name: &str| {
            let found = attributes.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| *value)
        };
        let number = |name: &str| value(name).and_then(|value| value.parse::<i64>().ok());
        let mut within = None;
        match (name, of_class) {
            ("class", _) => {
                within = Some(types.add(Class {
                    id: number("id")?,
                    name: value("name").unwrap_or_default().to_owned(),
                    fields: Vec::new(),
                    shape: Shape::Unknown,
                }));
            }
            ("field", Some(class)) => types.classes[class].fields.push(Field {
                name: value("name").unwrap_or_default().to_owned(),
                class: number("class")?,
                is_key: value("constantPool") == Some("true"),
                is_array: number("dimension").unwrap_or(0) > 0,
                shape: Shape::Unknown,
            }),
            _ => {}
        }
        for _ in 0..cursor.count()? {
            Self::read(cursor, strings, depth + 1, types, within)?;
        }
        Some(())
    }
}

fn string<'s>(cursor: &mut Cursor<'_>, strings: &'s [String]) -> Option<&'s str> {
    let index = usize::try_from(cursor.varint()?).ok()?;
    strings.get(index).map(String::as_str)
}
