//! Integers and floats.

use super::{Compiler, Leaf};
use crate::importers::ctf::class::{BitOrder, ByteOrder, IntegerClass, IntegerKind, Role, Scope};
use crate::importers::ctf::phase::Phase;
use crate::importers::ctf::plan::{
    Load, LoadKind, MAX_ALIGNMENT_BITS, Meaning, NO_SLOT, NOTHING_ELSE, Number, OddLoad, Op,
    PlanError,
};
use crate::importers::ctf::slot::{Slot, SlotKind};

impl Compiler<'_> {
    pub(super) fn integer(&mut self, class: &IntegerClass) -> Result<(), PlanError> {
        self.align(class.alignment)?;
        let number = number_of(class);
        let leaf = self.leaf(
            &class.roles,
            self.meaning(class),
            Some(number == Number::Signed),
        )?;
        let odd = OddLoad {
            bits: class.bits,
            byte_order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            number,
        };
        self.load(odd, leaf)
    }

    pub(super) fn variable_integer(&mut self, class: &IntegerClass) -> Result<(), PlanError> {
        self.align(8)?;
        let signed = class.kind == IntegerKind::Signed;
        let leaf = self.leaf(&class.roles, self.meaning(class), Some(signed))?;
        self.end_run();
        self.plan.ops.push(Op::Leb {
            signed,
            slot: leaf.slot,
            also: leaf.also,
        });
        self.phase = Phase {
            modulus: 8,
            residue: 0,
        };
        Ok(())
    }

    /// Only fields of an event header contain its time and class.
    pub(super) fn meaning(&self, class: &IntegerClass) -> Meaning {
        if self.scope != Scope::EventHeader {
            return Meaning::None;
        }
        let bits = if class.bits == 0 {
            64
        } else {
            class.bits.min(64)
        };
        if class.roles.contains(&Role::EventClassId) {
            Meaning::EventClassId
        } else if class.roles.contains(&Role::Timestamp) || class.clock.is_some() {
            Meaning::Time { bits }
        } else {
            Meaning::None
        }
    }

    /// Appends a number to the run.
    pub(super) fn load(&mut self, odd: OddLoad, leaf: Leaf) -> Result<(), PlanError> {
        let offset = self.append(u64::from(odd.bits))?;
        let readable = odd.bits <= 64 && odd.bits > 0;
        if leaf.slot == NO_SLOT && leaf.also == NOTHING_ELSE || !readable {
            if leaf.slot != NO_SLOT {
                self.plan.resets.push((leaf.slot, Slot::ABSENT));
            }
            return Ok(());
        }
        let load = self.load_at(odd, offset, leaf);
        self.plan.loads.push(load);
        Ok(())
    }

    /// How to read a number at `offset` in the run; `self.phase` is the position after it.
    pub(super) fn load_at(&mut self, odd: OddLoad, offset: u32, leaf: Leaf) -> Load {
        let begin = self
            .phase
            .advanced(u64::from(MAX_ALIGNMENT_BITS) * 2 - u64::from(odd.bits));
        let in_one_word = odd.bits <= 57 || begin.is_multiple_of(8);
        let is_odd = odd.number == Number::Float || odd.reversed || !in_one_word;
        let kind = match odd.byte_order {
            _ if is_odd => LoadKind::Odd,
            ByteOrder::Little => LoadKind::Little,
            ByteOrder::Big => LoadKind::Big,
        };
        let gives = match odd.number {
            Number::Unsigned => SlotKind::Unsigned,
            Number::Signed => SlotKind::Signed,
            Number::Float => SlotKind::Float,
        };
        let extent = self.plan.odd.len() as u32;
        if kind == LoadKind::Odd {
            self.plan.odd.push(odd);
        }
        Load {
            kind,
            gives,
            bits: odd.bits as u8,
            slot: leaf.slot,
            also: leaf.also,
            offset,
            extent,
        }
    }
}

pub(super) fn number_of(class: &IntegerClass) -> Number {
    if class.kind == IntegerKind::Signed {
        Number::Signed
    } else {
        Number::Unsigned
    }
}

pub(super) fn is_reversed(byte_order: ByteOrder, bit_order: BitOrder) -> bool {
    bit_order != byte_order.usual_bit_order()
}
