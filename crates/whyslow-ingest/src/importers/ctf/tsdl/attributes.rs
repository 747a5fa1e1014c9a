//! Attributes of integers, floating-point numbers and strings.

use super::super::class::ByteOrder;
use super::super::metadata::{ALIGNMENT_MAX, Fault, INTEGER_BITS_MAX};
use super::parser::Parser;
use super::syntax::{Attribute, IntegerType, Kind, Value};

const FLOAT_BITS_MAX: i128 = 1 << 10;

pub(super) fn integer_type(
    parser: &mut Parser<'_, '_>,
    offset: usize,
    attributes: &[Attribute<'_>],
) -> Result<IntegerType, Fault> {
    let mut bits = 0;
    let mut aligned = None;
    let mut encoded = false;
    let mut integer = IntegerType {
        bits: 0,
        signed: false,
        byte_order: None,
        alignment: 1,
        base: 10,
        is_text: false,
        clock: None,
    };
    for attribute in attributes {
        let at = attribute.offset;
        match (attribute.name.as_ref(), &attribute.value) {
            ("size", Value::Integer(size @ 1..=INTEGER_BITS_MAX)) => bits = *size as u32,
            ("align", Value::Integer(value)) => aligned = Some(alignment(*value, at)?),
            ("signed", value) => integer.signed = truth(value, at)?,
            ("byte_order", Value::Word(word)) => integer.byte_order = byte_order(word, at)?,
            ("base", value) => integer.base = base(value, at)?,
            ("encoding", value) => encoded = is_text_encoding(parser, value, at),
            ("map", Value::Word(path)) => integer.clock = Some(clock_of_path(path, at)?),
            ("size" | "align" | "byte_order" | "map", value) => {
                return Err(bad_value(&attribute.name, value, at));
            }
            (name, _) => parser.note_unknown(at, format!("integer attribute `{name}`")),
        }
    }
    if bits == 0 {
        return Err(Fault::new(offset, "an integer without `size`"));
    }
    integer.bits = bits;
    integer.alignment = aligned.unwrap_or(if bits % 8 == 0 { 8 } else { 1 });
    integer.is_text = encoded && bits == 8;
    Ok(integer)
}

pub(super) fn float_type(
    parser: &mut Parser<'_, '_>,
    offset: usize,
    attributes: &[Attribute<'_>],
) -> Result<Kind<'static>, Fault> {
    let (mut exponent, mut mantissa) = (0, 0);
    let mut order = None;
    let mut aligned = None;
    for attribute in attributes {
        let at = attribute.offset;
        match (attribute.name.as_ref(), &attribute.value) {
            ("exp_dig", Value::Integer(value @ 1..=FLOAT_BITS_MAX)) => exponent = *value,
            ("mant_dig", Value::Integer(value @ 1..=FLOAT_BITS_MAX)) => mantissa = *value,
            ("align", Value::Integer(value)) => aligned = Some(alignment(*value, at)?),
            ("byte_order", Value::Word(word)) => order = byte_order(word, at)?,
            ("exp_dig" | "mant_dig" | "align" | "byte_order", value) => {
                return Err(bad_value(&attribute.name, value, at));
            }
            (name, _) => parser.note_unknown(at, format!("floating_point attribute `{name}`")),
        }
    }
    let bits = (exponent + mantissa) as u32;
    if exponent == 0 || mantissa == 0 {
        let what = "a floating_point without `exp_dig` and `mant_dig`";
        return Err(Fault::new(offset, what));
    }
    // The mantissa includes its hidden bit: 8 + 24 bits are the usual 32.
    if !matches!(
        (exponent, mantissa),
        (5, 11) | (8, 24) | (11, 53) | (15, 113)
    ) {
        let what = format!("a floating_point of {exponent} and {mantissa} bits");
        return Err(Fault::new(offset, what));
    }
    Ok(Kind::Float {
        bits,
        byte_order: order,
        alignment: aligned.unwrap_or(if bits.is_multiple_of(8) { 8 } else { 1 }),
    })
}

/// Both string encodings, ASCII and UTF-8, are read in the same way.
pub(super) fn check_text(parser: &mut Parser<'_, '_>, attributes: &[Attribute<'_>]) {
    for attribute in attributes {
        match (attribute.name.as_ref(), &attribute.value) {
            ("encoding", value) => {
                is_text_encoding(parser, value, attribute.offset);
            }
            (name, _) => {
                parser.note_unknown(attribute.offset, format!("string attribute `{name}`"));
            }
        }
    }
}

pub(super) fn alignment(value: i128, offset: usize) -> Result<u32, Fault> {
    if (1..=ALIGNMENT_MAX).contains(&value) && (value as u32).is_power_of_two() {
        return Ok(value as u32);
    }
    let what = format!("an alignment of {value} is not a power of two up to {ALIGNMENT_MAX}");
    Err(Fault::new(offset, what))
}

/// `None` means the native order of the trace.
pub(super) fn byte_order(word: &str, offset: usize) -> Result<Option<ByteOrder>, Fault> {
    match word {
        "le" => Ok(Some(ByteOrder::Little)),
        "be" | "network" => Ok(Some(ByteOrder::Big)),
        "native" => Ok(None),
        _ => Err(Fault::new(offset, format!("unknown byte order `{word}`"))),
    }
}

pub(super) fn bad_value(name: &str, value: &Value<'_>, offset: usize) -> Fault {
    let shown = match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Integer(integer) => integer.to_string(),
        Value::Word(word) => format!("`{word}`"),
        Value::Type(_) => "a type".to_owned(),
    };
    Fault::new(offset, format!("invalid `{name}` {shown}"))
}

pub(super) fn truth(value: &Value<'_>, offset: usize) -> Result<bool, Fault> {
    match value {
        Value::Integer(integer) => Ok(*integer != 0),
        Value::Word(word) if matches!(word.as_ref(), "true" | "TRUE") => Ok(true),
        Value::Word(word) if matches!(word.as_ref(), "false" | "FALSE") => Ok(false),
        other => {
            let shown = bad_value("a truth value", other, offset);
            Err(shown)
        }
    }
}

/// Bases by number, by name, or by `printf` conversion letter.
fn base(value: &Value<'_>, offset: usize) -> Result<u32, Fault> {
    match value {
        Value::Integer(number @ (2 | 8 | 10 | 16)) => Ok(*number as u32),
        Value::Word(word) => match word.as_ref() {
            "decimal" | "dec" | "d" | "i" | "u" => Ok(10),
            "hexadecimal" | "hex" | "x" | "X" | "p" => Ok(16),
            "octal" | "oct" | "o" => Ok(8),
            "binary" | "b" => Ok(2),
            _ => Err(bad_value("base", value, offset)),
        },
        _ => Err(bad_value("base", value, offset)),
    }
}

fn is_text_encoding(parser: &mut Parser<'_, '_>, value: &Value<'_>, offset: usize) -> bool {
    let (Value::Word(word) | Value::Text(word)) = value else {
        parser.note_unknown(offset, "invalid encoding".to_owned());
        return false;
    };
    match word.to_ascii_lowercase().as_str() {
        "utf8" | "utf-8" | "ascii" => true,
        "none" => false,
        _ => {
            parser.note_unknown(offset, format!("encoding `{word}`"));
            false
        }
    }
}

/// `clock.NAME.value`
fn clock_of_path(path: &str, offset: usize) -> Result<String, Fault> {
    path.strip_prefix("clock.")
        .and_then(|rest| rest.strip_suffix(".value"))
        .map(str::to_owned)
        .ok_or_else(|| Fault::new(offset, format!("invalid `map` `{path}`")))
}
