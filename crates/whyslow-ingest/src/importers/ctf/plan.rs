//! Decoding instructions for one structure or event, compiled once from its classes.
//!
//! A plan is a flat list of operations. Everything at a known position relative to the last item of
//! unknown size (a string, a sequence, a variant) is one [`Op::Run`]: one bounds check for the
//! whole part, and one [`Load`] for each requested field. Other fields cost nothing inside a run.
//! Operations that contain others (`Repeat`, `Choose`) are followed by the operations they contain.

use super::class::{ByteOrder, Role};
use super::slot::{Slot, SlotKind};
use super::want::FieldName;

/// In [`Load::slot`] and the like: the value is not requested.
pub(super) const NO_SLOT: u16 = u16::MAX;
/// In [`Load::also`]: the value has no other use.
pub(super) const NOTHING_ELSE: u16 = u16::MAX;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) ops: Vec<Op>,
    pub(super) loads: Vec<Load>,
    pub(super) odd: Vec<OddLoad>,
    pub(super) also: Vec<Also>,
    pub(super) choices: Vec<Choice>,
    /// Selector values, inclusive, in the order of unsigned comparison.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Slots that may stay unset, with their default.
    pub(super) resets: Vec<(u16, Slot)>,
    /// Columns to which operations append.
    pub(super) clears: Vec<u16>,
    /// Fields requested twice: from slot, to slot.
    pub(super) copies: Vec<(u16, u16)>,
    /// Number of slots and columns that the decoder must provide.
    pub(super) slots: usize,
    pub(super) columns: usize,
    /// Names of the slots, if everything was requested.
    pub(super) names: Vec<FieldName>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// To the next multiple of `bits` from the packet's start.
    Align { bits: u32 },
    /// A part of known size; `loads[first..first + count]` of it are requested.
    Run { bits: u32, first: u32, count: u32 },
    /// Up to the terminating zero.
    Text { unit_bytes: u32, slot: u16 },
    /// Variable-length integer.
    Leb { signed: bool, slot: u16, also: u16 },
    /// Bytes from a byte boundary.
    Bytes {
        count: Count,
        kind: BytesKind,
        slot: u16,
    },
    /// Integers of one size, each aligned; the position is already aligned for the first. They are
    /// appended to the column.
    Ints {
        count: Count,
        element: Element,
        slot: u16,
        column: u16,
    },
    /// Structures of one size of which only integers are requested: a `Repeat` of one run.
    Rows { count: Count, rows: Rows },
    /// Repeats the next `ops` operations.
    Repeat { count: Count, ops: u32 },
    /// One of `choices[first..first + count]`, then continues after `ops` operations.
    Choose {
        selector: u16,
        bias: u64,
        first: u32,
        count: u32,
        ops: u32,
        optional: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Count {
    Fixed(u64),
    Register(u16),
}

/// Elements of an array of integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Element {
    pub(super) load: Load,
    /// From one element to the next.
    pub(super) stride_bits: u32,
    /// Elements are bytes (or text): stored unchanged if they are on a byte boundary.
    pub(super) as_bytes: Option<BytesKind>,
}

/// Elements of an array of structures, each integer of which goes to a column of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) bits: u32,
    pub(super) alignment: u32,
    /// From one element to the next.
    pub(super) stride_bits: u32,
    /// `loads[first..first + count]`, with offsets from the start of the element.
    pub(super) first: u32,
    pub(super) count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytesKind {
    /// Ends at the first zero unit, or at the end of the field.
    Text {
        unit_bytes: u8,
    },
    Blob,
}

/// One requested field inside a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) kind: LoadKind,
    /// Kind of the resulting slot.
    pub(super) gives: SlotKind,
    pub(super) bits: u8,
    pub(super) slot: u16,
    /// Index into [`Plan::also`].
    pub(super) also: u16,
    /// Bits from the start of the run.
    pub(super) offset: u32,
    /// Bytes of a text or blob; index into [`Plan::odd`] for an odd one.
    pub(super) extent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// Within one 64-bit word that starts at the first byte of the field.
    Little,
    Big,
    /// On a byte boundary, up to the first zero.
    Text,
    /// The same in units of [`Load::bits`].
    WideText,
    Blob,
    /// Everything rare: floats, unusual bit order, more than a word.
    Odd,
}

impl LoadKind {
    #[inline]
    pub(super) fn is_integer(self) -> bool {
        matches!(self, LoadKind::Little | LoadKind::Big)
    }
}

/// A field that takes longer to read than usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OddLoad {
    pub(super) bits: u32,
    pub(super) byte_order: ByteOrder,
    /// The bit order does not match the byte order.
    pub(super) reversed: bool,
    pub(super) number: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned,
    Signed,
    Float,
}

/// Other uses of a value in addition to delivery to the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Also {
    /// Register for a later length or selector.
    pub(super) register: Option<u16>,
    pub(super) meaning: Meaning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    None,
    EventClassId,
    /// The lowest `bits` of the clock.
    Time {
        bits: u32,
    },
    /// Another value of a column (inside an array of structures).
    Element {
        column: u16,
    },
}

/// One option of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// Part of [`Plan::ranges`].
    pub(super) ranges: (u32, u32),
    /// Part of [`Plan::ops`].
    pub(super) ops: (u32, u32),
}

/// Reason why a class cannot be decoded at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The alignment, in bits.
    #[error("alignment of {0} bits is not a power of two up to {MAX_ALIGNMENT_BITS}")]
    Alignment(u32),
    /// Path of the length or selector.
    #[error("no preceding field for the length or selector `{0}`")]
    Location(String),
    /// Nesting of structures, arrays and variants.
    #[error("more than {MAX_DEPTH} nested classes")]
    Depth,
    /// Size of the field in bytes.
    #[error("a field of {0} bytes or more")]
    Size(u64),
    /// One structure with too many fields to number.
    #[error("more fields than {}", u16::MAX)]
    Fields,
}

/// Windows start at multiples of this, so greater alignments cannot be honoured.
pub(super) const MAX_ALIGNMENT_BITS: u32 = 1 << 15;
pub(super) const MAX_DEPTH: usize = 64;
/// Larger static sizes are an error in the metadata.
pub(super) const MAX_STATIC_BITS: u64 = 1 << 31;

/// Slots of the fields that describe a packet, see [`role_slot`].
pub(super) const ROLE_SLOTS: usize = 12;

/// Slot of a field with this role, in a plan compiled for roles.
pub(super) const fn role_slot(role: Role) -> u16 {
    match role {
        Role::PacketMagic => 0,
        Role::MetadataUuid => 1,
        Role::StreamClassId => 2,
        Role::StreamId => 3,
        Role::PacketTotalLength => 4,
        Role::PacketContentLength => 5,
        Role::PacketEndTimestamp => 6,
        Role::Timestamp => 7,
        Role::DiscardedEvents => 8,
        Role::PacketSequenceNumber => 9,
        Role::EventClassId => 10,
        Role::CpuId => 11,
    }
}
