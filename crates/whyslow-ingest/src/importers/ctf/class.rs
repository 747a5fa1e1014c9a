//! What the metadata of a trace declares, the same for CTF 1.8 and CTF 2.
//!
//! The two metadata parsers make it, the decode plan is compiled from it. Where CTF 1.8 gives
//! fields a meaning by magic names, its parser sets the [`Role`] that CTF 2 would write.

/// Which version of the format the metadata was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// Which bit of the value the first bit read is (CTF 2 only; 1.8 follows the byte order).
///
/// The byte order alone tells from which end of a byte bits are read: the least significant in
/// little endian, the most significant in big endian. `LeastFirst` with little endian and
/// `MostFirst` with big endian are thus the usual layouts; the other two reverse the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOrder {
    LeastFirst,
    MostFirst,
}

impl ByteOrder {
    /// The bit order of an integer that is stored the usual way.
    pub fn usual_bit_order(self) -> BitOrder {
        match self {
            ByteOrder::Little => BitOrder::LeastFirst,
            ByteOrder::Big => BitOrder::MostFirst,
        }
    }
}

/// How the characters of a text field are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    /// Also ASCII.
    Utf8,
    Utf16Little,
    Utf16Big,
    Utf32Little,
    Utf32Big,
}

impl TextEncoding {
    /// Size of one unit, and of the terminator.
    pub fn unit_bytes(self) -> u32 {
        match self {
            TextEncoding::Utf8 => 1,
            TextEncoding::Utf16Little | TextEncoding::Utf16Big => 2,
            TextEncoding::Utf32Little | TextEncoding::Utf32Big => 4,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TraceClass {
    pub version: Version,
    pub uuid: Option<[u8; 16]>,
    /// Native byte order of a 1.8 trace (also the order of the packet magic).
    pub byte_order: ByteOrder,
    /// Name and namespace, where CTF 2 gives them.
    pub name: Option<String>,
    pub packet_header: Option<StructClass>,
    pub environment: Vec<(String, EnvironmentValue)>,
    pub clocks: Vec<ClockClass>,
    pub streams: Vec<StreamClass>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentValue {
    Text(String),
    Integer(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockClass {
    pub name: String,
    pub uuid: Option<[u8; 16]>,
    pub description: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    pub offset_seconds: i64,
    /// Added to `offset_seconds`; may be larger than a second or negative.
    pub offset_cycles: i64,
    pub precision: Option<u64>,
    /// Time is since the Unix epoch (1.8 `absolute`, CTF 2 origin `unix-epoch`). LTTng's 1.8
    /// traces leave it false and are nevertheless relative to the epoch.
    pub absolute: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StreamClass {
    pub id: u64,
    pub name: Option<String>,
    /// Index into [`TraceClass::clocks`].
    pub clock: Option<usize>,
    pub packet_context: Option<StructClass>,
    pub event_header: Option<StructClass>,
    pub event_context: Option<StructClass>,
    pub events: Vec<EventClass>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EventClass {
    pub id: u64,
    /// As declared, without the quotes.
    pub name: String,
    pub log_level: Option<i64>,
    pub emf_uri: Option<String>,
    pub context: Option<StructClass>,
    pub payload: Option<StructClass>,
}

/// The structures of a packet and its events, in the order of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    PacketHeader,
    PacketContext,
    EventHeader,
    /// Common to all events of the stream.
    EventContext,
    /// Of one event class.
    SpecificContext,
    Payload,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StructClass {
    pub members: Vec<Member>,
    /// In bits, at least 1; already the maximum with those of its members.
    pub alignment: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// One leading underscore is stripped in CTF 1.8 (LTTng adds it), none in CTF 2.
    pub name: String,
    pub class: FieldClass,
}

/// A field that tells a length or selects an option: always absolute, resolved by the parser.
/// The path holds names of structure members only: elements of an array add nothing (the one
/// being decoded is meant), neither do options of a variant (the selected one is meant).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldLocation {
    pub scope: Scope,
    pub path: Vec<String>,
}

/// What a field means to the reader itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    PacketMagic,
    MetadataUuid,
    StreamClassId,
    /// `stream_instance_id` of 1.8.
    StreamId,
    PacketTotalLength,
    PacketContentLength,
    PacketEndTimestamp,
    /// Begin of the packet, or time of an event.
    Timestamp,
    DiscardedEvents,
    PacketSequenceNumber,
    EventClassId,
    /// `cpu_id` of the packet context (no role in CTF 2; recognised by name there too).
    CpuId,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FieldClass {
    Integer(IntegerClass),
    /// CTF 2 variable-length integer (LEB128).
    VariableInteger(IntegerClass),
    Float {
        bits: u32,
        byte_order: ByteOrder,
        bit_order: BitOrder,
        alignment: u32,
    },
    /// Ends with a zero unit.
    Text {
        encoding: TextEncoding,
    },
    /// Text of a length in bytes, which ends at a zero unit before that. Byte-aligned arrays of
    /// 8-bit characters of 1.8 become this.
    StaticText {
        bytes: u64,
        encoding: TextEncoding,
    },
    DynamicText {
        /// In bytes.
        length: FieldLocation,
        encoding: TextEncoding,
    },
    /// The `uuid` of a 1.8 packet header becomes this as well.
    StaticBlob {
        bytes: u64,
        /// Nothing or [`Role::MetadataUuid`].
        roles: Vec<Role>,
    },
    DynamicBlob {
        length: FieldLocation,
    },
    Struct(StructClass),
    Array {
        element: Box<FieldClass>,
        length: u64,
        alignment: u32,
    },
    Sequence {
        element: Box<FieldClass>,
        length: FieldLocation,
        alignment: u32,
    },
    Variant {
        selector: FieldLocation,
        options: Vec<VariantOption>,
    },
    Optional {
        selector: FieldLocation,
        ranges: Vec<Range>,
        class: Box<FieldClass>,
    },
}

impl FieldClass {
    /// Where a field may begin, in bits. What a variant or an optional field holds aligns itself.
    pub fn alignment(&self) -> u32 {
        match self {
            FieldClass::Integer(integer) => integer.alignment,
            FieldClass::Float { alignment, .. }
            | FieldClass::Array { alignment, .. }
            | FieldClass::Sequence { alignment, .. } => *alignment,
            FieldClass::VariableInteger(_)
            | FieldClass::Text { .. }
            | FieldClass::StaticText { .. }
            | FieldClass::DynamicText { .. }
            | FieldClass::StaticBlob { .. }
            | FieldClass::DynamicBlob { .. } => 8,
            FieldClass::Struct(class) => class.alignment,
            FieldClass::Variant { .. } | FieldClass::Optional { .. } => 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct VariantOption {
    pub name: Option<String>,
    /// Values of the selector that choose this option.
    pub ranges: Vec<Range>,
    pub class: FieldClass,
}

/// Inclusive; wide enough for any signed or unsigned 64-bit value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub first: i128,
    pub last: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerKind {
    Unsigned,
    Signed,
    Boolean,
    /// Named bits.
    BitMap,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IntegerClass {
    /// Size; 0 for variable-length. More than 64 is legal and is skipped, not shown.
    pub bits: u32,
    pub kind: IntegerKind,
    pub byte_order: ByteOrder,
    pub bit_order: BitOrder,
    pub alignment: u32,
    /// Preferred base for people: 2, 8, 10, 16.
    pub base: u32,
    /// `encoding` UTF8 or ASCII on an 8-bit integer: an array of it is text even if it is not
    /// byte-aligned (others are [`FieldClass::StaticText`] and [`FieldClass::DynamicText`]).
    pub is_text: bool,
    /// Index into [`TraceClass::clocks`] if it is a time of that clock.
    pub clock: Option<usize>,
    pub roles: Vec<Role>,
    /// Labels; empty unless an enumeration (or the flags of a bit map).
    pub mappings: Vec<Mapping>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub label: String,
    pub ranges: Vec<Range>,
}
