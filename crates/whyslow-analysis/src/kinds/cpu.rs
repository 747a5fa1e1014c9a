//! `cpu`: CPU time slices of threads.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::SchedSliceRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Cpu,
    about: "CPU usage by process and thread, and CPU time by state",
    examples: "\
  whyslow cpu web.wsl                           by process
  whyslow cpu web.wsl 1 --by cpu                us sy ni id wa hi si per CPU and second
  whyslow cpu web.wsl --by thread -w op:17      threads that ran during operation 17",
    views: &[
        View::new(
            Verb::Usage,
            "CPU time by process, thread, CPU or priority",
            &SLICES,
        ),
        View::new(Verb::Stats, "Count and duration of time slices", &SLICES),
        View::new(Verb::Hist, "Histogram of time slice durations", &SLICES),
        View::new(Verb::Top, "The longest time slices", &SLICES),
        View::new(Verb::Log, "Time slices in chronological order", &SLICES),
        View::new(Verb::Heat, "Duration of time slices over time", &SLICES),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(crate) static SLICES: Spec = Spec {
    kind: Kind::Cpu,
    name: "cpu",
    rows: "time slices",
    table: SchedSliceRow::TABLE,
    only: &[],
    class: "end_state",
    classes: &["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I"],
    group: &[Key::Process],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "slice",
    fields: FIELDS,
    hooks: Hooks {
        has_ends_alone: true,
        ..Hooks::NONE
    },
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("prio", "prio", Measure::Count, Cell::Int("prio")).priority(2),
    Field::new(
        "system_ns",
        "system",
        Measure::Duration,
        Cell::Int("system_ns"),
    )
    .priority(4),
    Field::new(
        "hardirq_ns",
        "hard irq",
        Measure::Duration,
        Cell::Int("hardirq_ns"),
    )
    .priority(5),
    Field::new(
        "softirq_ns",
        "softirq",
        Measure::Duration,
        Cell::Int("softirq_ns"),
    )
    .priority(5),
    Field::new(
        "migrations",
        "migrations",
        Measure::Count,
        Cell::Int("migrations"),
    )
    .priority(7),
    Field::new(
        "end_state",
        "end state",
        Measure::Text,
        Cell::Text("end_state"),
    )
    .priority(3),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
