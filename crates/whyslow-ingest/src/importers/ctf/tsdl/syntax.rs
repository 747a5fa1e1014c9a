//! The syntax tree of a TSDL text: blocks with attributes, and types with resolved names.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::class::{ByteOrder, Mapping};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Trace,
    Environment,
    Clock,
    Stream,
    Event,
}

#[derive(Debug)]
pub(super) struct Block<'t> {
    pub(super) kind: BlockKind,
    pub(super) offset: usize,
    pub(super) attributes: Vec<Attribute<'t>>,
}

#[derive(Debug)]
pub(super) struct Attribute<'t> {
    /// Dotted, as in `packet.header`.
    pub(super) name: Cow<'t, str>,
    pub(super) offset: usize,
    pub(super) value: Value<'t>,
}

#[derive(Debug)]
pub(super) enum Value<'t> {
    Text(Cow<'t, str>),
    Integer(i128),
    /// A word, or several separated by dots, such as `le` or `clock.monotonic.value`.
    Word(Cow<'t, str>),
    Type(Type<'t>),
}

/// Cheap to clone; repeated types share everything except the offset.
#[derive(Debug, Clone)]
pub(super) struct Type<'t> {
    pub(super) offset: usize,
    /// Nesting depth of the content; bounded, so that walks and drops may recurse.
    pub(super) depth: u16,
    pub(super) kind: Rc<Kind<'t>>,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    Integer(IntegerType),
    Enumeration {
        container: IntegerType,
        mappings: Vec<Mapping>,
    },
    Float {
        bits: u32,
        /// `None` is the native order of the trace.
        byte_order: Option<ByteOrder>,
        alignment: u32,
    },
    Text,
    Struct {
        members: Vec<Field<'t>>,
        alignment: u32,
    },
    Array {
        element: Type<'t>,
        length: u64,
    },
    Sequence {
        element: Type<'t>,
        length: Reference<'t>,
    },
    Variant {
        /// Absent in a declaration that is used with different tags.
        tag: Option<Reference<'t>>,
        options: Rc<[Field<'t>]>,
    },
    /// An undeclared name, which is an error only where it is used.
    Unknown(String),
}

#[derive(Debug, Clone)]
pub(super) struct IntegerType {
    pub(super) bits: u32,
    pub(super) signed: bool,
    /// `None` is the native order of the trace.
    pub(super) byte_order: Option<ByteOrder>,
    pub(super) alignment: u32,
    pub(super) base: u32,
    pub(super) is_text: bool,
    pub(super) clock: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Field<'t> {
    /// As written, with underscores.
    pub(super) name: &'t str,
    pub(super) class: Type<'t>,
}

/// A path to another field, as written but without spaces.
#[derive(Debug, Clone)]
pub(super) struct Reference<'t> {
    pub(super) offset: usize,
    pub(super) dotted: Cow<'t, str>,
}

/// LTTng prefixes field names with an underscore, so that they cannot be reserved words.
pub(super) fn strip_underscore(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}
