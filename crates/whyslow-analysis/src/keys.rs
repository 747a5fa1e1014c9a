//! What rows can be grouped by, and how groups are shown.

use std::borrow::Cow;

use whyslow_model::answer::{AnswerColumn, Measure, Value};
use whyslow_model::syscall::Op;

use crate::AnalysisError;
use crate::kinds::Spec;
use crate::owners::Whose;
use crate::pattern::{pattern_of, pool_of};
use crate::threads::Names;
use whyslow_model::errno;

/// A key of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Comm,
    Pool,
    Pid,
    Tid,
    Process,
    Thread,
    Cgroup,
    Container,
    User,
    MountNs,
    File,
    Dir,
    Pattern,
    Dev,
    Part,
    Op,
    Name,
    State,
    Cpu,
    Fd,
    FdClass,
    Errno,
    Reason,
    Cause,
    Prio,
    Waker,
    Kind,
    Nr,
    Netif,
    Protocol,
    Source,
    Destination,
    Host,
    Service,
    Function,
    Result,
    Address,
    UserFunction,
    Module,
    Provider,
    Text,
    Text2,
    Lock,
    Mode,
    Stack,
    Workqueue,
    Worker,
    Local,
    Peer,
    Outcome,
    ClosedBy,
    Signal,
    Action,
    Origin,
    Sender,
    Class,
    Object,
    Holder,
    Doing,
    Confidence,
    Endpoint,
    Method,
    Status,
    Client,
    Connection,
    Phase,
    LoadWorker,
    Role,
}

const KEYS: [(Key, &str); 68] = [
    (Key::Comm, "comm"),
    (Key::Pool, "pool"),
    (Key::Pid, "pid"),
    (Key::Tid, "tid"),
    (Key::Process, "process"),
    (Key::Thread, "thread"),
    (Key::Cgroup, "cgroup"),
    (Key::Container, "container"),
    (Key::User, "user"),
    (Key::MountNs, "mount_ns"),
    (Key::File, "file"),
    (Key::Dir, "dir"),
    (Key::Pattern, "pattern"),
    (Key::Dev, "dev"),
    (Key::Part, "part"),
    (Key::Op, "op"),
    (Key::Name, "name"),
    (Key::State, "state"),
    (Key::Cpu, "cpu"),
    (Key::Fd, "fd"),
    (Key::FdClass, "fd_class"),
    (Key::Errno, "errno"),
    (Key::Reason, "unknown_reason"),
    (Key::Cause, "reason"),
    (Key::Prio, "prio"),
    (Key::Waker, "waker"),
    (Key::Kind, "kind"),
    (Key::Nr, "nr"),
    (Key::Netif, "netif"),
    (Key::Protocol, "protocol"),
    (Key::Source, "source"),
    (Key::Destination, "destination"),
    (Key::Host, "host"),
    (Key::Service, "service"),
    (Key::Function, "function"),
    (Key::Result, "result"),
    (Key::Address, "address"),
    (Key::UserFunction, "user_function"),
    (Key::Module, "module"),
    (Key::Provider, "provider"),
    (Key::Text, "text"),
    (Key::Text2, "text2"),
    (Key::Lock, "lock"),
    (Key::Mode, "mode"),
    (Key::Stack, "stack"),
    (Key::Workqueue, "workqueue"),
    (Key::Worker, "worker"),
    (Key::Local, "local"),
    (Key::Peer, "peer"),
    (Key::Outcome, "outcome"),
    (Key::ClosedBy, "closed_by"),
    (Key::Signal, "signal"),
    (Key::Action, "action"),
    (Key::Origin, "origin"),
    (Key::Sender, "sender"),
    (Key::Class, "class"),
    (Key::Object, "object"),
    (Key::Holder, "holder"),
    (Key::Doing, "doing"),
    (Key::Confidence, "confidence"),
    (Key::Endpoint, "endpoint"),
    (Key::Method, "method"),
    (Key::Status, "status"),
    (Key::Client, "client"),
    (Key::Connection, "connection"),
    (Key::Phase, "phase"),
    (Key::LoadWorker, "worker"),
    (Key::Role, "role"),
];

impl Key {
    pub(crate) fn name(self) -> &'static str {
        KEYS.iter()
            .find(|(key, _)| *key == self)
            .map_or("", |(_, name)| name)
    }

    /// The keys of a question, or the default where it names none.
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
        // What is called a worker differs between kinds.
        let is_it = |(key, known): &&(Key, &str)| *known == name && key.columns(spec).is_some();
        if let Some((key, _)) = KEYS.iter().find(is_it) {
            return Ok(*key);
        }
        let has = |(key, _): &&(Key, &str)| key.columns(spec).is_some();
        let keys: Vec<&str> = KEYS.iter().filter(has).map(|(_, name)| *name).collect();
        Err(AnalysisError::query(
            format!("{} has no key `{name}` to group by", spec.name),
            format!("it has {}, and none for all rows together", keys.join(", ")),
        ))
    }

    /// The columns it is made of, where the kind has them.
    pub(crate) fn columns(self, spec: &Spec) -> Option<Shape> {
        let shape = match self {
            Key::Comm => Shape::Text("comm", Derive::Same),
            Key::Pool => Shape::Text("comm", Derive::Pool),
            Key::Pid => Shape::Int("pid"),
            Key::Tid => Shape::Int("tid"),
            Key::Process => Shape::Int("upid"),
            Key::Thread => Shape::Int("utid"),
            Key::Cgroup => Shape::Owner(Whose::Cgroup),
            Key::Container => Shape::Owner(Whose::Container),
            Key::User => Shape::Owner(Whose::User),
            Key::MountNs => Shape::Owner(Whose::MountNs),
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
            Key::Doing => Shape::Text("holder_function", Derive::Same),
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

    /// Whether it is shown as two columns.
    fn has_name_and_number(self) -> bool {
        use Key::{Holder, Process, Sender, Thread, User, Waker, Worker};
        matches!(
            self,
            Process | Thread | Waker | Worker | Sender | Holder | User
        )
    }

    /// Whether it names what a call acts on.
    pub(crate) fn is_object(self) -> bool {
        matches!(self, Key::File | Key::Dir | Key::Pattern)
    }

    /// Whether it names the process or the thread at work, or whose that is.
    pub(crate) fn is_owner(self) -> bool {
        matches!(
            self,
            Key::Comm
                | Key::Pool
                | Key::Pid
                | Key::Tid
                | Key::Process
                | Key::Thread
                | Key::Cgroup
                | Key::Container
                | Key::User
                | Key::MountNs
        )
    }

    /// The value of an object's key that a path has.
    pub(crate) fn of_path(self, path: &str) -> Cow<'_, str> {
        match self {
            Key::Dir => Derive::Dir.apply(path),
            Key::Pattern => Derive::Pattern.apply(path),
            _ => Cow::Borrowed(path),
        }
    }

    /// Columns of an answer that show it.
    pub(crate) fn answer_columns(self) -> Vec<AnswerColumn> {
        let column = |name, measure| vec![AnswerColumn::new(name, name, measure)];
        match self {
            Key::Process => vec![
                AnswerColumn::new("comm", "process", Measure::Text),
                AnswerColumn::new("pid", "pid", Measure::Count),
            ],
            Key::Thread => vec![
                AnswerColumn::new("comm", "thread", Measure::Text),
                AnswerColumn::new("tid", "tid", Measure::Count),
            ],
            Key::Waker => vec![
                AnswerColumn::new("waker_comm", "waker", Measure::Text),
                AnswerColumn::new("waker_tid", "waker tid", Measure::Count),
            ],
            Key::Sender => vec![
                AnswerColumn::new("sender_comm", "sender", Measure::Text),
                AnswerColumn::new("sender_tid", "sender tid", Measure::Count),
            ],
            Key::Holder => vec![
                AnswerColumn::new("holder_comm", "holder", Measure::Text),
                AnswerColumn::new("holder_tid", "holder tid", Measure::Count),
            ],
            Key::Worker => vec![
                AnswerColumn::new("worker_comm", "worker", Measure::Text),
                AnswerColumn::new("worker_tid", "worker tid", Measure::Count),
            ],
            Key::User => vec![
                AnswerColumn::new("user", "user", Measure::Text),
                AnswerColumn::new("uid", "uid", Measure::Count),
            ],
            Key::File | Key::Dir | Key::Pattern | Key::Cgroup => column(self.name(), Measure::Path),
            Key::Pid
            | Key::Tid
            | Key::Cpu
            | Key::Fd
            | Key::Prio
            | Key::Nr
            | Key::Stack
            | Key::Status
            | Key::Connection
            | Key::LoadWorker
            | Key::MountNs => column(self.name(), Measure::Count),
            _ => column(self.name(), Measure::Text),
        }
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

    /// One word for a series: `openat`, `apache2 (31517)`.
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

/// Groups in the order people expect: classes of system calls as [`Op::ALL`] lists them (open,
/// close, read, write, …), everything else by value.
pub(crate) fn in_order<S>(
    spec: &Spec,
    keys: &[Key],
    groups: impl IntoIterator<Item = (Vec<KeyValue>, S)>,
) -> Vec<(Vec<KeyValue>, S)> {
    let by_class = |(key, value): (&Key, &KeyValue)| match value {
        KeyValue::Text(op) if *key == Key::Op && spec.table.name == "syscall" => {
            Op::by_name(op).map_or(0, |op| op as usize)
        }
        _ => 0,
    };
    let ranks = |group: &[KeyValue]| keys.iter().zip(group).map(by_class).collect::<Vec<_>>();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a, _), (b, _)| ranks(a).cmp(&ranks(b)).then_with(|| a.cmp(b)));
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

/// Value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KeyValue {
    Null,
    Int(i64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Text(&'static str, Derive),
    Int(&'static str),
    /// The path, or why it is unknown.
    Object(Derive),
    /// What the process has.
    Owner(Whose),
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derive {
    Same,
    Dir,
    Pattern,
    /// Names of threads that differ in numbers alone.
    Pool,
}

impl Derive {
    pub(crate) fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Derive::Same => Cow::Borrowed(text),
            Derive::Dir => Cow::Borrowed(dir_of(text)),
            Derive::Pattern => pattern_of(text),
            Derive::Pool => pool_of(text),
        }
    }
}

/// Directory of a path; other objects (sockets, pipes) are their own.
pub(crate) fn dir_of(path: &str) -> &str {
    match path.rfind('/').filter(|_| path.starts_with('/')) {
        Some(slash) => &path[..=slash],
        None => path,
    }
}

/// How an object without a known path is shown.
pub(crate) fn unknown_object(reason: &str) -> String {
    format!("unknown ({reason})")
}

#[cfg(test)]
mod tests {
    use super::dir_of;

    #[test]
    fn directory_of_a_path_ends_with_a_slash() {
        for (path, dir) in [
            ("/etc/passwd", "/etc/"),
            ("/vmlinuz", "/"),
            ("/a/b/c", "/a/b/"),
            ("pipe:[17]", "pipe:[17]"),
            ("/", "/"),
        ] {
            assert_eq!(dir_of(path), dir, "{path}");
        }
    }
}
