//! Compiles the classes of the metadata to a [`Plan`].
//!
//! While walking the classes, the compiler knows the position modulo a power of two (its *phase*).
//! So most padding is constant and stays inside a run; an `Align` operation is needed only where a
//! class requires a greater alignment than the known phase, for example after a string.

mod arrays;
mod choices;
mod numbers;

use rustc_hash::FxHashMap;

use self::choices::Branch;
use super::class::{FieldClass, Role, Scope, StructClass};
use super::locations::{Defined, Locations};
use super::phase::Phase;
use super::plan::{
    Also, BytesKind, Count, MAX_ALIGNMENT_BITS, MAX_DEPTH, MAX_STATIC_BITS, Meaning, NO_SLOT,
    NOTHING_ELSE, Number, OddLoad, Op, Plan, PlanError, ROLE_SLOTS, role_slot,
};
use super::slot::Slot;
use super::want::FieldName;

/// Which fields get a slot.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    Nothing,
    Fields(&'a [FieldName]),
    Everything,
    /// All fields, with their names in the plan.
    EverythingNamed,
    /// Fields with a role, in the slot of the role.
    Roles,
}

/// Compiles consecutive structures.
pub(super) struct Compiler<'a> {
    locations: &'a Locations,
    defined: Defined,
    selection: Selection<'a>,
    wanted: FxHashMap<(Scope, &'a str), u16>,
    /// Whether each preassigned slot is used.
    filled: Vec<bool>,
    columns: FxHashMap<u16, u16>,
    plan: Plan,
    phase: Phase,
    run: Option<Run>,
    scope: Scope,
    /// Including and excluding the names of variant options.
    path: Vec<&'a str>,
    path_short: Vec<&'a str>,
    /// Inside a variant, an optional or an array: the field may be absent.
    conditions: usize,
    /// Inside an array of structures.
    repeats: usize,
    depth: usize,
}

/// The current run.
struct Run {
    bits: u64,
    first: u32,
}

/// One field for which code is generated.
struct Leaf {
    slot: u16,
    also: u16,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(
        locations: &'a Locations,
        defined: Defined,
        phase: Phase,
        selection: Selection<'a>,
    ) -> Compiler<'a> {
        let mut plan = Plan {
            ops: Vec::new(),
            loads: Vec::new(),
            odd: Vec::new(),
            also: Vec::new(),
            choices: Vec::new(),
            ranges: Vec::new(),
            resets: Vec::new(),
            clears: Vec::new(),
            copies: Vec::new(),
            slots: 0,
            columns: 0,
            names: Vec::new(),
        };
        let mut wanted = FxHashMap::default();
        match selection {
            Selection::Fields(fields) => {
                plan.slots = fields.len();
                for (slot, field) in fields.iter().enumerate() {
                    let slot = slot as u16;
                    let first = *wanted
                        .entry((field.scope, field.path.as_str()))
                        .or_insert(slot);
                    if first != slot {
                        plan.copies.push((first, slot));
                    }
                }
            }
            Selection::Roles => plan.slots = ROLE_SLOTS,
            Selection::Nothing | Selection::Everything | Selection::EverythingNamed => {}
        }
        Compiler {
            locations,
            defined,
            selection,
            wanted,
            filled: vec![false; plan.slots],
            columns: FxHashMap::default(),
            plan,
            phase,
            run: None,
            scope: Scope::Payload,
            path: Vec::new(),
            path_short: Vec::new(),
            conditions: 0,
            repeats: 0,
            depth: 0,
        }
    }

    /// Adds a structure of this scope after the previous ones.
    pub(super) fn add(
        &mut self,
        scope: Scope,
        structure: &'a StructClass,
    ) -> Result<(), PlanError> {
        self.scope = scope;
        self.structure(structure)
    }

    /// The plan, the phase at its end, and the registers that then have a value.
    pub(super) fn finish(mut self) -> (Plan, Phase, Defined) {
        self.end_run();
        for (slot, is_filled) in self.filled.iter().enumerate() {
            if *is_filled {
                continue;
            }
            let slot = slot as u16;
            let is_copy = self.plan.copies.iter().any(|&(_, to)| to == slot);
            let is_reset = self.plan.resets.iter().any(|&(reset, _)| reset == slot);
            if !is_copy && !is_reset {
                self.plan.resets.push((slot, Slot::ABSENT));
            }
        }
        (self.plan, self.phase, self.defined)
    }

    fn structure(&mut self, structure: &'a StructClass) -> Result<(), PlanError> {
        self.align(structure.alignment)?;
        for member in &structure.members {
            self.path.push(&member.name);
            self.path_short.push(&member.name);
            self.field(&member.class)?;
            self.path.pop();
            self.path_short.pop();
        }
        Ok(())
    }

    fn field(&mut self, class: &'a FieldClass) -> Result<(), PlanError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PlanError::Depth);
        }
        match class {
            FieldClass::Integer(integer) => self.integer(integer)?,
            FieldClass::VariableInteger(integer) => self.variable_integer(integer)?,
            FieldClass::Float {
                bits,
                byte_order,
                bit_order,
                alignment,
            } => {
                self.align(*alignment)?;
                let odd = OddLoad {
                    bits: *bits,
                    byte_order: *byte_order,
                    reversed: numbers::is_reversed(*byte_order, *bit_order),
                    number: Number::Float,
                };
                let leaf = self.leaf(&[], Meaning::None, None)?;
                self.load(odd, leaf)?;
            }
            FieldClass::Text { encoding } => {
                self.align(8)?;
                let slot = self.slot_once(&[])?;
                self.end_run();
                self.plan.ops.push(Op::Text {
                    unit_bytes: encoding.unit_bytes(),
                    slot,
                });
                self.phase = Phase {
                    modulus: 8,
                    residue: 0,
                };
            }
            FieldClass::StaticText { bytes, encoding } => {
                self.bytes(Count::Fixed(*bytes), arrays::text(*encoding), &[])?;
            }
            FieldClass::StaticBlob { bytes, roles } => {
                self.bytes(Count::Fixed(*bytes), BytesKind::Blob, roles)?;
            }
            FieldClass::DynamicText { length, encoding } => {
                let count = self.count(length)?;
                self.bytes(count, arrays::text(*encoding), &[])?;
            }
            FieldClass::DynamicBlob { length } => {
                let count = self.count(length)?;
                self.bytes(count, BytesKind::Blob, &[])?;
            }
            FieldClass::Struct(structure) => self.structure(structure)?,
            FieldClass::Array {
                element,
                length,
                alignment,
            } => {
                self.elements(element, Count::Fixed(*length), *alignment)?;
            }
            FieldClass::Sequence {
                element,
                length,
                alignment,
            } => {
                let count = self.count(length)?;
                self.elements(element, count, *alignment)?;
            }
            FieldClass::Variant { selector, options } => {
                let branches: Vec<Branch> = options.iter().map(Branch::from).collect();
                self.choose(selector, &branches, false)?;
            }
            FieldClass::Optional {
                selector,
                ranges,
                class,
            } => {
                let name = None;
                let branch = Branch {
                    name,
                    ranges,
                    class,
                };
                self.choose(selector, &[branch], true)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Slot, register and meaning of the number at the current path.
    fn leaf(
        &mut self,
        roles: &[Role],
        meaning: Meaning,
        signed: Option<bool>,
    ) -> Result<Leaf, PlanError> {
        let (locations, scope) = (self.locations, self.scope);
        let mut register = locations.register(scope, &self.path);
        if register.is_none() && self.path.len() > self.path_short.len() {
            register = locations.register(scope, &self.path_short);
        }
        if let Some(register) = register {
            self.defined.insert(register, signed.unwrap_or(false));
        }
        let slot = if self.repeats > 0 && signed.is_none() {
            NO_SLOT
        } else {
            self.slot_of(roles)?
        };
        if self.repeats == 0 || slot == NO_SLOT {
            return Ok(Leaf {
                slot,
                also: self.also(register, meaning)?,
            });
        }
        let column = self.column(slot);
        let also = self.also(register, Meaning::Element { column })?;
        Ok(Leaf {
            slot: NO_SLOT,
            also,
        })
    }

    fn also(&mut self, register: Option<u16>, meaning: Meaning) -> Result<u16, PlanError> {
        if register.is_none() && meaning == Meaning::None {
            return Ok(NOTHING_ELSE);
        }
        let index = u16::try_from(self.plan.also.len()).map_err(|_| PlanError::Fields)?;
        if index == NOTHING_ELSE {
            return Err(PlanError::Fields);
        }
        self.plan.also.push(Also { register, meaning });
        Ok(index)
    }

    /// As [`Self::slot_of`], but without a slot inside an array of structures.
    fn slot_once(&mut self, roles: &[Role]) -> Result<u16, PlanError> {
        if self.repeats > 0 {
            Ok(NO_SLOT)
        } else {
            self.slot_of(roles)
        }
    }

    fn slot_of(&mut self, roles: &[Role]) -> Result<u16, PlanError> {
        let slot = match self.selection {
            Selection::Nothing => NO_SLOT,
            Selection::Roles => roles.first().map_or(NO_SLOT, |role| role_slot(*role)),
            Selection::Fields(_) => {
                let full = self.path.join(".");
                let short = self.path_short.join(".");
                let slot = self.wanted.get(&(self.scope, full.as_str()));
                slot.or_else(|| self.wanted.get(&(self.scope, short.as_str())))
                    .copied()
                    .unwrap_or(NO_SLOT)
            }
            Selection::Everything | Selection::EverythingNamed => {
                let slot = u16::try_from(self.plan.slots).map_err(|_| PlanError::Fields)?;
                if slot == NO_SLOT {
                    return Err(PlanError::Fields);
                }
                self.plan.slots += 1;
                if let Selection::EverythingNamed = self.selection {
                    let name = FieldName::new(self.scope, self.path.join("."));
                    self.plan.names.push(name);
                }
                slot
            }
        };
        if slot != NO_SLOT {
            if let Some(is_filled) = self.filled.get_mut(slot as usize) {
                *is_filled = true;
            }
            if self.conditions > 0 && self.repeats == 0 {
                self.plan.resets.push((slot, Slot::ABSENT));
            }
        }
        Ok(slot)
    }

    /// The column of the slot; empty at the start of an event. Inside an array of structures the
    /// slot refers to it from the start, because there may be no element to set it.
    fn column(&mut self, slot: u16) -> u16 {
        let next = self.plan.columns as u16;
        let column = *self.columns.entry(slot).or_insert(next);
        if column == next {
            self.plan.columns += 1;
            self.plan.clears.push(column);
        }
        if self.repeats > 0 {
            self.plan.resets.push((slot, Slot::ints(column)));
        }
        column
    }

    fn align(&mut self, bits: u32) -> Result<(), PlanError> {
        if bits <= 1 {
            return Ok(());
        }
        if !bits.is_power_of_two() || bits > MAX_ALIGNMENT_BITS {
            return Err(PlanError::Alignment(bits));
        }
        if self.phase.modulus >= bits {
            let padding = (bits - self.phase.residue % bits) % bits;
            if padding > 0 {
                self.append(u64::from(padding))?;
            }
        } else {
            self.end_run();
            self.plan.ops.push(Op::Align { bits });
            self.phase = Phase {
                modulus: bits,
                residue: 0,
            };
        }
        Ok(())
    }

    /// Extends the run; returns the offset of the new part.
    fn append(&mut self, bits: u64) -> Result<u32, PlanError> {
        let first = self.plan.loads.len() as u32;
        let run = self.run.get_or_insert(Run { bits: 0, first });
        let offset = run.bits;
        run.bits += bits;
        if run.bits > MAX_STATIC_BITS {
            return Err(PlanError::Size(run.bits / 8));
        }
        self.phase = self.phase.advanced(bits);
        Ok(offset as u32)
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let count = self.plan.loads.len() as u32 - run.first;
            self.plan.ops.push(Op::Run {
                bits: run.bits as u32,
                first: run.first,
                count,
            });
        }
    }
}
