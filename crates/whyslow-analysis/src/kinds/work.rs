//! `fs`: file system work of the kernel that threads wait for: journal commits, writeback,
//! throttled writers.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::KernelWorkRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Fs,
    about: "File systems: journal commits, writeback, throttled writers",
    examples: "\
  whyslow fs stats web.wsl                      by kind and device
  whyslow fs top web.wsl --op journal_commit    the longest commits, and their phases
  whyslow fs log web.wsl --op dirty_throttle    writers throttled in balance_dirty_pages",
    views: &[
        View::new(Verb::Stats, "Count and duration by kind and device", &WORK),
        View::new(Verb::Hist, "Duration histogram with percentiles", &WORK),
        View::new(Verb::Top, "The longest work items and waits", &WORK),
        View::new(
            Verb::Log,
            "Work items and waits in chronological order",
            &WORK,
        ),
        View::new(Verb::Heat, "Duration over time", &WORK),
    ],
    default: None,
    is_main: false,
};

pub(crate) static WORK: Spec = Spec {
    kind: Kind::Fs,
    name: "fs",
    rows: "work items and waits",
    table: KernelWorkRow::TABLE,
    only: &[],
    class: "kind",
    classes: &[
        "journal_commit",
        "writeback",
        "dirty_throttle",
        "log_wait",
        "reclaim_throttle",
        "buffer_stall",
    ],
    group: &[Key::Kind, Key::Dev],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[
        ("locking", "locking_ns"),
        ("flushing", "flushing_ns"),
        ("logging", "logging_ns"),
    ],
    id_prefix: "work",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(7),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("dev_name", "device", Measure::Text, Cell::Text("dev_name")),
    Field::new("reason", "reason", Measure::Text, Cell::Text("reason")).priority(2),
    Field::new("pages", "pages", Measure::Count, Cell::Int("pages")).priority(3),
    Field::new(
        "locking_ns",
        "locking",
        Measure::Duration,
        Cell::Int("locking_ns"),
    )
    .priority(4),
    Field::new(
        "flushing_ns",
        "flushing",
        Measure::Duration,
        Cell::Int("flushing_ns"),
    )
    .priority(4),
    Field::new(
        "logging_ns",
        "logging",
        Measure::Duration,
        Cell::Int("logging_ns"),
    )
    .priority(4),
    Field::new(
        "transaction",
        "transaction",
        Measure::Count,
        Cell::Int("transaction"),
    )
    .priority(6),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(5),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(8),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
