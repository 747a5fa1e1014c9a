//! Fields that a consumer requests.

use super::class::Scope;

/// What a consumer needs of the events of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Nothing: its events are counted by the reader and not delivered.
    Nothing,
    /// These fields; the n-th is slot n of [`super::decoded::DecodedEvent::value`]. A field that the
    /// class lacks is always [`crate::importers::tracepoint::value::Value::Absent`].
    Fields(Vec<FieldName>),
    /// Every field, in byte order; their names are [`super::reader::CtfReader::fields`]. Arrays of
    /// structures yield integers only.
    Everything,
}

/// Location of a field: a scope, and a dotted path without the leading underscore of CTF 1.8.
///
/// A path through a variant may name the option or omit it (then the selected option is meant). A
/// path through an array of structures collects the integers of all its elements in one
/// [`crate::importers::tracepoint::value::Value::Ints`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldName {
    /// Structure that contains the field.
    pub scope: Scope,
    /// Member names, separated by dots.
    pub path: String,
}

impl FieldName {
    /// A field of any structure.
    pub fn new(scope: Scope, path: impl Into<String>) -> FieldName {
        FieldName {
            scope,
            path: path.into(),
        }
    }

    /// A field of the event itself.
    pub fn payload(path: impl Into<String>) -> FieldName {
        FieldName::new(Scope::Payload, path)
    }

    /// A context of all events of the stream, where LTTng puts `tid`, `procname` etc.
    pub fn context(path: impl Into<String>) -> FieldName {
        FieldName::new(Scope::EventContext, path)
    }
}
