//! Renders fields of an event as text, in the notation of babeltrace2's text output.
//!
//! This walks the classes again, bit by bit and without the decode plan. It is slow and used for
//! few events; since it shares no code with the plans, it is a check of them.

use std::fmt::Write;

use super::class::{
    ByteOrder, FieldClass, FieldLocation, IntegerClass, IntegerKind, Mapping, Range, Scope,
    StructClass, TextEncoding,
};
use super::locations::Locations;

/// The bytes of one event, and the values of the preceding structures.
pub(super) struct Walk<'a> {
    pub(super) window: &'a [u8],
    /// Bits from the start of the window.
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) locations: &'a Locations,
    pub(super) registers: Vec<u64>,
    pub(super) scope: Scope,
    pub(super) path: Vec<String>,
}

/// A number as stored in the bytes.
#[derive(Clone, Copy)]
struct Raw {
    value: u64,
    signed: bool,
}

impl Raw {
    fn number(self) -> i128 {
        if self.signed {
            i128::from(self.value as i64)
        } else {
            i128::from(self.value)
        }
    }
}

impl Walk<'_> {
    /// Appends `name = value, …` of the members. None if the bytes end before.
    pub(super) fn members(&mut self, structure: &StructClass, out: &mut String) -> Option<()> {
        self.align(structure.alignment)?;
        for (index, member) in structure.members.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(&member.name);
            out.push_str(" = ");
            self.path.push(member.name.clone());
            self.field(&member.class, out)?;
            self.path.pop();
        }
        Some(())
    }

    fn field(&mut self, class: &FieldClass, out: &mut String) -> Option<()> {
        match class {
            FieldClass::Integer(integer) if integer.bits > 64 => {
                self.align(integer.alignment)?;
                self.take(integer.bits as usize)?;
                write!(out, "<{} bits>", integer.bits).ok()
            }
            FieldClass::Integer(integer) => {
                self.align(integer.alignment)?;
                let usual = integer.byte_order.usual_bit_order() == integer.bit_order;
                let value = self.bits(integer.bits, integer.byte_order, usual)?;
                self.integer(integer, value, out);
                Some(())
            }
            FieldClass::VariableInteger(integer) => {
                let value = self.leb(integer.kind == IntegerKind::Signed)?;
                self.integer(integer, value, out);
                Some(())
            }
            FieldClass::Float {
                bits,
                byte_order,
                bit_order,
                alignment,
            } => {
                self.align(*alignment)?;
                let usual = byte_order.usual_bit_order() == *bit_order;
                if *bits > 64 {
                    self.take(*bits as usize)?;
                    return write!(out, "<{bits} bits>").ok();
                }
                let value = self.bits(*bits, *byte_order, usual)?;
                match bits {
                    32 => write!(out, "{}", f32::from_bits(value as u32)).ok(),
                    64 => write!(out, "{}", f64::from_bits(value)).ok(),
                    _ => write!(out, "<{bits} bits>").ok(),
                }
            }
            FieldClass::Text { encoding } => {
                self.align(8)?;
                let unit = encoding.unit_bytes() as usize;
                let begin = self.at / 8;
                while self.bytes(unit)?.iter().any(|&byte| byte != 0) {}
                quote(&self.window[begin..self.at / 8 - unit], *encoding, out);
                Some(())
            }
            FieldClass::StaticText { bytes, encoding } => self.sized_text(*bytes, *encoding, out),
            FieldClass::DynamicText { length, encoding } => {
                self.sized_text(self.register(length)?, *encoding, out)
            }
            FieldClass::StaticBlob { bytes, .. } => self.blob(*bytes, out),
            FieldClass::DynamicBlob { length } => self.blob(self.register(length)?, out),
            FieldClass::Struct(structure) => {
                if structure.members.is_empty() {
                    out.push_str("{ }");
                    return self.align(structure.alignment);
                }
                out.push_str("{ ");
                self.members(structure, out)?;
                out.push_str(" }");
                Some(())
            }
            FieldClass::Array {
                element,
                length,
                alignment,
            } => self.elements(element, *length, *alignment, out),
            FieldClass::Sequence {
                element,
                length,
                alignment,
            } => self.elements(element, self.register(length)?, *alignment, out),
            FieldClass::Variant { selector, options } => {
                let value = self.register(selector)?;
                let option = options
                    .iter()
                    .find(|option| selects(&option.ranges, value))?;
                out.push_str("{ ");
                self.field(&option.class, out)?;
                out.push_str(" }");
                Some(())
            }
            FieldClass::Optional {
                selector,
                ranges,
                class,
            } => {
                if selects(ranges, self.register(selector)?) {
                    self.field(class, out)
                } else {
                    out.push_str("none");
                    Some(())
                }
            }
        }
    }

    fn integer(&mut self, class: &IntegerClass, value: u64, out: &mut String) {
        let signed = class.kind == IntegerKind::Signed;
        let unused = if class.bits == 0 {
            0
        } else {
            64 - class.bits.min(64)
        };
        let extended = (value << unused) as i64 >> unused;
        let raw = Raw {
            value: if signed { extended as u64 } else { value },
            signed,
        };
        if let Some(register) = self.locations.register(self.scope, &self.path) {
            self.registers[register as usize] = raw.value;
        }
        if !class.mappings.is_empty() && class.kind != IntegerKind::BitMap {
            out.push_str("( ");
            labels(&class.mappings, raw.number(), out);
            out.push_str(" : container = ");
            number(class, raw, out);
            out.push_str(" )");
        } else if class.kind == IntegerKind::Boolean {
            out.push_str(if value == 0 { "false" } else { "true" });
        } else {
            number(class, raw, out);
        }
    }

    fn elements(
        &mut self,
        element: &FieldClass,
        count: u64,
        alignment: u32,
        out: &mut String,
    ) -> Option<()> {
        self.align(alignment)?;
        if let FieldClass::Integer(integer) = element
            && integer.is_text
            && integer.bits == 8
        {
            let mut text = Vec::new();
            for _ in 0..count {
                text.push(self.bits(8, integer.byte_order, true)? as u8);
            }
            let len = text
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(text.len());
            quote(&text[..len], TextEncoding::Utf8, out);
            return Some(());
        }
        out.push_str("[ ");
        for index in 0..count {
            if index > 0 {
                out.push_str(", ");
            }
            write!(out, "[{index}] = ").ok()?;
            let before = self.at;
            self.field(element, out)?;
            if self.at == before && index > 1000 {
                return None;
            }
        }
        out.push_str(if count == 0 { "]" } else { " ]" });
        Some(())
    }

    fn sized_text(&mut self, bytes: u64, encoding: TextEncoding, out: &mut String) -> Option<()> {
        self.align(8)?;
        let begin = self.at / 8;
        self.take(usize::try_from(bytes).ok()?.checked_mul(8)?)?;
        let field = &self.window[begin..self.at / 8];
        let unit = encoding.unit_bytes() as usize;
        let zero = field
            .chunks_exact(unit)
            .position(|unit| unit.iter().all(|&byte| byte == 0));
        quote(
            &field[..zero.map_or(field.len(), |units| units * unit)],
            encoding,
            out,
        );
        Some(())
    }

    fn blob(&mut self, bytes: u64, out: &mut String) -> Option<()> {
        self.align(8)?;
        let bytes = self.bytes(usize::try_from(bytes).ok()?)?;
        out.push_str("[ ");
        for (index, byte) in bytes.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(out, "{comma}[{index}] = {byte}").ok()?;
        }
        out.push_str(if bytes.is_empty() { "]" } else { " ]" });
        Some(())
    }

    fn register(&self, location: &FieldLocation) -> Option<u64> {
        let register = self.locations.register_of(location)?;
        self.registers.get(register as usize).copied()
    }

    fn align(&mut self, bits: u32) -> Option<()> {
        let bits = bits.max(1) as usize;
        self.take(self.at.next_multiple_of(bits) - self.at)
    }

    fn take(&mut self, bits: usize) -> Option<()> {
        let at = self.at.checked_add(bits)?;
        if at > self.end {
            return None;
        }
        self.at = at;
        Some(())
    }

    fn bytes(&mut self, bytes: usize) -> Option<&[u8]> {
        let begin = self.at / 8;
        self.take(bytes.checked_mul(8)?)?;
        Some(&self.window[begin..begin + bytes])
    }

    fn bits(&mut self, bits: u32, byte_order: ByteOrder, usual: bool) -> Option<u64> {
        let begin = self.at;
        self.take(bits as usize)?;
        let mut value = 0_u64;
        for index in 0..bits as usize {
            let byte = self.window[(begin + index) / 8];
            let in_byte = (begin + index) % 8;
            let bit = match byte_order {
                ByteOrder::Little => byte >> in_byte & 1,
                ByteOrder::Big => byte >> (7 - in_byte) & 1,
            };
            if usual == (byte_order == ByteOrder::Little) {
                value |= u64::from(bit) << index;
            } else {
                value = value << 1 | u64::from(bit);
            }
        }
        Some(value)
    }

    fn leb(&mut self, signed: bool) -> Option<u64> {
        self.align(8)?;
        let (mut value, mut shift) = (0_i128, 0);
        loop {
            let byte = self.bytes(1)?[0];
            if shift < 70 {
                value |= i128::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if signed && byte & 0x40 != 0 && shift < 64 {
                    value -= 1 << shift;
                }
                return Some(value as u64);
            }
        }
    }
}

fn selects(ranges: &[Range], value: u64) -> bool {
    ranges.iter().any(|range| {
        let value = if range.first < 0 {
            i128::from(value as i64)
        } else {
            i128::from(value)
        };
        range.first <= value && value <= range.last
    })
}

/// Appends the labels of an enumeration value.
fn labels(mappings: &[Mapping], value: i128, out: &mut String) {
    let hits = |mapping: &&Mapping| {
        mapping
            .ranges
            .iter()
            .any(|range| range.first <= value && value <= range.last)
    };
    let mut names = mappings
        .iter()
        .filter(hits)
        .map(|mapping| &mapping.label)
        .peekable();
    let Some(first) = names.next() else {
        out.push_str("<unknown>");
        return;
    };
    if names.peek().is_none() {
        quote(first.as_bytes(), TextEncoding::Utf8, out);
        return;
    }
    out.push_str("{ ");
    quote(first.as_bytes(), TextEncoding::Utf8, out);
    for name in names {
        out.push_str(", ");
        quote(name.as_bytes(), TextEncoding::Utf8, out);
    }
    out.push_str(" }");
}

/// Appends a number in the base preferred by its class.
fn number(class: &IntegerClass, raw: Raw, out: &mut String) {
    let unused = if class.bits == 0 {
        0
    } else {
        64 - class.bits.min(64)
    };
    let bits = raw.value << unused >> unused;
    let written = match class.base {
        2 => write!(out, "0b{bits:0width$b}", width = (64 - unused) as usize),
        8 => write!(out, "0{bits:o}"),
        16 => write!(out, "0x{bits:X}"),
        _ => write!(out, "{}", raw.number()),
    };
    written.expect("writing to a String cannot fail");
}

/// Appends text in quotes, with unprintable characters escaped.
fn quote(bytes: &[u8], encoding: TextEncoding, out: &mut String) {
    out.push('"');
    for character in decoded(bytes, encoding).chars() {
        match character {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\'' | '"' | '?' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            character if character.is_control() => {
                write!(out, "\\x{:02x}", character as u32)
                    .expect("writing to a String cannot fail");
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

fn decoded(bytes: &[u8], encoding: TextEncoding) -> String {
    let pair = |unit: &[u8]| [unit[0], unit[1]];
    let four = |unit: &[u8]| [unit[0], unit[1], unit[2], unit[3]];
    let units16 = bytes.chunks_exact(2);
    let units32 = bytes.chunks_exact(4);
    let character = |code: u32| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    match encoding {
        TextEncoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
        TextEncoding::Utf16Little => {
            let units: Vec<u16> = units16.map(|unit| u16::from_le_bytes(pair(unit))).collect();
            String::from_utf16_lossy(&units)
        }
        TextEncoding::Utf16Big => {
            let units: Vec<u16> = units16.map(|unit| u16::from_be_bytes(pair(unit))).collect();
            String::from_utf16_lossy(&units)
        }
        TextEncoding::Utf32Little => units32
            .map(|unit| character(u32::from_le_bytes(four(unit))))
            .collect(),
        TextEncoding::Utf32Big => units32
            .map(|unit| character(u32::from_be_bytes(four(unit))))
            .collect(),
    }
}
