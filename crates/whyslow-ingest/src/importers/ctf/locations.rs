//! Fields that contain lengths and selectors of others.

use rustc_hash::{FxHashMap, FxHashSet};

use super::class::{FieldClass, FieldLocation, Scope, TraceClass};

/// A register for each field that some length or selector of the trace refers to.
#[derive(Debug, Default)]
pub(super) struct Locations {
    registers: FxHashMap<FieldLocation, u16>,
    /// Scopes and last names of these fields, which exclude most other fields.
    lasts: [FxHashSet<String>; 6],
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

    pub(super) fn register<S: AsRef<str>>(&self, scope: Scope, path: &[S]) -> Option<u16> {
        let lasts = &self.lasts[scope as usize];
        if lasts.is_empty() || !lasts.contains(path.last()?.as_ref()) {
            return None;
        }
        self.register_of(&FieldLocation {
            scope,
            path: path.iter().map(|name| name.as_ref().to_owned()).collect(),
        })
    }

    pub(super) fn register_of(&self, location: &FieldLocation) -> Option<u16> {
        self.registers.get(location).copied()
    }

    fn add(&mut self, location: &FieldLocation) {
        if self.registers.contains_key(location) {
            return;
        }
        let next = self.registers.len().min(usize::from(u16::MAX)) as u16;
        if let Some(last) = location.path.last() {
            self.lasts[location.scope as usize].insert(last.clone());
        }
        self.registers.insert(location.clone(), next);
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

/// Registers that have a value so far, and whether it is signed.
pub(super) type Defined = FxHashMap<u16, bool>;
