//! Who reads a trace: says once per event class what it wants, then gets the events.

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::class::{EventClass, Scope, StreamClass, TraceClass};
use super::decoded::DecodedEvent;

/// What a consumer wants of the events of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Nothing: its events are counted by the reader and not delivered.
    Nothing,
    /// These fields; the n-th is slot n of [`DecodedEvent::value`]. A field that the class does
    /// not have is always [`crate::importers::tracepoint::value::Value::Absent`].
    Fields(Vec<FieldName>),
    /// Every field, in the order of the bytes; their names are
    /// [`super::reader::CtfReader::fields`]. Of arrays of structures that is integers only.
    Everything,
}

/// Where a field is: a scope, and a dotted path without the leading underscore of CTF 1.8.
///
/// A path that goes through a variant may name the option or leave it out (then the option that
/// is there is meant). A path through an array of structures collects the integers of all its
/// elements in one [`crate::importers::tracepoint::value::Value::Ints`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldName {
    /// Structure that it is in.
    pub scope: Scope,
    /// Names of members, with dots between.
    pub path: String,
}

impl FieldName {
    /// A field of any structure.
    pub fn new(scope: Scope, path: impl Into<String>) -> FieldName {
        FieldName {
            scope,
            path: path.into(),
        }
    }

    /// A field of the event itself.
    pub fn payload(path: impl Into<String>) -> FieldName {
        FieldName::new(Scope::Payload, path)
    }

    /// A context of all events of the stream, which is where LTTng puts `tid`, `procname` etc.
    pub fn context(path: impl Into<String>) -> FieldName {
        FieldName::new(Scope::EventContext, path)
    }
}

/// One event class of one trace.
#[derive(Debug, Clone, Copy)]
pub struct ClassRef<'a> {
    /// Dense over all traces that the reader has open; [`DecodedEvent::class`] is the same number.
    pub index: usize,
    /// Index into [`super::reader::CtfReader::traces`].
    pub trace_index: usize,
    /// Trace that declares it.
    pub trace: &'a Trace,
    /// Its stream class.
    pub stream: &'a StreamClass,
    /// Its event class.
    pub event: &'a EventClass,
}

/// Which tracer of LTTng wrote a trace, by `domain` in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Events of the kernel.
    Kernel,
    /// Events of user space.
    User,
    /// Not said: not written by LTTng.
    Unknown,
}

/// One directory with a `metadata` file. The pieces of a rotated session are several of them.
#[derive(Debug)]
pub struct Trace {
    /// What its metadata declares.
    pub class: TraceClass,
    /// The directory.
    pub path: PathBuf,
    /// Path relative to what the user named, `/` between the parts; empty if it is that itself.
    pub layout: String,
    /// Which tracer wrote it.
    pub domain: Domain,
    /// Number of the source it belongs to, as given to [`super::reader::CtfReader::open_sources`].
    pub source: usize,
    /// What was added to its times; the clock classes have it already.
    pub shift_ns: i64,
    /// The same for pieces of one trace (equal uuid), different for different traces.
    pub identity: usize,
}

impl Trace {
    /// Host that was traced, by its environment.
    pub fn hostname(&self) -> Option<&str> {
        match self.environment("hostname")? {
            super::class::EnvironmentValue::Text(text) => Some(text),
            super::class::EnvironmentValue::Integer(_) => None,
        }
    }

    /// A value of the environment by name.
    pub fn environment(&self, name: &str) -> Option<&super::class::EnvironmentValue> {
        self.class
            .environment
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

/// Events that the tracer could not keep: located between two packets of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Index into [`super::reader::CtfReader::traces`].
    pub trace: usize,
    /// Index into [`super::reader::CtfReader::streams`].
    pub stream: usize,
    /// CPU of the stream, where its packets have one.
    pub cpu: Option<i32>,
    /// Nanoseconds since the epoch: end of the packet before (or the begin of this packet if
    /// there was none), and end of the packet that reports the loss.
    pub begin: i64,
    /// End of the packet that reports the loss, ns since the epoch.
    pub end: i64,
    /// What was lost, and how much.
    pub what: LossKind,
}

/// What a stream lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Discarded by the tracer between the two times.
    Events(u64),
    /// Discarded by the tracer at some time before the first packet that is left.
    EventsBefore(u64),
    /// Packets missing by their sequence numbers; how many events they held is not known.
    Packets(u64),
    /// Bytes of a damaged part of a file; how many events they held is not known.
    Bytes(u64),
}

/// Bytes of stream files worked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Read so far.
    pub bytes_done: u64,
    /// Size of all stream files.
    pub bytes_total: u64,
}

/// Gets what a [`super::reader::CtfReader`] reads.
///
/// ```
/// use std::ops::ControlFlow;
/// use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, FieldName, Want};
/// use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
///
/// /// Adds up what `write` was asked to write.
/// #[derive(Default)]
/// struct Written(u64);
///
/// impl Consumer for Written {
///     fn wants(&mut self, class: &ClassRef) -> Want {
///         match class.event.name.as_str() {
///             "syscall_entry_write" => Want::Fields(vec![FieldName::payload("count")]),
///             _ => Want::Nothing,
///         }
///     }
///     fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
///         self.0 += event.value(0).as_u64().unwrap_or(0);
///         ControlFlow::Continue(())
///     }
/// }
/// ```
pub trait Consumer {
    /// Asked once per event class before the first event.
    fn wants(&mut self, class: &ClassRef<'_>) -> Want;

    /// Events come in the order of time, ties in the order of streams; only where a stream's own
    /// clock runs backwards (counted as `TIME_BACKWARDS`) may one be earlier than its predecessor.
    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()>;

    /// Comes when the packet that reports the loss is reached, so `loss.end` may lie ahead.
    fn lost(&mut self, _loss: &Loss) {}

    /// From time to time.
    fn progress(&mut self, _progress: Progress) {}
}
