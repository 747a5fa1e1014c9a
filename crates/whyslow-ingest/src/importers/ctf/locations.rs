//! Which fields tell lengths and selectors of others.

use rustc_hash::FxHashMap;

use super::class::{FieldClass, FieldLocation, Scope, TraceClass};

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
