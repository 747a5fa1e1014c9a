//! Declarations of a trace's metadata, the same for CTF 1.8 and CTF 2.
//!
//! Both metadata parsers produce them, and the decode plan is compiled from them. Where CTF 1.8
//! gives fields a meaning by reserved names, its parser sets the [`Role`] that CTF 2 would declare.

/// Version of the format of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// CTF 1.8: metadata in TSDL.
    V1,
    /// CTF 2: metadata in JSON text sequences.
    V2,
}

/// Byte order of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Which bit of the value the first bit read is (CTF 2 only; 1.8 follows the byte order).
///
/// The byte order alone determines from which end of a byte bits are read: the least significant in
/// little endian, the most significant in big endian. `LeastFirst` with little endian and
/// `MostFirst` with big endian are thus the usual layouts; the other two reverse the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOrder {
    /// The first bit read is the least significant one of the value.
    LeastFirst,
    /// The first bit read is the most significant one of the value.
    MostFirst,
}

impl ByteOrder {
    /// The bit order of an integer in the usual layout.
    pub fn usual_bit_order(self) -> BitOrder {
        match self {
            ByteOrder::Little => BitOrder::LeastFirst,
            ByteOrder::Big => BitOrder::MostFirst,
        }
    }
}

/// Encoding of a text field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    /// Also ASCII.
    Utf8,
    /// UTF-16, least significant byte first.
    Utf16Little,
    /// UTF-16, most significant byte first.
    Utf16Big,
    /// UTF-32, least significant byte first.
    Utf32Little,
    /// UTF-32, most significant byte first.
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

/// All declarations of a trace's metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceClass {
    /// Version of the format.
    pub version: Version,
    /// Id of the trace, repeated in its packets.
    pub uuid: Option<[u8; 16]>,
    /// Native byte order of a 1.8 trace (also the order of the packet magic).
    pub byte_order: ByteOrder,
    /// Name and namespace, in CTF 2.
    pub name: Option<String>,
    /// Start of each packet: magic number, uuid, stream class id.
    pub packet_header: Option<StructClass>,
    /// Facts about tracer and host, by name, in the order of the metadata.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Clocks, referenced by index.
    pub clocks: Vec<ClockClass>,
    /// Stream classes, selected by id in packets.
    pub streams: Vec<StreamClass>,
}

/// Value of an environment entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentValue {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
}

/// A clock: conversion of its cycles to times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockClass {
    /// Name by which fields of CTF 1.8 refer to it.
    pub name: String,
    /// Id of the clock; equal ones are the same clock.
    pub uuid: Option<[u8; 16]>,
    /// Description for display.
    pub description: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    /// Offset of cycle 0 from the origin of the clock, in whole seconds.
    pub offset_seconds: i64,
    /// Added to `offset_seconds`; may be larger than a second or negative.
    pub offset_cycles: i64,
    /// Uncertainty of a reading, in cycles.
    pub precision: Option<u64>,
    /// Time is since the Unix epoch (1.8 `absolute`, CTF 2 origin `unix-epoch`). LTTng's 1.8 traces
    /// leave it false although they are relative to the epoch.
    pub absolute: bool,
}

/// A class of streams: the structures of their packets and events.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamClass {
    /// Id by which packet headers refer to it.
    pub id: u64,
    /// Name, in CTF 2.
    pub name: Option<String>,
    /// Index into [`TraceClass::clocks`].
    pub clock: Option<usize>,
    /// Follows the packet header: times, sizes, discarded events, CPU.
    pub packet_context: Option<StructClass>,
    /// Start of each event: id and time.
    pub event_header: Option<StructClass>,
    /// Context of all events of the stream.
    pub event_context: Option<StructClass>,
    /// Event classes, selected by id in event headers.
    pub events: Vec<EventClass>,
}

/// A class of events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventClass {
    /// Id by which event headers refer to it.
    pub id: u64,
    /// As declared, without quotes.
    pub name: String,
    /// `loglevel` of a user-space tracepoint.
    pub log_level: Option<i64>,
    /// `model.emf.uri`, a link to its documentation.
    pub emf_uri: Option<String>,
    /// Context of this class only.
    pub context: Option<StructClass>,
    /// Fields of the event; `None` if it has none.
    pub payload: Option<StructClass>,
}

/// The structures of a packet and its events, in byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Start of each packet.
    PacketHeader,
    /// Follows the packet header.
    PacketContext,
    /// Start of each event.
    EventHeader,
    /// Common to all events of the stream.
    EventContext,
    /// Of one event class.
    SpecificContext,
    /// Fields of the event itself.
    Payload,
}

/// A structure: members one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct StructClass {
    /// In byte order.
    pub members: Vec<Member>,
    /// In bits, at least 1; includes the maximum of its members.
    pub alignment: u32,
}

/// A named part of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// One leading underscore is stripped in CTF 1.8 (LTTng adds it), none in CTF 2.
    pub name: String,
    /// Class of the member.
    pub class: FieldClass,
}

/// A field that contains a length or selects an option: always absolute, resolved by the parser.
/// The path contains names of structure members only: array elements (the one being decoded) and
/// variant options (the selected one) are implicit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldLocation {
    /// Structure in which the path starts.
    pub scope: Scope,
    /// Member names, outermost first; never empty.
    pub path: Vec<String>,
}

/// Meaning of a field for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The packet magic, 0xC1FC1FC1.
    PacketMagic,
    /// Id of the trace, in packet headers.
    MetadataUuid,
    /// Id of the stream class.
    StreamClassId,
    /// `stream_instance_id` of 1.8.
    StreamId,
    /// Size of the packet including padding, in bits.
    PacketTotalLength,
    /// Size of the packet without padding, in bits.
    PacketContentLength,
    /// Time of the end of the packet.
    PacketEndTimestamp,
    /// Start of the packet, or time of an event.
    Timestamp,
    /// Events that the stream has discarded since its start; wraps.
    DiscardedEvents,
    /// Number of the packet in its stream; a gap means lost packets.
    PacketSequenceNumber,
    /// Id of the event class.
    EventClassId,
    /// `cpu_id` of the packet context (no role in CTF 2; recognised by name there too).
    CpuId,
}

/// Type of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldClass {
    /// An integer of fixed size.
    Integer(IntegerClass),
    /// CTF 2 variable-length integer (LEB128).
    VariableInteger(IntegerClass),
    /// An IEEE 754 number.
    Float {
        /// Size; sizes other than 32 and 64 are skipped, not shown.
        bits: u32,
        /// Byte order.
        byte_order: ByteOrder,
        /// Bit order.
        bit_order: BitOrder,
        /// In bits.
        alignment: u32,
    },
    /// Terminated by a zero unit.
    Text {
        /// Encoding.
        encoding: TextEncoding,
    },
    /// Text with a maximum size in bytes, terminated by an earlier zero unit. Byte-aligned arrays
    /// of 8-bit characters of 1.8 are converted to this.
    StaticText {
        /// Size of the field.
        bytes: u64,
        /// Encoding.
        encoding: TextEncoding,
    },
    /// Text whose length is in another field.
    DynamicText {
        /// In bytes.
        length: FieldLocation,
        /// Encoding.
        encoding: TextEncoding,
    },
    /// The `uuid` of a 1.8 packet header is converted to this as well.
    StaticBlob {
        /// Size of the field.
        bytes: u64,
        /// Empty, or [`Role::MetadataUuid`].
        roles: Vec<Role>,
    },
    /// Bytes whose number is in another field.
    DynamicBlob {
        /// In bytes.
        length: FieldLocation,
    },
    /// A nested structure.
    Struct(StructClass),
    /// A fixed number of elements of the same class.
    Array {
        /// Class of each element.
        element: Box<FieldClass>,
        /// Number of elements.
        length: u64,
        /// Of the array itself, in bits.
        alignment: u32,
    },
    /// Elements whose number is in another field.
    Sequence {
        /// Class of each element.
        element: Box<FieldClass>,
        /// Number of elements.
        length: FieldLocation,
        /// Of the sequence itself, in bits.
        alignment: u32,
    },
    /// One of several classes, selected by another field.
    Variant {
        /// The selecting field.
        selector: FieldLocation,
        /// The options.
        options: Vec<VariantOption>,
    },
    /// A field whose presence depends on another field.
    Optional {
        /// The selecting field.
        selector: FieldLocation,
        /// Selector values for which the field is present; 1 for a boolean.
        ranges: Vec<Range>,
        /// Class of the field.
        class: Box<FieldClass>,
    },
}

impl FieldClass {
    /// Required alignment of a field, in bits. The content of a variant or an optional field aligns
    /// itself.
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

/// One option of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantOption {
    /// Name, if it has one.
    pub name: Option<String>,
    /// Selector values of this option.
    pub ranges: Vec<Range>,
    /// Class of the field.
    pub class: FieldClass,
}

/// Inclusive; wide enough for any signed or unsigned 64-bit value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Smallest value.
    pub first: i128,
    /// Largest value.
    pub last: i128,
}

/// Interpretation of an integer's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerKind {
    /// An unsigned number.
    Unsigned,
    /// A two's complement number.
    Signed,
    /// Zero is false.
    Boolean,
    /// Named bits.
    BitMap,
}

/// Type of an integer, also of enumerations and flags.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerClass {
    /// Size; 0 for variable-length. More than 64 is legal and is skipped, not shown.
    pub bits: u32,
    /// Interpretation of its bits.
    pub kind: IntegerKind,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Bit order.
    pub bit_order: BitOrder,
    /// In bits.
    pub alignment: u32,
    /// Preferred base for display: 2, 8, 10, 16.
    pub base: u32,
    /// `encoding` UTF8 or ASCII on an 8-bit integer: an array of it is text even if it is not
    /// byte-aligned (others are [`FieldClass::StaticText`] and [`FieldClass::DynamicText`]).
    pub is_text: bool,
    /// Index into [`TraceClass::clocks`] if it is a time of that clock.
    pub clock: Option<usize>,
    /// Meaning for the reader.
    pub roles: Vec<Role>,
    /// Labels; empty unless it is an enumeration (or the flags of a bit map).
    pub mappings: Vec<Mapping>,
}

/// A label of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Text of the label.
    pub label: String,
    /// Values with this label; for a bit map, bits.
    pub ranges: Vec<Range>,
}
