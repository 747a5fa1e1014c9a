//! `counters`: counters of the machine, its processes and its file systems.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::CounterRow;

use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Counters,
    about: "Counters over time: load, memory, pressure (PSI), per-process memory and I/O",
    examples: "\
  whyslow counters web.wsl --name load_1,mem_available
  whyslow counters web.wsl --name rss -c mysqld
  whyslow counters incident-iostat.txt --name %util,w_await",
    views: &[View::new(
        Verb::Log,
        "Counter values, one row per change",
        &COUNTERS,
    )],
    default: Some(Verb::Log),
    is_main: false,
};

pub(crate) static COUNTERS: Spec = Spec {
    kind: Kind::Counters,
    name: "counters",
    rows: "counter values",
    table: CounterRow::TABLE,
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
    id_prefix: "value",
    fields: &[
        Field::new("ts_ns", "time", Measure::Time, Cell::Int("ts")),
        Field::new("name", "counter", Measure::Text, Cell::Text("name")),
        Field::new("value", "value", Measure::Count, Cell::Int("value")),
        Field::new("unit", "unit", Measure::Text, Cell::Text("unit")),
        Field::new("subject", "subject", Measure::Text, Cell::Text("subject")),
        Field::new(
            "interval_ns",
            "mean over",
            Measure::Duration,
            Cell::Int("interval_ns"),
        ),
        Field::new(
            "reported_by",
            "reported by",
            Measure::Text,
            Cell::Text("reported_by"),
        ),
        Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
        Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
        Field::new(
            "mount_point",
            "mounted at",
            Measure::Text,
            Cell::Text("mount_point"),
        )
        .priority(2),
        Field::new("id", "id", Measure::Id, Cell::Id).priority(8),
    ],
    hooks: Hooks::NONE,
};
