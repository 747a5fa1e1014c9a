//! One event as the consumer gets it.

use super::value::Value;

/// One decoded event; borrowed from the reader until the consumer returns.
#[derive(Clone, Copy)]
pub struct DecodedEvent<'a> {
    /// Nanoseconds since the epoch, by the stream's clock; 0 if the stream has no clock.
    pub ts: i64,
    /// `cpu_id` of the packet.
    pub cpu: Option<i32>,
    /// Index of the event's class, see [`super::consumer::ClassRef::index`].
    pub class: usize,
    /// Index into [`super::reader::CtfReader::traces`].
    pub trace: usize,
    /// Index into [`super::reader::CtfReader::streams`].
    pub stream: usize,
    /// Byte in the stream's file where the event begins.
    pub offset: u64,
    pub(super) slots: &'a [Slot],
    pub(super) window: &'a [u8],
    pub(super) columns: &'a [Vec<u64>],
}

/// A value as the decoder stores it: places instead of references.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Slot {
    Absent,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Str { begin: u32, len: u32 },
    Bytes { begin: u32, len: u32 },
    Ints { column: u32 },
}

impl<'a> DecodedEvent<'a> {
    /// The n-th wanted field; absent if there is no such slot.
    #[inline]
    pub fn value(&self, slot: usize) -> Value<'a> {
        let Some(slot) = self.slots.get(slot) else {
            return Value::Absent;
        };
        match *slot {
            Slot::Absent => Value::Absent,
            Slot::Unsigned(value) => Value::Unsigned(value),
            Slot::Signed(value) => Value::Signed(value),
            Slot::Float(value) => Value::Float(value),
            Slot::Str { begin, len } => Value::Str(self.bytes(begin, len)),
            Slot::Bytes { begin, len } => Value::Bytes(self.bytes(begin, len)),
            Slot::Ints { column } => Value::Ints(&self.columns[column as usize]),
        }
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All slots in order.
    pub fn values(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let event = *self;
        (0..self.slots.len()).map(move |slot| event.value(slot))
    }

    fn bytes(&self, begin: u32, len: u32) -> &'a [u8] {
        &self.window[begin as usize..begin as usize + len as usize]
    }
}
