//! The event headers of LTTng, decoded without a plan.
//!
//! ```text
//! struct { enum : ID { compact = 0 ... N, extended = N + 1 } id;
//!          variant <id> { struct { TIME timestamp; } compact;
//!                         struct { uint32 id; uint64 timestamp; } extended; } v; }
//! ```
//!
//! Nearly all traces have this header, with an id of 5 bits and a time of 27 (*compact*) or with
//! 16 and 32 (*large*), and it stands before every event. Sizes, alignments and byte order may
//! differ; the places of the four fields are worked out once.

use super::class::{
    ByteOrder, EventClass, FieldClass, FieldLocation, IntegerClass, IntegerKind, Range, Role,
    Scope, StreamClass, StructClass,
};
use super::decode::{Cursor, unsigned_big, unsigned_little};

/// A number at a fixed place after the begin of the header.
#[derive(Debug, Clone, Copy)]
struct Field {
    offset: usize,
    bits: u32,
}

#[derive(Debug)]
pub(super) struct TwoForms {
    byte_order: ByteOrder,
    alignment: usize,
    id: Field,
    /// The id that says that the full one follows.
    escape: u64,
    time: Field,
    bits: usize,
    long_id: Field,
    long_time: Field,
    long_bits: usize,
}

impl TwoForms {
    /// Nothing if the header of the stream is another one.
    // tidy: long because it is one recognition, step by step
    pub(super) fn of(stream: &StreamClass) -> Option<TwoForms> {
        let header = stream.event_header.as_ref()?;
        let [id_member, variant] = header.members.as_slice() else {
            return None;
        };
        let FieldClass::Variant { selector, options } = &variant.class else {
            return None;
        };
        let [short, long] = options.as_slice() else {
            return None;
        };
        let here = FieldLocation {
            scope: Scope::EventHeader,
            path: vec![id_member.name.clone()],
        };
        let in_context = stream.event_context.as_ref().is_some_and(structure_refers);
        if *selector != here || in_context || stream.events.iter().any(refers_to_header) {
            return None;
        }
        let mut layout = Layout {
            at: 0,
            byte_order: None,
            alignment: header.alignment,
        };
        let id = layout.integer(&id_member.class, |class| {
            class.roles.contains(&Role::EventClassId) && class.bits < 32
        })?;
        let escape = 1_i128 << id.bits;
        let all_but_last = Range {
            first: 0,
            last: escape - 2,
        };
        let last = Range {
            first: escape - 1,
            last: escape - 1,
        };
        if short.ranges != [all_but_last] || long.ranges != [last] {
            return None;
        }
        let mut short_layout = layout;
        let times = short_layout.members(&short.class)?;
        let [time] = times.as_slice() else {
            return None;
        };
        let time = short_layout.integer(time, is_time)?;
        let mut long_layout = layout;
        let longs = long_layout.members(&long.class)?;
        let [long_id, long_time] = longs.as_slice() else {
            return None;
        };
        let long_id =
            long_layout.integer(long_id, |class| class.roles.contains(&Role::EventClassId))?;
        let long_time = long_layout.integer(long_time, is_time)?;
        let byte_order = layout.byte_order?;
        if [short_layout, long_layout]
            .iter()
            .any(|layout| layout.byte_order != Some(byte_order))
        {
            return None;
        }
        Some(TwoForms {
            byte_order,
            alignment: header.alignment as usize,
            id,
            escape: escape as u64 - 1,
            time,
            bits: short_layout.at,
            long_id,
            long_time,
            long_bits: long_layout.at,
        })
    }

    /// Goes past the header and takes over id and time. False if the window ends before.
    #[inline]
    pub(super) fn decode(&self, window: &[u8], cursor: &mut Cursor) -> bool {
        let begin = (cursor.at + self.alignment - 1) & !(self.alignment - 1);
        if begin + self.bits > cursor.end {
            return false;
        }
        let id = self.read(window, begin, self.id);
        if id != self.escape {
            cursor.at = begin + self.bits;
            cursor.event_id = id;
            cursor.advance_clock(self.read(window, begin, self.time), self.time.bits);
            return true;
        }
        if begin + self.long_bits > cursor.end {
            return false;
        }
        cursor.at = begin + self.long_bits;
        cursor.event_id = self.read(window, begin, self.long_id);
        cursor.advance_clock(
            self.read(window, begin, self.long_time),
            self.long_time.bits,
        );
        true
    }

    #[inline]
    fn read(&self, window: &[u8], begin: usize, field: Field) -> u64 {
        match self.byte_order {
            ByteOrder::Little => unsigned_little(window, begin + field.offset, field.bits),
            ByteOrder::Big => unsigned_big(window, begin + field.offset, field.bits),
        }
    }
}

/// Walks over a structure whose fields all have fixed places.
#[derive(Clone, Copy)]
struct Layout {
    at: usize,
    byte_order: Option<ByteOrder>,
    /// Of the whole header, so what is known of its begin.
    alignment: u32,
}

impl Layout {
    fn align(&mut self, bits: u32) -> Option<()> {
        if bits > self.alignment {
            return None;
        }
        self.at = self.at.next_multiple_of(bits.max(1) as usize);
        Some(())
    }

    fn members<'c>(&mut self, class: &'c FieldClass) -> Option<Vec<&'c FieldClass>> {
        let FieldClass::Struct(StructClass { members, alignment }) = class else {
            return None;
        };
        self.align(*alignment)?;
        Some(members.iter().map(|member| &member.class).collect())
    }

    fn integer(
        &mut self,
        class: &FieldClass,
        fits: impl Fn(&IntegerClass) -> bool,
    ) -> Option<Field> {
        let FieldClass::Integer(class) = class else {
            return None;
        };
        let usual = class.byte_order.usual_bit_order() == class.bit_order;
        let same_order = self
            .byte_order
            .is_none_or(|order| order == class.byte_order);
        if !fits(class) || !usual || !same_order || class.kind != IntegerKind::Unsigned {
            return None;
        }
        self.align(class.alignment)?;
        let field = Field {
            offset: self.at,
            bits: class.bits,
        };
        let in_one_word = class.bits <= 57 || self.at.is_multiple_of(8) && self.alignment >= 8;
        self.at += class.bits as usize;
        self.byte_order = Some(class.byte_order);
        (in_one_word && (1..=64).contains(&class.bits)).then_some(field)
    }
}

fn is_time(class: &IntegerClass) -> bool {
    class.roles.contains(&Role::Timestamp) || class.clock.is_some()
}

/// Whether a length or selector of the event is a field of the header.
fn refers_to_header(event: &EventClass) -> bool {
    [&event.context, &event.payload]
        .into_iter()
        .flatten()
        .any(structure_refers)
}

fn structure_refers(structure: &StructClass) -> bool {
    structure
        .members
        .iter()
        .any(|member| class_refers(&member.class))
}

fn class_refers(class: &FieldClass) -> bool {
    let in_header = |location: &FieldLocation| location.scope == Scope::EventHeader;
    match class {
        FieldClass::DynamicText { length, .. } | FieldClass::DynamicBlob { length } => {
            in_header(length)
        }
        FieldClass::Struct(class) => structure_refers(class),
        FieldClass::Array { element, .. } => class_refers(element),
        FieldClass::Sequence {
            element, length, ..
        } => in_header(length) || class_refers(element),
        FieldClass::Variant { selector, options } => {
            in_header(selector) || options.iter().any(|option| class_refers(&option.class))
        }
        FieldClass::Optional {
            selector, class, ..
        } => in_header(selector) || class_refers(class),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::ctf::metadata::parse_metadata;

    /// The header of LTTng with these declarations for id, short and long form.
    fn two_forms(byte_order: &str, alignment: u32, id: &str) -> Option<TwoForms> {
        let metadata = format!(
            "/* CTF 1.8 */
            trace {{ major = 1; minor = 8; byte_order = {byte_order}; }};
            clock {{ name = monotonic; }};
            stream {{
                id = 0;
                event.header := struct {{
                    {id} id;
                    variant <id> {{
                        struct {{ integer {{ size = 27; align = 1; map = clock.monotonic.value; }}
                                timestamp; }} compact;
                        struct {{ integer {{ size = 32; align = {alignment}; }} id;
                                integer {{ size = 64; align = {alignment};
                                           map = clock.monotonic.value; }} timestamp; }} extended;
                    }} v;
                }} align({alignment});
            }};
            event {{ name = \"e\"; id = 0; stream_id = 0; fields := struct {{ }}; }};"
        );
        TwoForms::of(&parse_metadata(metadata.as_bytes()).unwrap().trace.streams[0])
    }

    const ID: &str =
        "enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 }";

    fn check(byte_order: &str, bytes: &[u8], id: u64, cycles: u64, bits: usize) {
        let form = two_forms(byte_order, 8, ID).unwrap();
        let mut window = bytes.to_vec();
        window.resize(bytes.len() + 16, 0xff);
        let mut cursor = Cursor {
            end: bytes.len() * 8,
            ..Cursor::default()
        };
        assert!(form.decode(&window, &mut cursor));
        assert_eq!(
            (cursor.event_id, cursor.cycles, cursor.at),
            (id, cycles, bits)
        );
        let mut cursor = Cursor {
            end: bits - 8,
            ..Cursor::default()
        };
        assert!(!form.decode(&window, &mut cursor));
    }

    #[test]
    fn both_forms_in_both_byte_orders() {
        check("le", &((77_u32 << 5) + 9).to_le_bytes(), 9, 77, 32);
        check("be", &((9_u32 << 27) + 77).to_be_bytes(), 9, 77, 32);
        let long = |id: [u8; 4], time: [u8; 8], first: u8| [&[first][..], &id, &time].concat();
        check(
            "le",
            &long(500_u32.to_le_bytes(), 7_u64.to_le_bytes(), 31),
            500,
            7,
            104,
        );
        check(
            "be",
            &long(500_u32.to_be_bytes(), 7_u64.to_be_bytes(), 31 << 3),
            500,
            7,
            104,
        );
    }

    #[test]
    fn natural_alignment_moves_the_long_form() {
        let form = two_forms("le", 32, ID).unwrap();
        assert_eq!(
            (form.long_id.offset, form.long_time.offset, form.long_bits),
            (32, 64, 128)
        );
    }

    #[test]
    fn other_headers_are_left_to_the_plan() {
        let unusual =
            "enum : integer { size = 5; align = 1; } { compact = 0 ... 29, extended = 31 }";
        assert!(two_forms("le", 8, unusual).is_none());
    }
}
