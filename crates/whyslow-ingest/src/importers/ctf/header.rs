//! Decodes the event headers of LTTng without a plan.
//!
//! ```text
//! struct { enum : ID { compact = 0 ... N, extended = N + 1 } id;
//!          variant <id> { struct { TIME timestamp; } compact;
//!                         struct { uint32 id; uint64 timestamp; } extended; } v; }
//! ```
//!
//! Nearly all traces have this header, with an id of 5 bits and a time of 27 (*compact*) or with 16
//! and 32 (*large*), in front of every event. Sizes, alignments and byte order may differ. With
//! natural alignment a field may be aligned to more than the header, so positions are computed
//! field by field.

use super::bits::{unsigned_big, unsigned_little};
use super::class::{
    ByteOrder, EventClass, FieldClass, FieldLocation, IntegerClass, IntegerKind, Member, Range,
    Role, Scope, StreamClass, StructClass,
};
use super::decode::Cursor;
use super::phase::Phase;

/// A number after the previous one.
#[derive(Debug, Clone, Copy)]
struct Field {
    /// Alignment minus one.
    mask: usize,
    bits: u32,
}

#[derive(Debug)]
pub(super) struct TwoForms {
    byte_order: ByteOrder,
    id: Field,
    /// The id that announces the extended form.
    escape: u64,
    time: Field,
    long_id: Field,
    long_time: Field,
}

impl TwoForms {
    /// None if the stream has a different header.
    // tidy: long because it recognises one header step by step
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
            phase: Phase::ANYWHERE,
            alignment: header.alignment,
            byte_order: None,
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
        let (mut short_layout, mut long_layout) = (layout, layout);
        let [time] = short_layout.members(&short.class)? else {
            return None;
        };
        let time = short_layout.integer(&time.class, is_time)?;
        let [long_id, long_time] = long_layout.members(&long.class)? else {
            return None;
        };
        let is_id = |class: &IntegerClass| class.roles.contains(&Role::EventClassId);
        let long_id = long_layout.integer(&long_id.class, is_id)?;
        let long_time = long_layout.integer(&long_time.class, is_time)?;
        Some(TwoForms {
            byte_order: layout.byte_order?,
            id,
            escape: escape as u64 - 1,
            time,
            long_id,
            long_time,
        })
    }

    /// Decodes id and time and advances past the header. None if the window ends before.
    #[inline]
    pub(super) fn decode(&self, window: &[u8], cursor: &mut Cursor) -> Option<()> {
        let (at, end) = (cursor.at, cursor.end);
        let (mut id, mut at) = self.read(window, (at, end), self.id)?;
        let mut field = self.time;
        if id == self.escape {
            (id, at) = self.read(window, (at, end), self.long_id)?;
            field = self.long_time;
        }
        let (time, at) = self.read(window, (at, end), field)?;
        cursor.at = at;
        cursor.event_id = id;
        cursor.advance_clock(time, field.bits);
        Some(())
    }

    /// The next number from a position on, and its end.
    #[inline]
    fn read(&self, window: &[u8], (at, end): (usize, usize), field: Field) -> Option<(u64, usize)> {
        let begin = (at + field.mask) & !field.mask;
        let behind = begin + field.bits as usize;
        if behind > end {
            return None;
        }
        let value = match self.byte_order {
            ByteOrder::Little => unsigned_little(window, begin, field.bits),
            ByteOrder::Big => unsigned_big(window, begin, field.bits),
        };
        Some((value, behind))
    }
}

fn is_time(class: &IntegerClass) -> bool {
    class.roles.contains(&Role::Timestamp) || class.clock.is_some()
}

/// Walks over consecutive numbers.
#[derive(Clone, Copy)]
struct Layout {
    phase: Phase,
    /// Of the structure that starts with the next number.
    alignment: u32,
    byte_order: Option<ByteOrder>,
}

impl Layout {
    fn members<'c>(&mut self, class: &'c FieldClass) -> Option<&'c [Member]> {
        let FieldClass::Struct(StructClass { members, alignment }) = class else {
            return None;
        };
        self.alignment = *alignment;
        Some(members)
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
        let alignment = class.alignment.max(self.alignment).max(1);
        let begin = self.phase.aligned(alignment);
        let in_one_word = class.bits <= 57 || begin.is_multiple_of(8);
        self.phase = begin.advanced(u64::from(class.bits));
        self.alignment = 1;
        self.byte_order = Some(class.byte_order);
        let field = Field {
            mask: alignment as usize - 1,
            bits: class.bits,
        };
        (in_one_word && (1..=64).contains(&class.bits)).then_some(field)
    }
}

/// Whether a length or selector of the event refers to a field of the header.
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

    /// The LTTng header with this declaration of the id, and these alignments of the whole, of the
    /// short form (whose time has 27 bits, or 32 if it is aligned) and of the long one.
    fn two_forms(
        byte_order: &str,
        (whole, short, long): (u32, u32, u32),
        id: &str,
    ) -> Option<TwoForms> {
        let bits = if short == 1 { 27 } else { 32 };
        let metadata = format!(
            "/* CTF 1.8 */
            trace {{ major = 1; minor = 8; byte_order = {byte_order}; }};
            clock {{ name = monotonic; }};
            stream {{
                id = 0;
                event.header := struct {{
                    {id} id;
                    variant <id> {{
                        struct {{ integer {{ size = {bits}; align = {short}; map = clock.monotonic.value; }}
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

    /// A header that starts at this bit.
    fn check(form: &TwoForms, (begin, bytes): (usize, &[u8]), id: u64, cycles: u64) {
        let mut window = bytes.to_vec();
        window.resize(bytes.len() + 16, 0xff);
        let cursor = |end| Cursor {
            at: begin,
            end,
            ..Cursor::default()
        };
        let bits = bytes.len() * 8;
        let mut whole = cursor(bits);
        assert_eq!(form.decode(&window, &mut whole), Some(()));
        assert_eq!((whole.event_id, whole.cycles, whole.at), (id, cycles, bits));
        for end in begin..bits {
            assert_eq!(form.decode(&window, &mut cursor(end)), None);
        }
    }

    #[test]
    fn both_forms_in_both_byte_orders() {
        let [little, big] = ["le", "be"].map(|order| two_forms(order, (8, 1, 8), ID).unwrap());
        check(&little, (0, &((77_u32 << 5) + 9).to_le_bytes()), 9, 77);
        check(&big, (0, &((9_u32 << 27) + 77).to_be_bytes()), 9, 77);
        let long = |id: [u8; 4], time: [u8; 8], first: u8| [&[first][..], &id, &time].concat();
        let bytes = long(500_u32.to_le_bytes(), 7_u64.to_le_bytes(), 31);
        check(&little, (0, &bytes), 500, 7);
        let bytes = long(500_u32.to_be_bytes(), 7_u64.to_be_bytes(), 31 << 3);
        check(&big, (0, &bytes), 500, 7);
    }

    #[test]
    fn fields_are_aligned_to_more_than_the_header() {
        let form = two_forms("le", (8, 32, 64), ID).unwrap();
        let mut bytes = [0; 24];
        bytes[1] = 31;
        bytes[8] = 200;
        bytes[16] = 7;
        check(&form, (3, &bytes), 200, 7);
        bytes[1] = 9;
        bytes[4] = 77;
        check(&form, (3, &bytes[..8]), 9, 77);
        let form = two_forms("be", (8, 8, 32), ID).unwrap();
        bytes = [0; 24];
        bytes[1] = 31 << 3;
        bytes[7] = 200;
        bytes[15] = 7;
        check(&form, (1, &bytes[..16]), 200, 7);
    }

    #[test]
    fn other_headers_are_left_to_the_plan() {
        let unusual =
            "enum : integer { size = 5; align = 1; } { compact = 0 ... 29, extended = 31 }";
        assert!(two_forms("le", (8, 1, 8), unusual).is_none());
    }
}
