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
//! differ; the places of the four fields are worked out once. Where the long form is aligned to
//! more than the whole header its fields have no fixed places, and it is left to the plan: it is
//! written only after long silence and for few classes.

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
    long: Option<LongForm>,
}

#[derive(Debug)]
struct LongForm {
    id: Field,
    time: Field,
    bits: usize,
}

/// What came of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Done,
    /// The window ends before.
    Short,
    /// It is of the form that the plan has to read.
    Long,
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
        Some(TwoForms {
            byte_order: layout.byte_order?,
            alignment: header.alignment as usize,
            id,
            escape: escape as u64 - 1,
            time,
            bits: short_layout.at,
            long: LongForm::of(layout, &long.class),
        })
    }

    /// Goes past the header and takes over id and time.
    #[inline]
    pub(super) fn decode(&self, window: &[u8], cursor: &mut Cursor) -> Read {
        let begin = (cursor.at + self.alignment - 1) & !(self.alignment - 1);
        if begin + self.id.offset + self.id.bits as usize > cursor.end {
            return Read::Short;
        }
        let id = self.read(window, begin, self.id);
        let (id, time, bits) = if id != self.escape {
            (id, self.time, self.bits)
        } else if let Some(long) = &self.long {
            (self.read(window, begin, long.id), long.time, long.bits)
        } else {
            return Read::Long;
        };
        if begin + bits > cursor.end {
            return Read::Short;
        }
        cursor.at = begin + bits;
        cursor.event_id = id;
        cursor.advance_clock(self.read(window, begin, time), time.bits);
        Read::Done
    }

    #[inline]
    fn read(&self, window: &[u8], begin: usize, field: Field) -> u64 {
        match self.byte_order {
            ByteOrder::Little => unsigned_little(window, begin + field.offset, field.bits),
            ByteOrder::Big => unsigned_big(window, begin + field.offset, field.bits),
        }
    }
}

impl LongForm {
    /// Nothing if its fields have no fixed places; `layout` is behind the short id.
    fn of(mut layout: Layout, class: &FieldClass) -> Option<LongForm> {
        let members = layout.members(class)?;
        let [id, time] = members.as_slice() else {
            return None;
        };
        let id = layout.integer(id, |class| class.roles.contains(&Role::EventClassId))?;
        let time = layout.integer(time, is_time)?;
        let bits = layout.at;
        Some(LongForm { id, time, bits })
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

    /// The header of LTTng with this declaration of the id, and these alignments of the whole and
    /// of the long form.
    fn two_forms(byte_order: &str, (whole, long): (u32, u32), id: &str) -> Option<TwoForms> {
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
                        struct {{ integer {{ size = 32; align = {long}; }} id;
                                integer {{ size = 64; align = {long};
                                           map = clock.monotonic.value; }} timestamp; }} extended;
                    }} v;
                }} align({whole});
            }};
            event {{ name = \"e\"; id = 0; stream_id = 0; fields := struct {{ }}; }};"
        );
        TwoForms::of(&parse_metadata(metadata.as_bytes()).unwrap().trace.streams[0])
    }

    const ID: &str =
        "enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 }";

    fn check(byte_order: &str, bytes: &[u8], id: u64, cycles: u64, bits: usize) {
        let form = two_forms(byte_order, (8, 8), ID).unwrap();
        let mut window = bytes.to_vec();
        window.resize(bytes.len() + 16, 0xff);
        let mut cursor = Cursor {
            end: bytes.len() * 8,
            ..Cursor::default()
        };
        assert_eq!(form.decode(&window, &mut cursor), Read::Done);
        assert_eq!(
            (cursor.event_id, cursor.cycles, cursor.at),
            (id, cycles, bits)
        );
        let mut cursor = Cursor {
            end: bits - 8,
            ..Cursor::default()
        };
        assert_eq!(form.decode(&window, &mut cursor), Read::Short);
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
        let long = two_forms("le", (32, 32), ID).unwrap().long.unwrap();
        assert_eq!((long.id.offset, long.time.offset, long.bits), (32, 64, 128));
    }

    #[test]
    fn a_long_form_without_fixed_places_is_left_to_the_plan() {
        let form = two_forms("le", (32, 64), ID).unwrap();
        let read = |first: u8| {
            let mut window = vec![0; 32];
            window[4] = first;
            let mut cursor = Cursor {
                at: 8,
                end: 64,
                ..Cursor::default()
            };
            (form.decode(&window, &mut cursor), cursor.at)
        };
        assert_eq!(read(9), (Read::Done, 64));
        assert_eq!(read(31), (Read::Long, 8));
    }

    #[test]
    fn other_headers_are_left_to_the_plan() {
        let unusual =
            "enum : integer { size = 5; align = 1; } { compact = 0 ... 29, extended = 31 }";
        assert!(two_forms("le", (8, 8), unusual).is_none());
    }
}
