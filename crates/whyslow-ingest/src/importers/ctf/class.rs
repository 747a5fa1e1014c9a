//! What the metadata of a trace declares, the same for CTF 1.8 and CTF 2.
//!
//! The two metadata parsers make it, the decode plan is compiled from it. Where CTF 1.8 gives
//! fields a meaning by magic names, its parser sets the [`Role`] that CTF 2 would write.

/// Which version of the format the metadata was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// CTF 1.8: metadata in TSDL.
    V1,
    /// CTF 2: metadata in JSON text sequences.
    V2,
}

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Which bit of the value the first bit read is (CTF 2 only; 1.8 follows the byte order).
///
/// The byte order alone tells from which end of a byte bits are read: the least significant in
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

/// Everything that the metadata of a trace declares.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceClass {
    /// Version of the format.
    pub version: Version,
    /// Number of the trace, which its packets repeat.
    pub uuid: Option<[u8; 16]>,
    /// Native byte order of a 1.8 trace (also the order of the packet magic).
    pub byte_order: ByteOrder,
    /// Name and namespace, where CTF 2 gives them.
    pub name: Option<String>,
    /// What each packet begins with: magic number, uuid, id of the stream class.
    pub packet_header: Option<StructClass>,
    /// Facts about tracer and host, by name, in the order of the metadata.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Clocks that fields refer to by index.
    pub clocks: Vec<ClockClass>,
    /// Stream classes; packets choose one by its id.
    pub streams: Vec<StreamClass>,
}

/// Value of a fact in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentValue {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
}

/// A clock: how its cycles become times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockClass {
    /// Name that fields of CTF 1.8 refer to it by.
    pub name: String,
    /// Number of the clock; equal ones are the same clock.
    pub uuid: Option<[u8; 16]>,
    /// For people.
    pub description: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    /// Offset of cycle 0 from the origin of the clock, in whole seconds.
    pub offset_seconds: i64,
    /// Added to `offset_seconds`; may be larger than a second or negative.
    pub offset_cycles: i64,
    /// Uncertainty of a reading, in cycles.
    pub precision: Option<u64>,
    /// Time is since the Unix epoch (1.8 `absolute`, CTF 2 origin `unix-epoch`). LTTng's 1.8
    /// traces leave it false and are nevertheless relative to the epoch.
    pub absolute: bool,
}

/// A class of streams: the structures of their packets and events.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamClass {
    /// Number that packet headers refer to it by.
    pub id: u64,
    /// Name, where CTF 2 gives one.
    pub name: Option<String>,
    /// Index into [`TraceClass::clocks`].
    pub clock: Option<usize>,
    /// What follows the packet header: times, sizes, discarded events, CPU.
    pub packet_context: Option<StructClass>,
    /// What each event begins with: id and time.
    pub event_header: Option<StructClass>,
    /// Context that all events of the stream have.
    pub event_context: Option<StructClass>,
    /// Event classes; event headers choose one by its id.
    pub events: Vec<EventClass>,
}

/// A class of events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventClass {
    /// Number that event headers refer to it by.
    pub id: u64,
    /// As declared, without the quotes.
    pub name: String,
    /// `loglevel` of a user-space tracepoint.
    pub log_level: Option<i64>,
    /// `model.emf.uri`, a link to its documentation.
    pub emf_uri: Option<String>,
    /// Context of this class alone.
    pub context: Option<StructClass>,
    /// Fields of the event; `None` if it has none.
    pub payload: Option<StructClass>,
}

/// The structures of a packet and its events, in the order of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Begins each packet.
    PacketHeader,
    /// Follows the packet header.
    PacketContext,
    /// Begins each event.
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
    /// In the order of the bytes.
    pub members: Vec<Member>,
    /// In bits, at least 1; already the maximum with those of its members.
    pub alignment: u32,
}

/// A named part of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// One leading underscore is stripped in CTF 1.8 (LTTng adds it), none in CTF 2.
    pub name: String,
    /// What it is.
    pub class: FieldClass,
}

/// A field that tells a length or selects an option: always absolute, resolved by the parser.
/// The path holds names of structure members only: elements of an array add nothing (the one
/// being decoded is meant), neither do options of a variant (the selected one is meant).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldLocation {
    /// Structure that the path begins in.
    pub scope: Scope,
    /// Names of members, from the outside in; never empty.
    pub path: Vec<String>,
}

/// What a field means to the reader itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The packet magic, 0xC1FC1FC1.
    PacketMagic,
    /// Number of the trace, in packet headers.
    MetadataUuid,
    /// Id of the stream class.
    StreamClassId,
    /// `stream_instance_id` of 1.8.
    StreamId,
    /// Size of the packet with padding, in bits.
    PacketTotalLength,
    /// Size of the packet without padding, in bits.
    PacketContentLength,
    /// Time of the end of the packet.
    PacketEndTimestamp,
    /// Begin of the packet, or time of an event.
    Timestamp,
    /// Events that the stream has discarded since its beginning; wraps.
    DiscardedEvents,
    /// Number of the packet in its stream; a gap is lost packets.
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
        /// Size; other sizes than 32 and 64 are skipped, not shown.
        bits: u32,
        /// Order of its bytes.
        byte_order: ByteOrder,
        /// Order of its bits.
        bit_order: BitOrder,
        /// In bits.
        alignment: u32,
    },
    /// Ends with a zero unit.
    Text {
        /// How characters are stored.
        encoding: TextEncoding,
    },
    /// Text of a length in bytes, which ends at a zero unit before that. Byte-aligned arrays of
    /// 8-bit characters of 1.8 become this.
    StaticText {
        /// Size of the field.
        bytes: u64,
        /// How characters are stored.
        encoding: TextEncoding,
    },
    /// Text whose length is in another field.
    DynamicText {
        /// In bytes.
        length: FieldLocation,
        /// How characters are stored.
        encoding: TextEncoding,
    },
    /// The `uuid` of a 1.8 packet header becomes this as well.
    StaticBlob {
        /// Size of the field.
        bytes: u64,
        /// Nothing or [`Role::MetadataUuid`].
        roles: Vec<Role>,
    },
    /// Bytes whose number is in another field.
    DynamicBlob {
        /// In bytes.
        length: FieldLocation,
    },
    /// A structure in a structure.
    Struct(StructClass),
    /// A fixed number of equal elements.
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
    /// One of several classes, chosen by another field.
    Variant {
        /// Field that chooses.
        selector: FieldLocation,
        /// What it may choose.
        options: Vec<VariantOption>,
    },
    /// A field that is there or not, by another field.
    Optional {
        /// Field that decides.
        selector: FieldLocation,
        /// Values with which it is there; for a boolean 1.
        ranges: Vec<Range>,
        /// Class of the field.
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

/// One option of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantOption {
    /// Name, where it has one.
    pub name: Option<String>,
    /// Values of the selector that choose this option.
    pub ranges: Vec<Range>,
    /// Class of the field.
    pub class: FieldClass,
}

/// Inclusive; wide enough for any signed or unsigned 64-bit value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Least value.
    pub first: i128,
    /// Greatest value.
    pub last: i128,
}

/// What the bits of an integer mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerKind {
    /// A number without sign.
    Unsigned,
    /// A number in two's complement.
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
    /// What its bits mean.
    pub kind: IntegerKind,
    /// Order of its bytes.
    pub byte_order: ByteOrder,
    /// Order of its bits.
    pub bit_order: BitOrder,
    /// In bits.
    pub alignment: u32,
    /// Preferred base for people: 2, 8, 10, 16.
    pub base: u32,
    /// `encoding` UTF8 or ASCII on an 8-bit integer: an array of it is text even if it is not
    /// byte-aligned (others are [`FieldClass::StaticText`] and [`FieldClass::DynamicText`]).
    pub is_text: bool,
    /// Index into [`TraceClass::clocks`] if it is a time of that clock.
    pub clock: Option<usize>,
    /// What it means to the reader.
    pub roles: Vec<Role>,
    /// Labels; empty unless an enumeration (or the flags of a bit map).
    pub mappings: Vec<Mapping>,
}

/// A label of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Text of the label.
    pub label: String,
    /// Values that have it; of a bit map, bits.
    pub ranges: Vec<Range>,
}
