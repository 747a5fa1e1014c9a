//! `files`: operations on objects that have a path, file lifetimes, open file descriptors, and
//! memory mappings.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{CacheFillRow, FdLifeRow, FileLifeRow, MappingRow};

use super::io::{IO, IS_IO};
use super::syscalls::SYSCALLS;
use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Only, Spec, Topic, View, WaitRows, Waits};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Files,
    about: "Files by path, pattern and directory",
    examples: "\
  whyslow files top web.wsl --by pattern
  whyslow files open web.wsl --at 12:18:50 -p 31517",
    views: &[
        View::new(Verb::Top, "Files with the most traffic", &FILES),
        View::new(Verb::Log, "Files in order of first use", &LIVES),
        View::new(Verb::Tree, "Traffic by directory", &FILES),
        View::new(
            Verb::Open,
            "Open files at a point in time, like lsof",
            &DESCRIPTORS,
        ),
        View::new(Verb::Usage, "Bytes and operations by file", &FILES),
        View::new(Verb::Stats, "Count, bytes and latency by file", &FILES),
        View::new(Verb::Hist, "Latency histogram of file operations", &FILES),
        View::new(Verb::Heat, "Latency of file operations over time", &FILES),
    ],
    default: None,
    is_main: true,
};

pub(crate) static FILES: Spec = Spec {
    kind: Kind::Files,
    name: "files",
    rows: "file operations",
    only: &[IS_IO, has_name("path")],
    group: &[Key::File],
    series: &[Key::File],
    hooks: Hooks {
        second: Some(&SECOND_FILES),
        waits: Some(Waits {
            rows: WaitRows::Calls,
            // `top` is about bytes and operations.
            views: &[Verb::Stats, Verb::Hist, Verb::Heat],
        }),
        ..SYSCALLS.hooks
    },
    ..IO
};

/// Calls that write to a file from another object, usually a pipe or a socket.
static SECOND_FILES: Spec = Spec {
    only: &[IS_IO, has_name("path2")],
    ..FILES
};

/// Objects without a name in the file system are not files, whatever their class.
const fn has_name(column: &'static str) -> Only {
    Only {
        column,
        holds: |path| path.starts_with('/'),
    }
}

/// Files by path, from first use to deletion.
pub(crate) static LIVES: Spec = Spec {
    kind: Kind::Files,
    name: "files log",
    rows: "file lifetimes",
    table: FileLifeRow::TABLE,
    only: &[],
    class: "",
    classes: &[],
    group: &[],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "upid",
    stages: &[],
    id_prefix: "file",
    fields: LIFE_FIELDS,
    hooks: Hooks::NONE,
};

/// File descriptors from open to close.
pub(crate) static DESCRIPTORS: Spec = Spec {
    kind: Kind::Files,
    name: "files open",
    rows: "open files",
    table: FdLifeRow::TABLE,
    id_prefix: "fd",
    fields: DESCRIPTOR_FIELDS,
    ..LIVES
};

/// Memory mappings of files.
pub(crate) static MAPPINGS: Spec = Spec {
    kind: Kind::Files,
    name: "mappings",
    rows: "mappings",
    table: MappingRow::TABLE,
    id_prefix: "mapping",
    fields: &[],
    ..LIVES
};

/// Page-cache fills.
pub(crate) static FILLS: Spec = Spec {
    kind: Kind::Files,
    name: "fills",
    rows: "page-cache fills",
    table: CacheFillRow::TABLE,
    id_prefix: "fill",
    lasting: false,
    owner: "utid",
    fields: &[],
    ..LIVES
};

const LIFE_FIELDS: &[Field] = &[
    Field::new("ts_ns", "first seen", Measure::Time, Cell::Int("ts")),
    Field::new(
        "ts_end_ns",
        "deleted at",
        Measure::Time,
        Cell::Int("ts_end"),
    )
    .priority(3),
    Field::new("life_ns", "lifetime", Measure::Duration, Cell::Int("dur")),
    Field::new("path", "path", Measure::Path, Cell::Text("path")),
    Field::new(
        "renamed_from",
        "renamed from",
        Measure::Path,
        Cell::Text("renamed_from"),
    )
    .priority(5),
    Field::new("created", "created", Measure::Text, Cell::Bool("created")).priority(2),
    Field::new("deleted", "deleted", Measure::Text, Cell::Bool("deleted")).priority(2),
    Field::new("opens", "opens", Measure::Count, Cell::Int("opens")).priority(3),
    Field::new("reads", "reads", Measure::Count, Cell::Int("reads")).priority(4),
    Field::new(
        "read_bytes",
        "read",
        Measure::Bytes,
        Cell::Int("bytes_read"),
    )
    .priority(1),
    Field::new("writes", "writes", Measure::Count, Cell::Int("writes")).priority(4),
    Field::new(
        "write_bytes",
        "written",
        Measure::Bytes,
        Cell::Int("bytes_written"),
    )
    .priority(1),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
];

const DESCRIPTOR_FIELDS: &[Field] = &[
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
    Field::new("fd", "fd", Measure::Count, Cell::Int("fd")),
    Field::new("fd_class", "type", Measure::Text, Cell::Text("fd_class")),
    Field::new("path", "path", Measure::Path, Cell::Object),
    Field::new("deleted", "deleted", Measure::Text, Cell::Bool("deleted")).priority(1),
    Field::new("ts_ns", "since", Measure::Time, Cell::Int("ts")).priority(3),
    Field::new("origin", "origin", Measure::Text, Cell::Text("origin")).priority(4),
];
