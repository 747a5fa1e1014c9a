//! Texts, blobs, arrays and sequences.

use rustc_hash::FxHashSet;

use super::numbers::{is_reversed, number_of};
use super::{Compiler, Leaf};
use crate::importers::ctf::class::{FieldClass, IntegerClass, Role, TextEncoding};
use crate::importers::ctf::phase::Phase;
use crate::importers::ctf::plan::{
    BytesKind, Count, Element, Load, LoadKind, MAX_STATIC_BITS, Meaning, NO_SLOT, NOTHING_ELSE,
    OddLoad, Op, PlanError, Rows,
};
use crate::importers::ctf::slot::SlotKind;

impl<'a> Compiler<'a> {
    pub(super) fn bytes(
        &mut self,
        count: Count,
        kind: BytesKind,
        roles: &[Role],
    ) -> Result<(), PlanError> {
        self.align(8)?;
        let slot = self.slot_once(roles)?;
        match count {
            Count::Fixed(bytes) => self.static_bytes(bytes, kind, slot),
            Count::Register(_) => {
                self.end_run();
                self.plan.ops.push(Op::Bytes { count, kind, slot });
                self.phase = Phase {
                    modulus: 8,
                    residue: 0,
                };
                Ok(())
            }
        }
    }

    pub(super) fn static_bytes(
        &mut self,
        bytes: u64,
        kind: BytesKind,
        slot: u16,
    ) -> Result<(), PlanError> {
        if bytes > MAX_STATIC_BITS / 8 {
            return Err(PlanError::Size(bytes));
        }
        let offset = self.append(bytes * 8)?;
        if slot != NO_SLOT {
            let (kind, gives, bits) = match kind {
                BytesKind::Text { unit_bytes: 1 } => (LoadKind::Text, SlotKind::Str, 1),
                BytesKind::Text { unit_bytes } => (LoadKind::WideText, SlotKind::Str, unit_bytes),
                BytesKind::Blob => (LoadKind::Blob, SlotKind::Bytes, 1),
            };
            let (also, extent) = (NOTHING_ELSE, bytes as u32);
            self.plan.loads.push(Load {
                kind,
                gives,
                bits,
                slot,
                also,
                offset,
                extent,
            });
        }
        Ok(())
    }

    /// An array or sequence; `alignment` is that of its elements.
    pub(super) fn elements(
        &mut self,
        element: &'a FieldClass,
        count: Count,
        alignment: u32,
    ) -> Result<(), PlanError> {
        self.align(alignment.max(1))?;
        if let FieldClass::Integer(integer) = element {
            let in_order = !is_reversed(integer.byte_order, integer.bit_order);
            let is_byte = integer.bits == 8 && integer.alignment <= 8 && in_order;
            if is_byte && self.phase.is_multiple_of(8) {
                return self.bytes(count, bytes_kind(integer), &integer.roles);
            }
            if integer.bits > 0 && integer.bits <= 64 {
                return self.integers(integer, count);
            }
        }
        self.end_run();
        let at = self.plan.ops.len();
        self.plan.ops.push(Op::Repeat { count, ops: 0 });
        let before = self.phase;
        self.phase = Phase::ANYWHERE;
        self.conditions += 1;
        self.repeats += 1;
        self.field(element)?;
        self.end_run();
        self.conditions -= 1;
        self.repeats -= 1;
        self.phase = self.phase.either(before);
        if let Some(rows) = self.rows(at + 1) {
            self.plan.ops.truncate(at);
            self.plan.ops.push(Op::Rows { count, rows });
            return Ok(());
        }
        let ops = (self.plan.ops.len() - at - 1) as u32;
        self.plan.ops[at] = Op::Repeat { count, ops };
        Ok(())
    }

    /// The operations from `begin` on, if all they do is read integers at fixed positions, each
    /// into a column of its own.
    fn rows(&self, begin: usize) -> Option<Rows> {
        let (alignment, run) = match self.plan.ops[begin..] {
            [run] => (1, run),
            [Op::Align { bits }, run] => (bits, run),
            _ => return None,
        };
        let Op::Run { bits, first, count } = run else {
            return None;
        };
        let mut columns = FxHashSet::default();
        let is_plain = |load: &Load| {
            let also = self.plan.also.get(load.also as usize);
            load.kind.is_integer()
                && load.slot == NO_SLOT
                && also.is_some_and(|also| match also.meaning {
                    Meaning::Element { column } => {
                        also.register.is_none() && columns.insert(column)
                    }
                    _ => false,
                })
        };
        let loads = &self.plan.loads[first as usize..(first + count) as usize];
        let is_plain = bits > 0 && loads.iter().all(is_plain);
        is_plain.then(|| Rows {
            bits,
            alignment,
            stride_bits: bits.next_multiple_of(alignment),
            first,
            count,
        })
    }

    pub(super) fn integers(&mut self, class: &IntegerClass, count: Count) -> Result<(), PlanError> {
        self.align(class.alignment)?;
        let slot = self.slot_of(&[])?;
        self.end_run();
        let odd = OddLoad {
            bits: class.bits,
            byte_order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            number: number_of(class),
        };
        let stride_bits = class.bits.next_multiple_of(class.alignment.max(1));
        self.phase = Phase {
            modulus: class.alignment.max(1),
            residue: 0,
        }
        .advanced(u64::from(class.bits));
        let load = self.load_at(
            odd,
            0,
            Leaf {
                slot,
                also: NOTHING_ELSE,
            },
        );
        let is_bytes = class.bits == 8 && stride_bits == 8 && !odd.reversed && self.repeats == 0;
        let as_bytes = is_bytes.then_some(bytes_kind(class));
        let column = if slot == NO_SLOT {
            0
        } else {
            self.column(slot)
        };
        let element = Element {
            load,
            stride_bits,
            as_bytes,
        };
        self.plan.ops.push(Op::Ints {
            count,
            element,
            slot,
            column,
        });
        // Without elements the position does not change, so only the alignment is certain.
        self.phase = self.phase.either(Phase {
            modulus: class.alignment.max(1),
            residue: 0,
        });
        Ok(())
    }
}

pub(super) fn text(encoding: TextEncoding) -> BytesKind {
    BytesKind::Text {
        unit_bytes: encoding.unit_bytes() as u8,
    }
}

/// Kind of an array of these, if they are bytes.
fn bytes_kind(class: &IntegerClass) -> BytesKind {
    if class.is_text {
        text(TextEncoding::Utf8)
    } else {
        BytesKind::Blob
    }
}
