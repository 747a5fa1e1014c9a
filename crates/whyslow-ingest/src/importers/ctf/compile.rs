//! From the classes of the metadata to a [`Plan`].
//!
//! While it walks over the classes the compiler knows the position modulo a power of two (its
//! *phase*). So most padding is a constant and stays inside a run; an `Align` operation is needed
//! only where a class wants a greater alignment than what is known, for example after a string.

use rustc_hash::{FxHashMap, FxHashSet};

use super::class::{
    BitOrder, ByteOrder, FieldClass, FieldLocation, IntegerClass, IntegerKind, Range, Role, Scope,
    StructClass, TextEncoding, TraceClass, VariantOption,
};
use super::consumer::FieldName;
use super::decoded::{Slot, SlotKind};
use super::plan::{
    Also, BytesKind, Choice, Count, Element, Load, LoadKind, MAX_ALIGNMENT_BITS, MAX_DEPTH,
    MAX_STATIC_BITS, Meaning, NO_SLOT, NOTHING_ELSE, Number, OddLoad, Op, Plan, PlanError,
    ROLE_SLOTS, role_slot,
};

/// Which fields get a slot.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    Nothing,
    Fields(&'a [FieldName]),
    Everything,
    /// Those with a role, in the slot of the role.
    Roles,
}

/// What is known of a position: `residue` modulo `modulus` (a power of two), in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phase {
    modulus: u32,
    residue: u32,
}

impl Phase {
    pub(super) const PACKET_BEGIN: Phase = Phase {
        modulus: MAX_ALIGNMENT_BITS,
        residue: 0,
    };
    pub(super) const ANYWHERE: Phase = Phase {
        modulus: 1,
        residue: 0,
    };

    fn advanced(self, bits: u64) -> Phase {
        let residue = (u64::from(self.residue) + bits) % u64::from(self.modulus);
        Phase {
            modulus: self.modulus,
            residue: residue as u32,
        }
    }

    fn is_multiple_of(self, bits: u32) -> bool {
        self.modulus >= bits && self.residue.is_multiple_of(bits)
    }

    /// What holds whichever of the two is true.
    fn either(self, other: Phase) -> Phase {
        let mut modulus = self.modulus.min(other.modulus);
        while self.residue % modulus != other.residue % modulus {
            modulus /= 2;
        }
        Phase {
            modulus,
            residue: self.residue % modulus,
        }
    }
}

/// A register for each field that some length or selector of the trace refers to.
#[derive(Debug, Default)]
pub(super) struct Locations {
    registers: FxHashMap<FieldLocation, u16>,
}

impl Locations {
    pub(super) fn of(trace: &TraceClass) -> Locations {
        let mut locations = Locations::default();
        let streams = trace.streams.iter().flat_map(|stream| {
            let events = stream
                .events
                .iter()
                .flat_map(|event| [&event.context, &event.payload]);
            [
                &stream.packet_context,
                &stream.event_header,
                &stream.event_context,
            ]
            .into_iter()
            .chain(events)
        });
        for structure in std::iter::once(&trace.packet_header)
            .chain(streams)
            .flatten()
        {
            for member in &structure.members {
                locations.collect(&member.class);
            }
        }
        locations
    }

    pub(super) fn len(&self) -> usize {
        self.registers.len()
    }

    pub(super) fn register(&self, scope: Scope, path: &[String]) -> Option<u16> {
        if self.registers.is_empty() {
            return None;
        }
        self.registers
            .get(&FieldLocation {
                scope,
                path: path.to_vec(),
            })
            .copied()
    }

    fn add(&mut self, location: &FieldLocation) {
        let next = self.registers.len().min(usize::from(u16::MAX)) as u16;
        self.registers.entry(location.clone()).or_insert(next);
    }

    fn collect(&mut self, class: &FieldClass) {
        match class {
            FieldClass::DynamicText { length, .. } | FieldClass::DynamicBlob { length } => {
                self.add(length);
            }
            FieldClass::Struct(structure) => {
                for member in &structure.members {
                    self.collect(&member.class);
                }
            }
            FieldClass::Array { element, .. } => self.collect(element),
            FieldClass::Sequence {
                element, length, ..
            } => {
                self.add(length);
                self.collect(element);
            }
            FieldClass::Variant { selector, options } => {
                self.add(selector);
                for option in options {
                    self.collect(&option.class);
                }
            }
            FieldClass::Optional {
                selector, class, ..
            } => {
                self.add(selector);
                self.collect(class);
            }
            _ => {}
        }
    }
}

/// Registers that have a value by now, and whether it is signed.
pub(super) type Defined = FxHashMap<u16, bool>;

/// Compiles structures that follow one another.
pub(super) struct Compiler<'a> {
    locations: &'a Locations,
    defined: Defined,
    selection: Selection<'a>,
    wanted: FxHashMap<(Scope, &'a str), u16>,
    filled: FxHashSet<u16>,
    columns: FxHashMap<u16, u16>,
    plan: Plan,
    phase: Phase,
    run: Option<Run>,
    scope: Scope,
    /// With the names of options of variants, and without.
    path: Vec<String>,
    path_short: Vec<String>,
    /// Inside a variant, an optional or an array: the field may not be there.
    conditions: usize,
    /// Inside an array of structures.
    repeats: usize,
    depth: usize,
}

/// A run being collected.
struct Run {
    bits: u64,
    first: u32,
}

/// One field for which code is made.
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
            Selection::Nothing | Selection::Everything => {}
        }
        Compiler {
            locations,
            defined,
            selection,
            wanted,
            filled: FxHashSet::default(),
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

    /// Adds a structure of this scope after those that were added before.
    pub(super) fn add(&mut self, scope: Scope, structure: &StructClass) -> Result<(), PlanError> {
        self.scope = scope;
        self.structure(structure)
    }

    /// The plan, where it ends, and which registers then have a value.
    pub(super) fn finish(mut self) -> (Plan, Phase, Defined) {
        self.end_run();
        for slot in 0..self.plan.slots as u16 {
            let is_copy = self.plan.copies.iter().any(|&(_, to)| to == slot);
            let is_reset = self.plan.resets.iter().any(|&(reset, _)| reset == slot);
            if !self.filled.contains(&slot) && !is_copy && !is_reset {
                self.plan.resets.push((slot, Slot::ABSENT));
            }
        }
        (self.plan, self.phase, self.defined)
    }

    fn structure(&mut self, structure: &StructClass) -> Result<(), PlanError> {
        self.align(structure.alignment)?;
        for member in &structure.members {
            self.path.push(member.name.clone());
            self.path_short.push(member.name.clone());
            self.field(&member.class)?;
            self.path.pop();
            self.path_short.pop();
        }
        Ok(())
    }

    fn field(&mut self, class: &FieldClass) -> Result<(), PlanError> {
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
                    reversed: is_reversed(*byte_order, *bit_order),
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
                self.bytes(Count::Fixed(*bytes), text(*encoding), &[])?;
            }
            FieldClass::StaticBlob { bytes, roles } => {
                self.bytes(Count::Fixed(*bytes), BytesKind::Blob, roles)?;
            }
            FieldClass::DynamicText { length, encoding } => {
                let count = self.count(length)?;
                self.bytes(count, text(*encoding), &[])?;
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
                self.choose(selector, options.iter().map(Branch::from).collect(), false)?;
            }
            FieldClass::Optional {
                selector,
                ranges,
                class,
            } => {
                self.choose(
                    selector,
                    vec![Branch {
                        name: None,
                        ranges,
                        class,
                    }],
                    true,
                )?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn integer(&mut self, class: &IntegerClass) -> Result<(), PlanError> {
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

    fn variable_integer(&mut self, class: &IntegerClass) -> Result<(), PlanError> {
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

    /// Only in an event's header do fields tell its time and class.
    fn meaning(&self, class: &IntegerClass) -> Meaning {
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
    fn load(&mut self, odd: OddLoad, leaf: Leaf) -> Result<(), PlanError> {
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
    fn load_at(&mut self, odd: OddLoad, offset: u32, leaf: Leaf) -> Load {
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

    fn bytes(&mut self, count: Count, kind: BytesKind, roles: &[Role]) -> Result<(), PlanError> {
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

    fn static_bytes(&mut self, bytes: u64, kind: BytesKind, slot: u16) -> Result<(), PlanError> {
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
    fn elements(
        &mut self,
        element: &FieldClass,
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
        let ops = (self.plan.ops.len() - at - 1) as u32;
        self.plan.ops[at] = Op::Repeat { count, ops };
        Ok(())
    }

    fn integers(&mut self, class: &IntegerClass, count: Count) -> Result<(), PlanError> {
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
        // With no element the position is where it was, so only the alignment is sure.
        self.phase = self.phase.either(Phase {
            modulus: class.alignment.max(1),
            residue: 0,
        });
        Ok(())
    }

    fn choose(
        &mut self,
        selector: &FieldLocation,
        branches: Vec<Branch<'_>>,
        optional: bool,
    ) -> Result<(), PlanError> {
        let register = self.register_of(selector)?;
        let bias = if self.defined[&register] { 1 << 63 } else { 0 };
        self.end_run();
        let at = self.plan.ops.len();
        let first = self.plan.choices.len() as u32;
        let count = branches.len() as u32;
        let none = Choice {
            ranges: (0, 0),
            ops: (0, 0),
        };
        self.plan.ops.push(Op::Align { bits: 1 });
        self.plan
            .choices
            .extend(std::iter::repeat_n(none, branches.len()));
        let before = self.phase;
        let mut after = optional.then_some(before);
        self.conditions += 1;
        for (index, branch) in branches.iter().enumerate() {
            let ranges = self.ranges(branch.ranges, bias);
            let ops = self.plan.ops.len() as u32;
            self.phase = before;
            self.branch(branch)?;
            after = Some(after.map_or(self.phase, |after| after.either(self.phase)));
            let ops = (ops, self.plan.ops.len() as u32);
            self.plan.choices[first as usize + index] = Choice { ranges, ops };
        }
        self.conditions -= 1;
        self.phase = after.unwrap_or(before);
        let ops = (self.plan.ops.len() - at - 1) as u32;
        self.plan.ops[at] = Op::Choose {
            selector: register,
            bias,
            first,
            count,
            ops,
            optional,
        };
        Ok(())
    }

    fn branch(&mut self, branch: &Branch<'_>) -> Result<(), PlanError> {
        if let Some(name) = branch.name {
            self.path.push(name.to_owned());
        }
        self.field(branch.class)?;
        if branch.name.is_some() {
            self.path.pop();
        }
        self.end_run();
        Ok(())
    }

    fn ranges(&mut self, ranges: &[Range], bias: u64) -> (u32, u32) {
        let first = self.plan.ranges.len() as u32;
        let (lowest, highest) = if bias == 0 {
            (0, i128::from(u64::MAX))
        } else {
            (i128::from(i64::MIN), i128::from(i64::MAX))
        };
        for range in ranges {
            let (begin, end) = (range.first.max(lowest), range.last.min(highest));
            if begin <= end {
                self.plan
                    .ranges
                    .push((begin as u64 ^ bias, end as u64 ^ bias));
            }
        }
        (first, self.plan.ranges.len() as u32)
    }

    fn count(&self, location: &FieldLocation) -> Result<Count, PlanError> {
        self.register_of(location).map(Count::Register)
    }

    fn register_of(&self, location: &FieldLocation) -> Result<u16, PlanError> {
        let register = self.locations.register(location.scope, &location.path);
        register
            .filter(|register| self.defined.contains_key(register))
            .ok_or_else(|| {
                PlanError::Location(format!("{:?} {}", location.scope, location.path.join(".")))
            })
    }

    /// Slot, register and meaning of the number at the current path.
    fn leaf(
        &mut self,
        roles: &[Role],
        meaning: Meaning,
        signed: Option<bool>,
    ) -> Result<Leaf, PlanError> {
        let register = self
            .locations
            .register(self.scope, &self.path)
            .or_else(|| self.locations.register(self.scope, &self.path_short));
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

    /// As [`Self::slot_of`], but there is no slot for it inside an array of structures.
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
            Selection::Everything => {
                let slot = u16::try_from(self.plan.slots).map_err(|_| PlanError::Fields)?;
                if slot == NO_SLOT {
                    return Err(PlanError::Fields);
                }
                self.plan.slots += 1;
                self.plan
                    .names
                    .push(FieldName::new(self.scope, self.path.join(".")));
                slot
            }
        };
        if slot != NO_SLOT {
            self.filled.insert(slot);
            if self.conditions > 0 && self.repeats == 0 {
                self.plan.resets.push((slot, Slot::ABSENT));
            }
        }
        Ok(slot)
    }

    /// The column of the slot; empty when an event begins. Inside an array of structures the
    /// slot shows it from the beginning, because there may be no element to set it.
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

    /// Makes the run longer; gives where the new part begins in it.
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

/// One option of a variant, or the content of an optional field.
struct Branch<'a> {
    name: Option<&'a str>,
    ranges: &'a [Range],
    class: &'a FieldClass,
}

impl<'a> From<&'a VariantOption> for Branch<'a> {
    fn from(option: &'a VariantOption) -> Branch<'a> {
        Branch {
            name: option.name.as_deref(),
            ranges: &option.ranges,
            class: &option.class,
        }
    }
}

fn number_of(class: &IntegerClass) -> Number {
    if class.kind == IntegerKind::Signed {
        Number::Signed
    } else {
        Number::Unsigned
    }
}

fn text(encoding: TextEncoding) -> BytesKind {
    BytesKind::Text {
        unit_bytes: encoding.unit_bytes() as u8,
    }
}

/// What an array of these is, if they are bytes.
fn bytes_kind(class: &IntegerClass) -> BytesKind {
    if class.is_text {
        text(TextEncoding::Utf8)
    } else {
        BytesKind::Blob
    }
}

fn is_reversed(byte_order: ByteOrder, bit_order: BitOrder) -> bool {
    bit_order != byte_order.usual_bit_order()
}
