//! The tree of a TSDL text: blocks with attributes, and types whose names are already looked up.

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
pub(super) struct Block {
    pub(super) kind: BlockKind,
    pub(super) offset: usize,
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug)]
pub(super) struct Attribute {
    /// Dotted, as in `packet.header`.
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    /// A bare word or several with dots between, as `le` or `clock.monotonic.value`.
    Word(String),
    Type(Rc<Type>),
}

#[derive(Debug)]
pub(super) struct Type {
    pub(super) offset: usize,
    /// Of the deepest thing inside; bounded, so that walks and drops may recurse.
    pub(super) depth: u16,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Integer(IntegerType),
    Enumeration {
        container: IntegerType,
        mappings: Vec<Mapping>,
    },
    Float {
        bits: u32,
        /// `None` is the native one of the trace.
        byte_order: Option<ByteOrder>,
        alignment: u32,
    },
    Text,
    Struct {
        members: Vec<Field>,
        alignment: u32,
    },
    Array {
        element: Rc<Type>,
        length: u64,
    },
    Sequence {
        element: Rc<Type>,
        length: Reference,
    },
    Variant {
        /// Absent in a declaration that is to be used with different tags.
        tag: Option<Reference>,
        options: Rc<[Field]>,
    },
    /// A name nobody declared; only an error where it is used.
    Unknown(String),
}

#[derive(Debug, Clone)]
pub(super) struct IntegerType {
    pub(super) bits: u32,
    pub(super) signed: bool,
    /// `None` is the native one of the trace.
    pub(super) byte_order: Option<ByteOrder>,
    pub(super) alignment: u32,
    pub(super) base: u32,
    pub(super) is_text: bool,
    pub(super) clock: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    /// As written, with underscores.
    pub(super) name: String,
    pub(super) class: Rc<Type>,
}

/// A dotted path to another field, as written.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) offset: usize,
    pub(super) parts: Vec<String>,
}

/// LTTng puts an underscore before the names of fields, so that they cannot be reserved words.
pub(super) fn strip_underscore(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}
