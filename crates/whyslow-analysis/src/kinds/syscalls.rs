//! `syscalls`: all system calls, with their arguments.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::syscall::Op;
use whyslow_model::tables::SyscallRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View, WaitRows, Waits};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Syscalls,
    about: "All system calls: counts, errors, latency",
    examples: "\
  whyslow syscalls web.wsl                      by name, with errors by errno
  whyslow syscalls stats web.wsl --by thread,name
  whyslow syscalls log web.wsl -p 31517 --op write,stat",
    views: &[
        View::new(Verb::Stats, "Count, errors and latency by name", &SYSCALLS),
        View::new(Verb::Hist, "Latency histogram with percentiles", &SYSCALLS),
        View::new(Verb::Top, "The longest calls", &SYSCALLS),
        View::new(
            Verb::Log,
            "Calls with arguments and results in chronological order",
            &SYSCALLS,
        ),
        View::new(
            Verb::Differs,
            "How selected calls (-w, --min, …) differ from the others (--vs)",
            &SYSCALLS,
        ),
        View::new(Verb::Heat, "Latency over time", &SYSCALLS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static SYSCALLS: Spec = Spec {
    kind: Kind::Syscalls,
    name: "syscalls",
    rows: "system calls",
    table: SyscallRow::TABLE,
    only: &[],
    class: "op",
    classes: &[],
    group: &[Key::Name],
    series: &[],
    size: Some("bytes"),
    errno: Some("errno"),
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "op",
    fields: FIELDS,
    hooks: Hooks {
        one_at_a_time: Some(&SYSCALLS),
        waits: Some(Waits {
            rows: WaitRows::Calls,
            views: Waits::OF_DURATIONS,
        }),
        has_ends_alone: true,
        is_class: |op| Op::by_name(op).is_some(),
        // In the order of `Op::ALL`: open, connect, close, read, …
        class_rank: |op| Op::by_name(op).map_or(0, |op| op as usize),
        ..Hooks::NONE
    },
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")).priority(1),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(2),
    Field::new("name", "call", Measure::Text, Cell::Text("name")),
    Field::new("arguments", "arguments", Measure::Path, Cell::Arguments),
    Field::new("op", "op", Measure::Text, Cell::Text("op")).priority(7),
    Field::new("fd", "fd", Measure::Count, Cell::Int("fd")).priority(6),
    Field::new("path", "path", Measure::Path, Cell::Object).priority(5),
    Field::new("fd2", "fd 2", Measure::Count, Cell::Int("fd2")).priority(8),
    Field::new("path2", "path 2", Measure::Path, Cell::Text("path2")).priority(7),
    Field::new("fd_class", "class", Measure::Text, Cell::Text("fd_class")).priority(8),
    Field::new(
        "bytes_requested",
        "size",
        Measure::Count,
        Cell::Int("bytes_requested"),
    )
    .priority(6),
    Field::new("offset", "offset", Measure::Count, Cell::Int("file_offset")).priority(5),
    Field::new("flags", "flags", Measure::Count, Cell::Int("flags")).priority(6),
    Field::new("ret", "result", Measure::Count, Cell::Int("ret")),
    Field::new("error", "error", Measure::Text, Cell::Errno("errno")).priority(1),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
