//! Converts TSDL types to field classes: each use of a type gets its own copy, in which references
//! to other fields are absolute.

use rustc_hash::FxHashMap;

use super::super::class::{
    ByteOrder, ClockClass, FieldClass, FieldLocation, IntegerClass, IntegerKind, Mapping, Range,
    Scope, StructClass, TextEncoding, VariantOption,
};
use super::super::field_lookup::{FieldLookup, VariantStep};
use super::super::metadata::{Fault, FieldBudget, STRUCT_MEMBERS_MAX};
use super::syntax::{Field, IntegerType, Kind, Reference, Type, strip_underscore};

/// Prefixes of absolute references.
const SCOPE_PREFIXES: [(&[&str], Scope); 6] = [
    (&["trace", "packet", "header"], Scope::PacketHeader),
    (&["stream", "packet", "context"], Scope::PacketContext),
    (&["stream", "event", "header"], Scope::EventHeader),
    (&["stream", "event", "context"], Scope::EventContext),
    (&["event", "context"], Scope::SpecificContext),
    (&["event", "fields"], Scope::Payload),
];

pub(super) struct Binder<'c> {
    pub(super) lookup: FieldLookup<'c>,
    native: ByteOrder,
    clocks: &'c [ClockClass],
    budget: &'c FieldBudget,
}

impl<'c> Binder<'c> {
    pub(super) fn new(
        native: ByteOrder,
        clocks: &'c [ClockClass],
        budget: &'c FieldBudget,
    ) -> Binder<'c> {
        Binder {
            lookup: FieldLookup::new(VariantStep::Named),
            native,
            clocks,
            budget,
        }
    }

    /// The structure of one scope.
    pub(super) fn scope(&mut self, scope: Scope, class: &Type<'_>) -> Result<StructClass, Fault> {
        self.lookup.begin_scope(scope);
        match self.class(class)? {
            FieldClass::Struct(class) => Ok(class),
            _ => Err(Fault::new(class.offset, "expected a structure")),
        }
    }

    fn class(&mut self, class: &Type<'_>) -> Result<FieldClass, Fault> {
        self.budget.spend(1, class.offset)?;
        match class.kind.as_ref() {
            Kind::Integer(integer) => self.integer(integer, &[], class.offset),
            Kind::Enumeration {
                container,
                mappings,
            } => self.integer(container, mappings, class.offset),
            Kind::Float {
                bits,
                byte_order,
                alignment,
            } => {
                let byte_order = byte_order.unwrap_or(self.native);
                Ok(FieldClass::Float {
                    bits: *bits,
                    byte_order,
                    bit_order: byte_order.usual_bit_order(),
                    alignment: *alignment,
                })
            }
            Kind::Text => Ok(FieldClass::Text {
                encoding: TextEncoding::Utf8,
            }),
            Kind::Struct { members, alignment } => {
                self.structure(members, *alignment, class.offset)
            }
            Kind::Array { element, length } => {
                let element = self.class(element)?;
                Ok(array(element, *length))
            }
            Kind::Sequence { element, length } => {
                let length = self.length(length)?;
                let element = self.class(element)?;
                Ok(sequence(element, length))
            }
            Kind::Variant { tag, options } => self.variant(tag.as_ref(), options, class.offset),
            Kind::Unknown(name) => {
                let what = format!("the type `{name}` is not declared");
                Err(Fault::new(class.offset, what))
            }
        }
    }

    fn integer(
        &self,
        integer: &IntegerType,
        mappings: &[Mapping],
        offset: usize,
    ) -> Result<FieldClass, Fault> {
        self.budget.spend(mappings.len(), offset)?;
        let byte_order = integer.byte_order.unwrap_or(self.native);
        let clock = match &integer.clock {
            Some(name) => Some(self.clock(name, offset)?),
            None => None,
        };
        Ok(FieldClass::Integer(IntegerClass {
            bits: integer.bits,
            kind: if integer.signed {
                IntegerKind::Signed
            } else {
                IntegerKind::Unsigned
            },
            byte_order,
            bit_order: byte_order.usual_bit_order(),
            alignment: integer.alignment,
            base: integer.base,
            is_text: integer.is_text,
            clock,
            roles: Vec::new(),
            mappings: mappings.to_vec(),
        }))
    }

    fn clock(&self, name: &str, offset: usize) -> Result<usize, Fault> {
        let mut clocks = self.clocks.iter();
        clocks
            .position(|clock| clock.name == name)
            .ok_or_else(|| Fault::new(offset, format!("the clock `{name}` is not declared")))
    }

    fn structure(
        &mut self,
        members: &[Field<'_>],
        alignment: u32,
        offset: usize,
    ) -> Result<FieldClass, Fault> {
        if members.len() > STRUCT_MEMBERS_MAX {
            let what = format!("a structure with more than {STRUCT_MEMBERS_MAX} members");
            return Err(Fault::new(offset, what));
        }
        self.lookup.open_struct(members.len());
        let mut alignment = alignment;
        for member in members {
            self.lookup.begin_member(strip_underscore(member.name));
            let class = self.class(&member.class)?;
            alignment = alignment.max(class.alignment());
            self.lookup.end_member(class);
        }
        let members = self.lookup.close_struct();
        Ok(FieldClass::Struct(StructClass { members, alignment }))
    }

    fn variant(
        &mut self,
        tag: Option<&Reference<'_>>,
        options: &[Field<'_>],
        offset: usize,
    ) -> Result<FieldClass, Fault> {
        let Some(tag) = tag else {
            return Err(Fault::new(offset, "a variant without a tag"));
        };
        let (selector, target) = self.locate(tag)?;
        let labels = match target {
            FieldClass::Integer(integer) if !integer.mappings.is_empty() => {
                ranges_by_label(&integer.mappings)
            }
            _ => {
                let what = format!("the tag `{}` is not an enumeration", tag.dotted);
                return Err(Fault::new(tag.offset, what));
            }
        };
        let mut bound = Vec::with_capacity(options.len());
        for option in options {
            let ranges = labels
                .get(option.name)
                .or_else(|| labels.get(strip_underscore(option.name)));
            let name = strip_underscore(option.name);
            self.lookup.begin_option(name);
            let class = self.class(&option.class)?;
            self.lookup.end_option();
            bound.push(VariantOption {
                name: Some(name.to_owned()),
                ranges: ranges.cloned().unwrap_or_default(),
                class,
            });
        }
        Ok(FieldClass::Variant {
            selector,
            options: bound,
        })
    }

    fn length(&self, reference: &Reference<'_>) -> Result<FieldLocation, Fault> {
        let (location, target) = self.locate(reference)?;
        match target {
            FieldClass::Integer(integer) if integer.kind == IntegerKind::Unsigned => Ok(location),
            _ => {
                let name = &reference.dotted;
                let what = format!("the length `{name}` is not an unsigned integer");
                Err(Fault::new(reference.offset, what))
            }
        }
    }

    fn locate(&self, reference: &Reference<'_>) -> Result<(FieldLocation, &FieldClass), Fault> {
        let written: Vec<&str> = reference.dotted.split('.').collect();
        let parts: Vec<&str> = written.iter().map(|part| strip_underscore(part)).collect();
        let absolute = SCOPE_PREFIXES
            .iter()
            .find(|(prefix, _)| written.starts_with(prefix));
        let found = match absolute {
            Some((prefix, scope)) => self.lookup.find_in_scope(*scope, &parts[prefix.len()..]),
            None => self.lookup.find_outwards(&parts),
        };
        found.ok_or_else(|| {
            let what = format!("no field `{}` before this one", reference.dotted);
            Fault::new(reference.offset, what)
        })
    }
}

fn ranges_by_label(mappings: &[Mapping]) -> FxHashMap<String, Vec<Range>> {
    let pairs = mappings.iter();
    pairs
        .map(|mapping| (mapping.label.clone(), mapping.ranges.clone()))
        .collect()
}

fn is_character(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(integer)
        if integer.is_text && integer.alignment == 8 && integer.mappings.is_empty())
}

fn array(element: FieldClass, length: u64) -> FieldClass {
    if is_character(&element) {
        return FieldClass::StaticText {
            bytes: length,
            encoding: TextEncoding::Utf8,
        };
    }
    FieldClass::Array {
        alignment: element.alignment(),
        element: Box::new(element),
        length,
    }
}

fn sequence(element: FieldClass, length: FieldLocation) -> FieldClass {
    if is_character(&element) {
        return FieldClass::DynamicText {
            length,
            encoding: TextEncoding::Utf8,
        };
    }
    FieldClass::Sequence {
        alignment: element.alignment(),
        element: Box::new(element),
        length,
    }
}
