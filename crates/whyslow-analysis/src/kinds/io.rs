//! `io`: system calls that do I/O.

use whyslow_model::answer::Measure;
use whyslow_model::syscall::Op;

use super::syscalls::SYSCALLS;
use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Only, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Io,
    about: "I/O system calls",
    examples: "\
  whyslow io stats web.wsl --min-size 2
  whyslow io top web.wsl -n 4 -w [12:18:50.432950815,12:18:50.870648568]
  whyslow io log web.wsl --overlaps op:17
  whyslow io usage web.wsl --by file",
    views: &[
        View::new(
            Verb::Usage,
            "Bytes and operations by process: files, network, other, block devices",
            &IO,
        ),
        View::new(
            Verb::Stats,
            "Count, bytes and latency by class of operation",
            &IO,
        ),
        View::new(Verb::Hist, "Latency histogram with percentiles", &IO),
        View::new(Verb::Top, "The longest operations", &IO),
        View::new(Verb::Log, "Operations in chronological order", &IO),
        View::new(
            Verb::Differs,
            "How selected operations (-w, --min, …) differ from the others (--vs)",
            &IO,
        ),
        View::new(Verb::Heat, "Latency over time", &IO),
        View::new(Verb::Syscalls, "Statistics by system call", &SYSCALLS),
    ],
    default: None,
    is_main: true,
};

pub(crate) static IO: Spec = Spec {
    kind: Kind::Io,
    name: "io",
    rows: "operations",
    only: &[IS_IO],
    group: &[Key::Op],
    series: &[Key::Op],
    fields: FIELDS,
    hooks: Hooks {
        hint: "files",
        ..SYSCALLS.hooks
    },
    ..SYSCALLS
};

pub(super) const IS_IO: Only = Only {
    column: "op",
    holds: |op| Op::by_name(op).is_some_and(Op::is_io),
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("name", "call", Measure::Text, Cell::Text("name")),
    Field::new("op", "op", Measure::Text, Cell::Text("op")).priority(7),
    Field::new("bytes", "size", Measure::Bytes, Cell::Int("bytes")).priority(1),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(1),
    Field::new("path", "path", Measure::Path, Cell::Object),
    Field::new("fd", "fd", Measure::Count, Cell::Int("fd")).priority(4),
    Field::new("path2", "path 2", Measure::Path, Cell::Text("path2")).priority(8),
    Field::new("fd2", "fd 2", Measure::Count, Cell::Int("fd2")).priority(9),
    Field::new("fd_class", "class", Measure::Text, Cell::Text("fd_class")).priority(8),
    Field::new("error", "error", Measure::Text, Cell::Errno("errno")).priority(2),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
