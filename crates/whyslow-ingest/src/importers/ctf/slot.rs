//! Values of requested fields, as the decoder stores them.

/// A value as the decoder stores it: a number, or a position instead of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) kind: SlotKind,
    /// Length of text and bytes.
    pub(super) len: u32,
    /// The number, the first byte in the window, or the column.
    pub(super) bits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Absent,
    Unsigned,
    Signed,
    Float,
    Str,
    Bytes,
    Ints,
}

impl Slot {
    pub(super) const ABSENT: Slot = Slot {
        kind: SlotKind::Absent,
        len: 0,
        bits: 0,
    };

    pub(super) fn ints(column: u16) -> Slot {
        Slot {
            kind: SlotKind::Ints,
            len: 0,
            bits: u64::from(column),
        }
    }

    /// The value of an integer, sign-extended to 64 bits.
    pub(super) fn integer(self) -> Option<u64> {
        matches!(self.kind, SlotKind::Unsigned | SlotKind::Signed).then_some(self.bits)
    }
}
