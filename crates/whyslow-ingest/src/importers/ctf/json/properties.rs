//! Individual properties of field classes.

use super::super::class::{
    BitOrder, ByteOrder, FieldClass, IntegerKind, Role, Scope, TextEncoding,
};
use super::super::metadata::{ALIGNMENT_MAX, INTEGER_BITS_MAX};
use super::tree::{Json, Object};

/// Number of structures to leave outwards, and the names to follow from there.
pub(super) fn steps(path: &[Json]) -> Result<(usize, Vec<&str>), String> {
    let mut up = 0;
    let mut names = Vec::new();
    for step in path {
        match step {
            Json::Text(name) => names.push(name.as_str()),
            Json::Null if names.pop().is_some() => {}
            Json::Null => up += 1,
            other => return Err(format!("a step of a path is {}", other.kind())),
        }
    }
    if names.is_empty() {
        return Err("a path without names".to_owned());
    }
    Ok((up, names))
}

pub(super) fn scope_of_origin(origin: &str) -> Option<Scope> {
    Some(match origin {
        "packet-header" => Scope::PacketHeader,
        "packet-context" => Scope::PacketContext,
        "event-record-header" => Scope::EventHeader,
        "event-record-common-context" => Scope::EventContext,
        "event-record-specific-context" => Scope::SpecificContext,
        "event-record-payload" => Scope::Payload,
        _ => return None,
    })
}

pub(super) fn role(name: &str) -> Option<Role> {
    Some(match name {
        "packet-magic-number" => Role::PacketMagic,
        "metadata-stream-uuid" => Role::MetadataUuid,
        "data-stream-class-id" => Role::StreamClassId,
        "data-stream-id" => Role::StreamId,
        "packet-total-length" => Role::PacketTotalLength,
        "packet-content-length" => Role::PacketContentLength,
        "packet-end-default-clock-timestamp" => Role::PacketEndTimestamp,
        "default-clock-timestamp" => Role::Timestamp,
        "discarded-event-record-counter-snapshot" => Role::DiscardedEvents,
        "packet-sequence-number" => Role::PacketSequenceNumber,
        "event-record-class-id" => Role::EventClassId,
        _ => return None,
    })
}

/// Including a variant with integer options only.
pub(super) fn is_integer(class: &FieldClass, kind: fn(IntegerKind) -> bool) -> bool {
    match class {
        FieldClass::Integer(integer) | FieldClass::VariableInteger(integer) => kind(integer.kind),
        FieldClass::Variant { options, .. } => {
            !options.is_empty() && options.iter().all(|o| is_integer(&o.class, kind))
        }
        _ => false,
    }
}

pub(super) fn fixed_float(object: &Object) -> Result<FieldClass, String> {
    let bits = bits(object)?;
    if !matches!(bits, 16 | 32 | 64 | 128) && (bits < 128 || bits % 32 != 0) {
        return Err(format!("a floating-point number of {bits} bits"));
    }
    let byte_order = byte_order(object)?;
    Ok(FieldClass::Float {
        bits,
        byte_order,
        bit_order: bit_order(object, byte_order)?,
        alignment: alignment(object, "alignment")?,
    })
}

pub(super) fn bits(object: &Object) -> Result<u32, String> {
    match object.integer("length")? {
        Some(bits @ 1..=INTEGER_BITS_MAX) => Ok(bits as u32),
        Some(bits) => Err(format!("invalid `length` {bits}")),
        None => Err("missing `length`".to_owned()),
    }
}

pub(super) fn byte_order(object: &Object) -> Result<ByteOrder, String> {
    match object.text("byte-order")? {
        Some("little-endian") => Ok(ByteOrder::Little),
        Some("big-endian") => Ok(ByteOrder::Big),
        Some(other) => Err(format!("unknown byte order `{other}`")),
        None => Err("missing `byte-order`".to_owned()),
    }
}

pub(super) fn bit_order(object: &Object, byte_order: ByteOrder) -> Result<BitOrder, String> {
    match object.text("bit-order")? {
        Some("first-to-last") => Ok(BitOrder::LeastFirst),
        Some("last-to-first") => Ok(BitOrder::MostFirst),
        Some(other) => Err(format!("unknown bit order `{other}`")),
        None => Ok(byte_order.usual_bit_order()),
    }
}

pub(super) fn alignment(object: &Object, name: &str) -> Result<u32, String> {
    match object.integer(name)? {
        None => Ok(1),
        Some(value @ 1..=ALIGNMENT_MAX) if (value as u32).is_power_of_two() => Ok(value as u32),
        Some(value) => Err(format!("invalid `{name}` {value}")),
    }
}

/// Drafts put the hyphen before the byte order.
pub(super) fn encoding(object: &Object) -> Result<TextEncoding, String> {
    let name = object.text("encoding")?.unwrap_or("utf-8");
    let letters: String = name.chars().filter(|letter| *letter != '-').collect();
    match letters.to_ascii_lowercase().as_str() {
        "utf8" => Ok(TextEncoding::Utf8),
        "utf16le" => Ok(TextEncoding::Utf16Little),
        "utf16be" => Ok(TextEncoding::Utf16Big),
        "utf32le" => Ok(TextEncoding::Utf32Little),
        "utf32be" => Ok(TextEncoding::Utf32Big),
        _ => Err(format!("unknown encoding `{name}`")),
    }
}
