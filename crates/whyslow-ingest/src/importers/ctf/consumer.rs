//! Consumers of a trace: declare once per event class what they need, then receive the events.

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::class::{EventClass, StreamClass, TraceClass};
use super::decoded::DecodedEvent;
pub use super::want::{FieldName, Want};

/// One event class of one trace.
#[derive(Debug, Clone, Copy)]
pub struct ClassRef<'a> {
    /// Dense over all open traces; [`DecodedEvent::class`] is the same number.
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

/// Which LTTng tracer wrote a trace, from `domain` in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Kernel events.
    Kernel,
    /// User-space events.
    User,
    /// Not stated: not written by LTTng.
    Unknown,
}

/// One directory with a `metadata` file. A rotated session consists of several.
#[derive(Debug)]
pub struct Trace {
    /// Declarations of its metadata.
    pub class: TraceClass,
    /// The directory.
    pub path: PathBuf,
    /// Path relative to the specified one, separated by `/`; empty if it is the same.
    pub layout: String,
    /// Which tracer wrote it.
    pub domain: Domain,
    /// Number of its source, as given to [`super::reader::CtfReader::open_sources`].
    pub source: usize,
    /// Offset added to its times; already included in the clock classes.
    pub shift_ns: i64,
    /// The same for parts of one trace (equal uuid), different for different traces.
    pub identity: usize,
}

impl Trace {
    /// Name of the traced host, from its environment.
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
            .find(|(key, _)| key == name)
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
    /// CPU of the stream, if its packets have one.
    pub cpu: Option<i32>,
    /// End of the previous packet (or the start of this packet if there was none), or a later time
    /// after which the tracer discarded events; ns since the epoch.
    pub begin: i64,
    /// End of the packet that reports the loss, ns since the epoch.
    pub end: i64,
    /// Type and amount of the loss.
    pub what: LossKind,
}

/// Type of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Discarded by the tracer between the two times.
    Events(u64),
    /// Discarded by the tracer at an unknown time before the first packet present.
    EventsBefore(u64),
    /// Packets missing in the sequence numbers; their number of events is unknown.
    Packets(u64),
    /// Bytes of a damaged part of a file; their number of events is unknown.
    Bytes(u64),
}

/// Progress in bytes of stream files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Read so far.
    pub bytes_done: u64,
    /// Size of all stream files.
    pub bytes_total: u64,
}

/// Receives what a [`super::reader::CtfReader`] reads.
///
/// ```
/// use std::ops::ControlFlow;
/// use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, FieldName, Want};
/// use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
///
/// /// Sums the bytes requested by `write`.
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
    /// Called once per event class before the first event.
    fn wants(&mut self, class: &ClassRef<'_>) -> Want;

    /// Events are in time order, ties in the order of streams; an event may be earlier than its
    /// predecessor only if the stream's own clock runs backwards (counted as `TIME_BACKWARDS`).
    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()>;

    /// Called when the packet that reports the loss is reached, so `loss.end` may be in the future.
    fn lost(&mut self, _loss: &Loss) {}

    /// Called from time to time.
    fn progress(&mut self, _progress: Progress) {}
}
