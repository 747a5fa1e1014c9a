//! The keys of each kind, and how groups are displayed.

use whyslow_model::answer::Value;
use whyslow_model::errno;
use whyslow_model::sort::IndexSort;

pub(crate) use crate::key::{
    Derive, Key, KeyValue, ProcessAttribute, Shape, dir_of, unknown_object,
};

use crate::AnalysisError;
use crate::key::KEYS;
use crate::spec::Spec;
use crate::threads::Names;

impl Key {
    /// The keys of a query, or the default if it has none.
    pub(crate) fn parse_all(
        spec: &Spec,
        by: &[String],
        default: &[Key],
    ) -> Result<Vec<Key>, AnalysisError> {
        if by.is_empty() {
            return Ok(default.to_vec());
        }
        if by == ["none"] {
            return Ok(Vec::new());
        }
        by.iter().map(|name| Key::parse(spec, name)).collect()
    }

    pub(crate) fn parse(spec: &Spec, name: &str) -> Result<Key, AnalysisError> {
        // `worker` means different columns in different kinds.
        let is_it = |(key, known): &&(Key, &str)| *known == name && key.columns(spec).is_some();
        if let Some((key, _)) = KEYS.iter().find(is_it) {
            return Ok(*key);
        }
        let has = |(key, _): &&(Key, &str)| key.columns(spec).is_some();
        let keys: Vec<&str> = KEYS.iter().filter(has).map(|(_, name)| *name).collect();
        Err(AnalysisError::query(
            format!("unknown key `{name}` for {}", spec.name),
            format!("use {}, or none for all rows together", keys.join(", ")),
        ))
    }

    /// The columns that it is derived from, if the kind has them.
    pub(crate) fn columns(self, spec: &Spec) -> Option<Shape> {
        let shape = match self {
            Key::Comm => Shape::Text("comm", Derive::Same),
            Key::Pool => Shape::Text("comm", Derive::Pool),
            Key::Pid => Shape::Int("pid"),
            Key::Tid => Shape::Int("tid"),
            Key::Process => Shape::Int("upid"),
            Key::Thread => Shape::Int("utid"),
            Key::Cgroup => Shape::Owner(ProcessAttribute::Cgroup),
            Key::Container => Shape::Owner(ProcessAttribute::Container),
            Key::User => Shape::Owner(ProcessAttribute::User),
            Key::MountNs => Shape::Owner(ProcessAttribute::MountNs),
            Key::File => Shape::Object(Derive::Same),
            Key::Dir => Shape::Object(Derive::Dir),
            Key::Pattern => Shape::Object(Derive::Pattern),
            Key::Dev => Shape::Text("dev_name", Derive::Same),
            Key::Part => Shape::Text("part_name", Derive::Same),
            Key::Op => Shape::Text("op", Derive::Same),
            Key::Name => Shape::Text("name", Derive::Same),
            Key::State => Shape::Text("state", Derive::Same),
            Key::Cpu => Shape::Int("cpu"),
            Key::Fd => Shape::Int("fd"),
            Key::FdClass => Shape::Text("fd_class", Derive::Same),
            Key::Errno => Shape::Int(spec.errno?),
            Key::Reason => Shape::Text("unknown_reason", Derive::Same),
            Key::Cause => Shape::Text("reason", Derive::Same),
            Key::Prio => Shape::Int("prio"),
            Key::Waker => Shape::Int("waker_utid"),
            Key::Kind => Shape::Text("kind", Derive::Same),
            Key::Nr => Shape::Int("nr"),
            Key::Netif => Shape::Text("netif", Derive::Same),
            Key::Protocol => Shape::Text("protocol", Derive::Same),
            Key::Source => Shape::Text("source", Derive::Same),
            Key::Destination => Shape::Text("destination", Derive::Same),
            Key::Host => Shape::Text("host", Derive::Same),
            Key::Server => Shape::Text("server", Derive::Same),
            Key::Attempt => Shape::Int("attempt"),
            Key::Service => Shape::Text("service", Derive::Same),
            Key::Function => Shape::Text("function", Derive::Same),
            Key::Result => Shape::Text("result", Derive::Same),
            Key::Address => Shape::Text("address", Derive::Same),
            Key::UserFunction => Shape::Text("user_function", Derive::Same),
            Key::Module => Shape::Text("module", Derive::Same),
            Key::Provider => Shape::Text("provider", Derive::Same),
            Key::Text => Shape::Text("text", Derive::Same),
            Key::Text2 => Shape::Text("text2", Derive::Same),
            Key::Lock => Shape::Text("lock", Derive::Same),
            Key::Mode => Shape::Text("mode", Derive::Same),
            Key::Stack => Shape::Int("callsite_id"),
            Key::Workqueue => Shape::Text("workqueue", Derive::Same),
            Key::Worker => Shape::Int("worker_utid"),
            Key::Local => Shape::Text("local", Derive::Same),
            Key::Peer => Shape::Text("peer", Derive::Same),
            Key::Outcome => Shape::Text("outcome", Derive::Same),
            Key::Signal => Shape::Text("signal", Derive::Same),
            Key::Action => Shape::Text("action", Derive::Same),
            Key::Origin => Shape::Text("origin", Derive::Same),
            Key::Sender => Shape::Int("sender_utid"),
            Key::ClosedBy => Shape::Text("closed_by", Derive::Same),
            Key::Class => Shape::Text("class", Derive::Same),
            Key::Object => Shape::Text("object", Derive::Same),
            Key::Holder => Shape::Int("holder_utid"),
            Key::HolderFunction => Shape::Text("holder_function", Derive::Same),
            Key::Confidence => Shape::Text("confidence", Derive::Same),
            Key::Endpoint => Shape::Text("endpoint", Derive::Same),
            Key::Method => Shape::Text("method", Derive::Same),
            Key::Status => Shape::Int("status"),
            Key::Client => Shape::Text("client", Derive::Same),
            Key::Connection => Shape::Int("connection"),
            Key::Phase => Shape::Text("phase", Derive::Same),
            Key::LoadWorker => Shape::Int("worker"),
            Key::Role => Shape::Text("role", Derive::Same),
        };
        let column = match shape {
            Shape::Text(column, _) | Shape::Int(column) => column,
            Shape::Object(_) => "path",
            Shape::Owner(_) => "upid",
        };
        spec.table.column(column).map(|_| shape)
    }

    /// Cells of these columns.
    pub(crate) fn cells(self, value: &KeyValue, names: &Names) -> Vec<Value> {
        match (self, value) {
            (Key::Process, KeyValue::Int(upid)) => match names.process(*upid) {
                Some(process) => vec![process.comm.clone().into(), process.pid.into()],
                None => vec![Value::Null, Value::Null],
            },
            (
                Key::Thread | Key::Waker | Key::Worker | Key::Sender | Key::Holder,
                KeyValue::Int(utid),
            ) => match names.thread(*utid) {
                Some(thread) => vec![thread.comm.clone().into(), thread.tid.into()],
                None => vec![Value::Null, Value::Null],
            },
            (Key::User, KeyValue::Int(uid)) => {
                vec![names.user(*uid).into(), (*uid).into()]
            }
            (key, _) if key.has_name_and_number() => {
                vec![Value::Null, Value::Null]
            }
            (Key::Errno, KeyValue::Int(0)) => vec![Value::Null],
            (Key::Errno, KeyValue::Int(number)) => vec![errno::name(*number).into()],
            (_, KeyValue::Int(number)) => vec![(*number).into()],
            (_, KeyValue::Text(text)) => vec![text.as_ref().into()],
            (_, KeyValue::Null) => vec![Value::Null],
        }
    }

    /// A short name for a series: `openat`, `apache2 (31517)`.
    pub(crate) fn label(self, value: &KeyValue, names: &Names) -> String {
        let cells = self.cells(value, names);
        match cells.as_slice() {
            [Value::Text(comm), Value::Int(id)] => format!("{comm} ({id})"),
            [_, Value::Int(id)] => format!("({id})"),
            [Value::Text(text)] => text.clone(),
            [Value::Int(number)] => format!("{} {number}", self.name()),
            _ if self.has_name_and_number() => {
                format!("unknown {}", self.name())
            }
            _ => format!("no {}", self.name()),
        }
    }
}

/// Sorts groups for display: operation classes in the order of their kind, everything else by
/// value.
pub(crate) fn in_order<S>(
    spec: &Spec,
    keys: &[Key],
    groups: impl IntoIterator<Item = (Vec<KeyValue>, S)>,
) -> Vec<(Vec<KeyValue>, S)> {
    let by_class = |(key, value): (&Key, &KeyValue)| match value {
        KeyValue::Text(op) if matches!(key, Key::Op | Key::State) => (spec.hooks.class_rank)(op),
        _ => 0,
    };
    let ranks = |group: &[KeyValue]| keys.iter().zip(group).map(by_class).collect::<Vec<_>>();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.index_sort_by(|(a, _), (b, _)| ranks(a).cmp(&ranks(b)).then_with(|| a.cmp(b)));
    groups
}

/// Name of a group: `sda write`.
pub(crate) fn label(keys: &[Key], group: &[KeyValue], names: &Names) -> String {
    let labels = keys
        .iter()
        .zip(group)
        .map(|(key, value)| key.label(value, names));
    labels.collect::<Vec<_>>().join(" ")
}
