//! Decoded field values, borrowed from the buffer they were read from.

/// One decoded field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// The event has no such field (or an optional one was absent).
    Absent,
    /// Unsigned integers, enumerations, booleans, bit maps.
    Unsigned(u64),
    /// Signed integers and enumerations.
    Signed(i64),
    /// Floating-point numbers of any size.
    Float(f64),
    /// Strings and text arrays, without the terminating NUL; not checked to be UTF-8.
    Str(&'a [u8]),
    /// Arrays and sequences of byte-sized integers, and blobs.
    Bytes(&'a [u8]),
    /// Arrays and sequences of other integers (sign-extended to 64 bits where signed).
    Ints(&'a [u64]),
}

impl<'a> Value<'a> {
    /// An integer, signed or not; an unsigned one above `i64::MAX` wraps. `None` for everything
    /// else.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::Unsigned(value) => Some(value as i64),
            Value::Signed(value) => Some(value),
            _ => None,
        }
    }

    /// The same as an unsigned number; a negative one wraps.
    pub fn as_u64(self) -> Option<u64> {
        self.as_i64().map(|value| value as u64)
    }

    /// The lowest 32 bits of an integer, as in a C `int`.
    pub fn as_i32(self) -> Option<i32> {
        self.as_i64().map(|value| value as i32)
    }

    /// Bytes of a string or blob.
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Str(bytes) | Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}
