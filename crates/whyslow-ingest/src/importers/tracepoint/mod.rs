//! Definitions of kernel tracepoints, independent of the recording tool: LTTng, perf, ftrace.
//!
//! Each family has a table: event names, the required fields under all names they have had, and a
//! function that converts them to the vocabulary of [`whyslow_model::event`]. Each class of events
//! is resolved once; after that an event costs the reads of its fields and one call through a
//! pointer.

pub(in crate::importers) mod blob;
mod block;
pub(in crate::importers) mod format;
mod irq;
mod memory;
mod net;
pub(in crate::importers) mod raw;
mod sched;
pub(in crate::importers) mod syscall;
pub(crate) mod topics;
pub mod value;

use whyslow_model::event::Body;
use whyslow_model::syscall::Abi;

use super::ctf::decoded::DecodedEvent;
use super::task_state::KernelVersion;
use value::Value;

/// One definition and the events that it applies to.
pub(in crate::importers) struct Mapping {
    /// Names in all releases.
    pub(in crate::importers) names: &'static [&'static str],
    /// Slot n is field n; `a|b` are spellings of different releases.
    pub(in crate::importers) fields: &'static [&'static str],
    /// `None` if a required field is missing.
    pub(in crate::importers) body: for<'a> fn(&Fields<'_, 'a>) -> Option<Body<'a>>,
}

/// Events that all kernel tracers record.
pub(in crate::importers) static FAMILIES: [&[Mapping]; 5] = [
    sched::EVENTS,
    block::EVENTS,
    irq::EVENTS,
    memory::EVENTS,
    net::EVENTS,
];

pub(in crate::importers) fn find(name: &str) -> Option<&'static Mapping> {
    let mut mappings = FAMILIES.iter().flat_map(|family| family.iter());
    mappings.find(|mapping| mapping.names.contains(&name))
}

/// The fields that a class of events declares.
pub(in crate::importers) trait Declared {
    fn has(&self, name: &str) -> bool;

    /// Selects from `a|b|c` the first one that the class has.
    fn resolve(&self, alternatives: &str) -> String;
}

/// Properties of the trace that the conversion of events depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::importers) struct Facts {
    pub(in crate::importers) kernel: Option<KernelVersion>,
    pub(in crate::importers) abi: Option<Abi>,
    /// Offset added to priorities.
    pub(in crate::importers) prio_base: i32,
    /// The kernel's own events call the tid `pid`.
    pub(in crate::importers) pids_are_tids: bool,
}

/// From the kernel's name of the architecture.
pub(in crate::importers) fn abi_of(arch: &str) -> Option<Abi> {
    match arch {
        "x86_64" => Some(Abi::X86_64),
        "aarch64" | "arm64" => Some(Abi::Aarch64),
        "i386" | "i486" | "i586" | "i686" => Some(Abi::I386),
        arch if arch.starts_with("arm") => Some(Abi::Arm),
        _ => None,
    }
}

/// Required fields of one event, by slot.
#[derive(Clone, Copy)]
pub(in crate::importers) struct Fields<'e, 'a> {
    pub(in crate::importers) source: Source<'e, 'a>,
    pub(in crate::importers) facts: Facts,
}

#[derive(Clone, Copy)]
pub(in crate::importers) enum Source<'e, 'a> {
    Ctf(&'e DecodedEvent<'a>),
    Slots(&'e [Value<'a>]),
}

impl<'a> Fields<'_, 'a> {
    #[inline]
    pub(in crate::importers) fn value(&self, slot: usize) -> Value<'a> {
        match self.source {
            Source::Ctf(event) => event.value(slot),
            Source::Slots(values) => values.get(slot).copied().unwrap_or(Value::Absent),
        }
    }

    #[inline]
    pub(in crate::importers) fn i32(&self, slot: usize) -> Option<i32> {
        self.value(slot).as_i32()
    }

    #[inline]
    pub(in crate::importers) fn i64(&self, slot: usize) -> Option<i64> {
        self.value(slot).as_i64()
    }

    #[inline]
    pub(in crate::importers) fn u64(&self, slot: usize) -> Option<u64> {
        self.value(slot).as_u64()
    }

    #[inline]
    pub(in crate::importers) fn bytes(&self, slot: usize) -> Option<&'a [u8]> {
        self.value(slot).as_bytes()
    }

    /// A name that is never absent: empty stands for unknown.
    #[inline]
    pub(in crate::importers) fn name(&self, slot: usize) -> &'a [u8] {
        self.bytes(slot).unwrap_or_default()
    }

    #[inline]
    pub(in crate::importers) fn prio(&self, slot: usize) -> Option<i32> {
        let prio = self.i32(slot)?;
        Some(prio.saturating_add(self.facts.prio_base))
    }
}
