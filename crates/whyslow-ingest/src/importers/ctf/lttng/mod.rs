//! Converts LTTng events to the vocabulary of [`whyslow_model::event`].
//!
//! The kernel tracer has renamed its events, fields and contexts several times since 2.0. A class
//! is resolved once, by name, when the trace is opened ([`Mapper::wants`]): a family's table (one
//! file each) defines the required fields and their names. After that an event costs slot reads and
//! one call through a pointer ([`Mapper::map`]); nothing is searched or allocated.
//!
//! Events without a table become [`Body::Other`] in a kernel trace. In user-space traces, and those
//! of other tracers, each event is a [`Body::Marker`] with its fields as text.

mod fields;
mod rendered;
mod statedump;

use whyslow_model::event::{Body, Context, Event, SyscallArgs};

use self::fields::{facts_of, has_field, resolve};
use self::rendered::RenderedClass;
use super::class::{Scope, StructClass};
use super::consumer::{ClassRef, Domain};
use super::decoded::DecodedEvent;
use super::want::{FieldName, Want};
use crate::importers::tracepoint::syscall::{self, SyscallClass};
use crate::importers::tracepoint::{Declared, FAMILIES, Facts, Fields, Mapping, Source};

/// Definitions of the event classes of the open traces.
#[derive(Default)]
pub struct Mapper {
    /// By [`ClassRef::index`].
    classes: Vec<Option<MappedClass>>,
    /// By [`ClassRef::trace_index`].
    facts: Vec<Option<Facts>>,
}

struct MappedClass {
    meaning: Meaning,
    facts: Facts,
    contexts: ContextSlots,
}

enum Meaning {
    Table(&'static Mapping),
    Syscall(SyscallClass),
    Rendered(RenderedClass),
    Other,
}

#[derive(Debug, Clone, Copy, Default)]
struct ContextSlots {
    tid: Option<usize>,
    pid: Option<usize>,
    ppid: Option<usize>,
    comm: Option<usize>,
    prio: Option<usize>,
}

impl Mapper {
    /// The fields required to convert a class.
    pub fn wants(&mut self, class: &ClassRef<'_>) -> Want {
        let facts = self.facts(class);
        let payload = class.event.payload.as_ref();
        let name = class.event.name.as_str();
        let (meaning, paths) = if class.trace.domain == Domain::User {
            user_meaning(class)
        } else if let Some((call, paths)) = syscall::classify(name, &payload, facts) {
            (Meaning::Syscall(call), paths)
        } else if let Some(mapping) = find(name).filter(|_| has_end(class)) {
            let paths = mapping.fields.iter().map(|field| resolve(payload, field));
            (Meaning::Table(mapping), paths.collect())
        } else if name == "lttng_logger" || class.trace.domain == Domain::Unknown {
            user_meaning(class)
        } else {
            (Meaning::Other, Vec::new())
        };
        let mut wanted: Vec<FieldName> = paths.into_iter().map(FieldName::payload).collect();
        let contexts = ContextSlots::of(class, &mut wanted);
        if self.classes.len() <= class.index {
            self.classes.resize_with(class.index + 1, || None);
        }
        self.classes[class.index] = Some(MappedClass {
            meaning,
            facts,
            contexts,
        });
        Want::Fields(wanted)
    }

    /// `None` if a required field is missing. `text` is the buffer for the fields of a rendered
    /// event, `args` that for system call arguments.
    pub fn map<'a>(
        &'a self,
        event: &DecodedEvent<'a>,
        text: &'a mut String,
        args: &'a mut Option<SyscallArgs<'a>>,
    ) -> Option<Event<'a>> {
        let class = self.classes.get(event.class)?.as_ref()?;
        let facts = class.facts;
        let fields = Fields {
            source: Source::Ctf(event),
            facts,
        };
        let body = match &class.meaning {
            Meaning::Table(mapping) => (mapping.body)(&fields)?,
            Meaning::Syscall(call) => call.body(&fields, args),
            Meaning::Rendered(rendered) => {
                rendered.render(&fields, text);
                Body::Marker {
                    name: &rendered.name,
                    text,
                }
            }
            Meaning::Other => Body::Other,
        };
        Some(Event {
            ts: event.ts,
            cpu: event.cpu,
            context: class.contexts.read(&fields),
            body,
        })
    }

    /// Whether events of the class have only a time and thread.
    pub fn is_unused(&self, class: usize) -> bool {
        let class = self.classes.get(class).and_then(Option::as_ref);
        class.is_none_or(|class| matches!(class.meaning, Meaning::Other))
    }

    fn facts(&mut self, class: &ClassRef<'_>) -> Facts {
        if self.facts.len() <= class.trace_index {
            self.facts.resize(class.trace_index + 1, None);
        }
        *self.facts[class.trace_index].get_or_insert_with(|| facts_of(&class.trace.class))
    }
}

fn user_meaning(class: &ClassRef<'_>) -> (Meaning, Vec<String>) {
    let name = class.event.name.as_str();
    // library mappings, repeated for every process: not markers
    if name.starts_with("lttng_ust_statedump:") {
        return (Meaning::Other, Vec::new());
    }
    let (rendered, paths) = RenderedClass::new(name, class.event.payload.as_ref());
    (Meaning::Rendered(rendered), paths)
}

/// Whether the end of what the event starts is declared too. Interrupt and timer handlers are often
/// recorded by their entry only; as intervals they would never end.
fn has_end(class: &ClassRef<'_>) -> bool {
    let Some(stem) = class.event.name.strip_suffix("_entry") else {
        return true;
    };
    let mut events = class.trace.class.streams.iter().flat_map(|s| &s.events);
    events.any(|event| event.name.strip_suffix("_exit") == Some(stem))
}

fn find(name: &str) -> Option<&'static Mapping> {
    let families = FAMILIES.iter().chain([&statedump::EVENTS]);
    let mut mappings = families.flat_map(|family| family.iter());
    mappings.find(|mapping| mapping.names.contains(&name))
}

impl Declared for Option<&StructClass> {
    fn has(&self, name: &str) -> bool {
        has_field(*self, name)
    }

    fn resolve(&self, alternatives: &str) -> String {
        resolve(*self, alternatives)
    }
}

impl ContextSlots {
    /// Contexts of the stream or of the event class. Threads of user-space traces are identified by
    /// the ids in their own namespace if nothing better was recorded.
    fn of(class: &ClassRef<'_>, wanted: &mut Vec<FieldName>) -> ContextSlots {
        let scopes = [
            (Scope::EventContext, class.stream.event_context.as_ref()),
            (Scope::SpecificContext, class.event.context.as_ref()),
        ];
        let mut slot = |names: &[&str]| {
            let candidates = names
                .iter()
                .flat_map(|name| scopes.iter().map(move |scope| (name, scope)));
            for (name, (scope, context)) in candidates {
                if has_field(*context, name) {
                    wanted.push(FieldName::new(*scope, *name));
                    return Some(wanted.len() - 1);
                }
            }
            None
        };
        ContextSlots {
            tid: slot(&["tid", "vtid"]),
            pid: slot(&["pid", "vpid"]),
            ppid: slot(&["ppid", "vppid"]),
            comm: slot(&["procname"]),
            prio: slot(&["prio"]),
        }
    }

    #[inline]
    fn read<'a>(&self, fields: &Fields<'_, 'a>) -> Context<'a> {
        Context {
            tid: self.tid.and_then(|slot| fields.i32(slot)),
            pid: self.pid.and_then(|slot| fields.i32(slot)),
            ppid: self.ppid.and_then(|slot| fields.i32(slot)),
            comm: self.comm.and_then(|slot| fields.bytes(slot)),
            prio: self
                .prio
                .and_then(|slot| fields.i32(slot))
                .map(|prio| prio.saturating_add(fields.facts.prio_base)),
            interrupt: None,
        }
    }
}

#[cfg(test)]
mod tests;
