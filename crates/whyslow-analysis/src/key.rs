//! Keys that rows can be grouped by, and their values. Independent of kinds and recordings.

use std::borrow::Cow;

use whyslow_model::answer::{AnswerColumn, Measure};

use crate::pattern::{pattern_of, pool_of};

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
    Server,
    Attempt,
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
    HolderFunction,
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

pub(crate) const KEYS: [(Key, &str); 70] = [
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
    (Key::Server, "server"),
    (Key::Attempt, "attempt"),
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
    (Key::HolderFunction, "holder_function"),
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

    /// Whether it is shown as two columns.
    pub(crate) fn has_name_and_number(self) -> bool {
        use Key::{Holder, Process, Sender, Thread, User, Waker, Worker};
        matches!(
            self,
            Process | Thread | Waker | Worker | Sender | Holder | User
        )
    }

    /// Whether it identifies what a call acts on.
    pub(crate) fn is_object(self) -> bool {
        matches!(self, Key::File | Key::Dir | Key::Pattern)
    }

    /// Whether it identifies the active process or thread, or an attribute of it.
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

    /// The value of an object key for a path.
    pub(crate) fn of_path(self, path: &str) -> Cow<'_, str> {
        match self {
            Key::Dir => Derive::Dir.apply(path),
            Key::Pattern => Derive::Pattern.apply(path),
            _ => Cow::Borrowed(path),
        }
    }

    /// Result columns that show it.
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
    /// An attribute of the process.
    Owner(ProcessAttribute),
}

/// An attribute of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessAttribute {
    Cgroup,
    Container,
    User,
    MountNs,
}

/// How a key value is derived from a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derive {
    Same,
    Dir,
    Pattern,
    /// Thread names that differ only in numbers are equal.
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

/// Directory of a path; other objects (sockets, pipes) stand for themselves.
pub(crate) fn dir_of(path: &str) -> &str {
    match path.rfind('/').filter(|_| path.starts_with('/')) {
        Some(slash) => &path[..=slash],
        None => path,
    }
}

/// Text for an object without a known path.
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
