//! The metadata file of a trace: its container, and the language of its content.
//!
//! The text is plain, or split into packets. A packet starts with a header of 37 bytes, whose
//! numbers are in the native byte order of the tracer:
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | magic `0x75D11D57` |
//! | 4–19 | uuid of the trace |
//! | 20–23 | checksum, not used |
//! | 24–27 | size of the content in bits, header included |
//! | 28–31 | size of the packet in bits |
//! | 32–34 | schemes of compression, encryption and checksum, all 0 |
//! | 35–36 | version: major, minor |
//!
//! The text continues in the next packet, also in the middle of a word. CTF 1.8 uses TSDL, a
//! language of its own; CTF 2 uses JSON values, each after a record separator (0x1E).

use std::cell::Cell;

use thiserror::Error;
use whyslow_model::sort::IndexSort;
use whyslow_model::stat::{METADATA_DAMAGED, Stat};

use super::class::TraceClass;
use super::{json, tsdl};

const PACKET_MAGIC: u32 = 0x75D1_1D57;
const PACKET_HEADER_BYTES: usize = 37;
pub(super) const RECORD_SEPARATOR: u8 = 0x1E;
/// All system calls of a kernel take less than half a megabyte.
const METADATA_BYTES_MAX: usize = 16 << 20;
/// Limit per metadata file; a valid one has none or a few.
const ANOMALIES_MAX: usize = 10_000;

/// Contents of a metadata file, and its anomalies.
#[derive(Debug)]
pub struct ParsedMetadata {
    /// Its declarations.
    pub trace: TraceClass,
    /// Parts that were counted and ignored, in the order of the file.
    pub anomalies: Vec<Anomaly>,
}

/// An anomaly in the metadata that was counted and ignored.
#[derive(Debug)]
pub struct Anomaly {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// Offset in the metadata file.
    pub byte_offset: u64,
    /// What was found there.
    pub text: String,
}

/// Reason why a metadata file cannot be used.
#[derive(Debug, Error)]
pub enum MetadataError {
    /// No bytes, or only white space.
    #[error("the metadata is empty")]
    Empty,
    /// More bytes than any tracer writes.
    #[error("the metadata has {bytes} bytes, more than the limit of {METADATA_BYTES_MAX}")]
    TooLarge {
        /// Size of the file.
        bytes: usize,
    },
    /// A packet of the metadata is damaged.
    #[error("metadata byte {byte_offset}: {what}")]
    Packet {
        /// Offset of the packet in the file.
        byte_offset: u64,
        /// The violated rule.
        what: String,
    },
    /// A syntax error in the text.
    #[error("metadata byte {byte_offset}: {what}")]
    Syntax {
        /// Offset in the file.
        byte_offset: u64,
        /// What was expected.
        what: String,
    },
    /// A declaration that violates the format or contradicts another declaration.
    #[error("metadata byte {byte_offset}: {what}")]
    Meaning {
        /// Offset in the file.
        byte_offset: u64,
        /// The violated rule.
        what: String,
    },
    /// Too many anomalies to continue.
    #[error("metadata byte {byte_offset}: more than {ANOMALIES_MAX} anomalies")]
    TooOdd {
        /// Offset of the last one.
        byte_offset: u64,
    },
}

/// Reads a metadata file of CTF 1.8 or 2, plain or in packets.
///
/// A text that ends in the middle of a declaration is used up to there.
pub fn parse_metadata(bytes: &[u8]) -> Result<ParsedMetadata, MetadataError> {
    if bytes.len() > METADATA_BYTES_MAX {
        return Err(MetadataError::TooLarge { bytes: bytes.len() });
    }
    let mut notes = Notes::default();
    let text = MetadataText::unpack(bytes, &mut notes)?;
    let trace = if text.bytes.iter().all(u8::is_ascii_whitespace) {
        Err(Refusal::Empty)
    } else if text.is_json() {
        json::parse(&text.bytes, &mut notes)
    } else {
        tsdl::parse(&text.bytes, &mut notes)
    };
    let trace = trace.map_err(|refusal| text.locate_refusal(refusal))?;
    let anomalies = text.locate_notes(notes);
    if let Some(last) = anomalies.get(ANOMALIES_MAX) {
        return Err(MetadataError::TooOdd {
            byte_offset: last.byte_offset,
        });
    }
    Ok(ParsedMetadata { trace, anomalies })
}

/// A fault at an offset of the metadata text.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// In the text, not in the file.
    pub(super) offset: usize,
    pub(super) what: String,
}

impl Fault {
    pub(super) fn new(offset: usize, what: impl Into<String>) -> Fault {
        Fault {
            offset,
            what: what.into(),
        }
    }
}

/// Reason why a metadata text was rejected.
#[derive(Debug)]
pub(super) enum Refusal {
    Empty,
    Syntax(Fault),
    Meaning(Fault),
}

/// Anomalies with offsets in the text.
#[derive(Debug, Default)]
pub(super) struct Notes {
    in_text: Vec<(&'static Stat, Fault)>,
    in_file: Vec<Anomaly>,
}

impl Notes {
    pub(super) fn add(&mut self, stat: &'static Stat, fault: Fault) {
        if self.in_text.len() <= ANOMALIES_MAX {
            self.in_text.push((stat, fault));
        }
    }

    /// Number of anomalies in the text so far.
    pub(super) fn len(&self) -> usize {
        self.in_text.len()
    }

    fn add_in_file(&mut self, byte_offset: usize, text: impl Into<String>) {
        self.in_file.push(Anomaly {
            stat: &METADATA_DAMAGED,
            byte_offset: byte_offset as u64,
            text: text.into(),
        });
    }
}

/// The text, and the offsets of its parts in the file.
struct MetadataText {
    bytes: Vec<u8>,
    /// (offset in the text, offset in the file), ascending.
    pieces: Vec<(usize, usize)>,
}

impl MetadataText {
    fn unpack(bytes: &[u8], notes: &mut Notes) -> Result<MetadataText, MetadataError> {
        let mut text = MetadataText {
            bytes: Vec::with_capacity(bytes.len()),
            pieces: Vec::new(),
        };
        match PacketOrder::detect(bytes) {
            Some(order) => text.unpack_packets(bytes, order, notes)?,
            None => text.push(0, bytes),
        }
        let end = text.bytes.len() - text.bytes.iter().rev().take_while(|&&b| b == 0).count();
        if end < text.bytes.len() {
            notes.add(&METADATA_DAMAGED, Fault::new(end, "zeros after the text"));
            text.bytes.truncate(end);
        }
        Ok(text)
    }

    fn unpack_packets(
        &mut self,
        bytes: &[u8],
        order: PacketOrder,
        notes: &mut Notes,
    ) -> Result<(), MetadataError> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if rest.iter().all(|&byte| byte == 0) {
                notes.add_in_file(at, "zeros after the last packet");
                break;
            }
            if rest.len() < PACKET_HEADER_BYTES {
                notes.add_in_file(at, "the file ends inside a packet header");
                break;
            }
            let (content, packet) = match packet_sizes(rest, order) {
                Ok(sizes) => sizes,
                // The previous packets are valid, as in a truncated text.
                Err(what) if at > 0 => {
                    notes.add_in_file(at, what);
                    break;
                }
                Err(what) => {
                    return Err(MetadataError::Packet {
                        byte_offset: at as u64,
                        what,
                    });
                }
            };
            let end = content.min(rest.len());
            self.push(at + PACKET_HEADER_BYTES, &rest[PACKET_HEADER_BYTES..end]);
            if end < content {
                notes.add_in_file(at + end, "the file ends inside a packet");
            }
            at += packet.min(rest.len());
        }
        Ok(())
    }

    fn push(&mut self, file_offset: usize, bytes: &[u8]) {
        self.pieces.push((self.bytes.len(), file_offset));
        self.bytes.extend_from_slice(bytes);
    }

    fn is_json(&self) -> bool {
        let first = self.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        matches!(first, Some(&RECORD_SEPARATOR | b'{'))
    }

    fn file_offset(&self, offset: usize) -> u64 {
        let piece = self.pieces.partition_point(|&(begin, _)| begin <= offset);
        let (begin, file) = match piece.checked_sub(1) {
            Some(index) => self.pieces[index],
            None => (0, 0),
        };
        (file + (offset - begin)) as u64
    }

    fn locate_refusal(&self, refusal: Refusal) -> MetadataError {
        match refusal {
            Refusal::Empty => MetadataError::Empty,
            Refusal::Syntax(Fault { offset, what }) => MetadataError::Syntax {
                byte_offset: self.file_offset(offset),
                what,
            },
            Refusal::Meaning(Fault { offset, what }) => MetadataError::Meaning {
                byte_offset: self.file_offset(offset),
                what,
            },
        }
    }

    fn locate_notes(&self, notes: Notes) -> Vec<Anomaly> {
        let mut anomalies = notes.in_file;
        anomalies.extend(notes.in_text.into_iter().map(|(stat, fault)| Anomaly {
            stat,
            byte_offset: self.file_offset(fault.offset),
            text: fault.what,
        }));
        anomalies.index_sort_by_key(|anomaly| anomaly.byte_offset);
        anomalies
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketOrder {
    Little,
    Big,
}

impl PacketOrder {
    fn detect(bytes: &[u8]) -> Option<PacketOrder> {
        [PacketOrder::Little, PacketOrder::Big]
            .into_iter()
            .find(|order| bytes.len() >= 4 && order.u32_at(bytes, 0) == PACKET_MAGIC)
    }

    fn u32_at(self, bytes: &[u8], at: usize) -> u32 {
        let raw = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            PacketOrder::Little => u32::from_le_bytes(raw),
            PacketOrder::Big => u32::from_be_bytes(raw),
        }
    }
}

/// Sizes of content and packet in bytes, both including the header.
fn packet_sizes(header: &[u8], order: PacketOrder) -> Result<(usize, usize), String> {
    let magic = order.u32_at(header, 0);
    if magic != PACKET_MAGIC {
        return Err(format!("metadata packet starts with {magic:#010x}"));
    }
    if header[32..34] != [0, 0] {
        return Err("compressed or encrypted metadata packet".to_owned());
    }
    let content_bits = order.u32_at(header, 24) as usize;
    let packet_bits = order.u32_at(header, 28) as usize;
    let content = content_bits / 8;
    let packet = packet_bits / 8;
    if content < PACKET_HEADER_BYTES || packet < content || !content_bits.is_multiple_of(8) {
        return Err(format!(
            "metadata packet with {content_bits} bits of content in {packet_bits} bits"
        ));
    }
    Ok((content, packet))
}

/// Maximum nesting of structures; protects the stack.
pub(super) const CLASS_DEPTH_MAX: u16 = 64;
/// The format sets no limit; this is more than needed.
pub(super) const INTEGER_BITS_MAX: i128 = 1 << 16;
pub(super) const ALIGNMENT_MAX: i128 = 1 << 24;
/// Members of one structure; they are searched linearly.
pub(super) const STRUCT_MEMBERS_MAX: usize = 4096;
/// Maximum number of field classes and labels of one trace, counting each use of a declared type.
/// Without a limit, a few lines that double a structure repeatedly would exhaust memory.
const FIELDS_MAX: usize = 1 << 19;

/// Rest of [`FIELDS_MAX`].
#[derive(Debug, Default)]
pub(super) struct FieldBudget {
    spent: Cell<usize>,
}

impl FieldBudget {
    pub(super) fn spend(&self, fields: usize, offset: usize) -> Result<(), Fault> {
        let spent = self.spent.get() + fields;
        if spent > FIELDS_MAX {
            let what = format!("more than {FIELDS_MAX} fields in the trace");
            return Err(Fault::new(offset, what));
        }
        self.spent.set(spent);
        Ok(())
    }
}

/// `01234567-89ab-cdef-0123-456789abcdef`
pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|&byte| byte != b'-')
        .map(|byte| (byte as char).to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit))
        .collect();
    if digits.len() != 32 {
        return None;
    }
    bytes.try_into().ok()
}
