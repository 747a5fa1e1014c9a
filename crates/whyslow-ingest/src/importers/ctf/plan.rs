//! What to do with the bytes of one structure or event, compiled once from its classes.
//!
//! A plan is a flat list of operations. Everything whose place is known relative to the last
//! thing of unknown size (a string, a sequence, a variant) is one [`Op::Run`]: one bounds check
//! for the whole stretch, and one [`Load`] for each field that somebody wants. Fields that nobody
//! wants cost nothing inside a run. Operations that contain others (`Repeat`, `Choose`) are
//! followed by the operations they contain.

use super::class::{ByteOrder, Role};
use super::consumer::FieldName;
use super::decoded::{Slot, SlotKind};

/// In [`Load::slot`] and the like: nobody wants the value.
pub(super) const NO_SLOT: u16 = u16::MAX;
/// In [`Load::also`]: nothing else is done with the value.
pub(super) const NOTHING_ELSE: u16 = u16::MAX;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) ops: Vec<Op>,
    pub(super) loads: Vec<Load>,
    pub(super) odd: Vec<OddLoad>,
    pub(super) also: Vec<Also>,
    pub(super) choices: Vec<Choice>,
    /// Selector values, inclusive, in the order in which unsigned numbers compare.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Slots that the operations may leave alone, with what they are then.
    pub(super) resets: Vec<(u16, Slot)>,
    /// Columns to which operations append.
    pub(super) clears: Vec<u16>,
    /// Fields that were wanted twice: from slot, to slot.
    pub(super) copies: Vec<(u16, u16)>,
    /// How many slots and columns the decoder must offer.
    pub(super) slots: usize,
    pub(super) columns: usize,
    /// What the slots are, if everything was wanted.
    pub(super) names: Vec<FieldName>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    /// To the next multiple of so many bits from the packet's begin.
    Align { bits: u32 },
    /// A stretch of known size; `loads[first..first + count]` are wanted of it.
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
    /// Numbers of one size, each aligned; the position is already aligned for the first.
    /// They are appended to the column.
    Ints {
        count: Count,
        element: Element,
        slot: u16,
        column: u16,
    },
    /// Structures of one size of which only integers are wanted: a `Repeat` of one run.
    Rows { count: Count, rows: Rows },
    /// The next `ops` operations so many times.
    Repeat { count: Count, ops: u32 },
    /// One of `choices[first..first + count]`, then on after `ops` operations.
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

/// Elements of an array of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Element {
    pub(super) load: Load,
    /// From one element to the next.
    pub(super) stride_bits: u32,
    /// Elements are bytes (or text): given as they are where they lie on a byte boundary.
    pub(super) as_bytes: Option<BytesKind>,
}

/// Elements of an array of structures, each number of which goes to a column of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) bits: u32,
    pub(super) alignment: u32,
    /// From one element to the next.
    pub(super) stride_bits: u32,
    /// `loads[first..first + count]`, with offsets from the begin of the element.
    pub(super) first: u32,
    pub(super) count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytesKind {
    /// Ends at the first zero unit, or with its room.
    Text {
        unit_bytes: u8,
    },
    Blob,
}

/// One wanted field inside a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) kind: LoadKind,
    /// What the slot becomes.
    pub(super) gives: SlotKind,
    pub(super) bits: u8,
    pub(super) slot: u16,
    /// Index into [`Plan::also`].
    pub(super) also: u16,
    /// Bits from the begin of the run.
    pub(super) offset: u32,
    /// Bytes of a text or blob; index into [`Plan::odd`] for an odd one.
    pub(super) extent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadKind {
    /// Within one 64-bit word that begins at the byte where the field begins.
    Little,
    Big,
    /// On a byte boundary, up to the first zero.
    Text,
    /// The same in units of [`Load::bits`].
    WideText,
    Blob,
    /// Everything rare: floats, unusual order of bits, more than a word.
    Odd,
}

impl LoadKind {
    #[inline]
    pub(super) fn is_integer(self) -> bool {
        matches!(self, LoadKind::Little | LoadKind::Big)
    }
}

/// A field that takes longer to read than the usual ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OddLoad {
    pub(super) bits: u32,
    pub(super) byte_order: ByteOrder,
    /// The order of the bits is not the one that goes with the order of the bytes.
    pub(super) reversed: bool,
    pub(super) number: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned,
    Signed,
    Float,
}

/// What is done with a value besides giving it to the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Also {
    /// A later length or selector looks here.
    pub(super) register: Option<u16>,
    pub(super) meaning: Meaning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    None,
    EventClassId,
    /// The lowest so many bits of the clock.
    Time {
        bits: u32,
    },
    /// One more number of a column (inside an array of structures).
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

/// Why a class cannot be decoded at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The alignment, in bits.
    #[error("alignment of {0} bits is not a power of two up to {MAX_ALIGNMENT_BITS}")]
    Alignment(u32),
    /// Path of the length or selector.
    #[error("a length or selector `{0}` that no field before it provides")]
    Location(String),
    /// Structures, arrays and variants in each other.
    #[error("more than {MAX_DEPTH} nested classes")]
    Depth,
    /// Size of the field in bytes.
    #[error("a field of {0} bytes or more")]
    Size(u64),
    /// One structure with too many fields to number them.
    #[error("more fields than {}", u16::MAX)]
    Fields,
}

/// Windows begin at multiples of this, so greater alignments could not be honoured.
pub(super) const MAX_ALIGNMENT_BITS: u32 = 1 << 15;
pub(super) const MAX_DEPTH: usize = 64;
/// Static sizes above this are an error in the metadata.
pub(super) const MAX_STATIC_BITS: u64 = 1 << 31;

/// Slots of the fields by which a packet describes itself, see [`role_slot`].
pub(super) const ROLE_SLOTS: usize = 12;

/// Slot of a field with this role, when a plan is compiled for the roles.
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
