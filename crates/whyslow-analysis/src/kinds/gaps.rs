//! `gaps`: sampling gaps, in which a wall-clock profile has no samples of a thread.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::SampleGapRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Gaps,
    about: "Sampling gaps: intervals in which a wall-clock profile has no samples of a thread",
    examples: "\
  whyslow gaps stats kafka.jfr                  by class and the function after the gap
  whyslow gaps usage kafka.jfr --by thread --op kernel_wait
  whyslow threads gaps kafka.jfr                the significant ones, in chronological order",
    views: &[
        View::new(Verb::Stats, "Count and duration by class", &GAPS),
        View::new(Verb::Usage, "Time in sampling gaps by process", &GAPS),
        View::new(Verb::Hist, "Duration histogram with percentiles", &GAPS),
        View::new(Verb::Top, "The longest gaps", &GAPS),
        View::new(
            Verb::Stacks,
            "Time by the stack after the gap, as a caller tree",
            &GAPS,
        ),
        View::new(Verb::Log, "Gaps in chronological order", &GAPS),
        View::new(Verb::Heat, "Duration over time", &GAPS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static GAPS: Spec = Spec {
    kind: Kind::Gaps,
    name: "gaps",
    rows: "sampling gaps",
    table: SampleGapRow::TABLE,
    only: &[],
    class: "class",
    classes: &[
        "kernel_wait",
        "page_fault",
        "sampler_late",
        "cpu_starved",
        "process_stopped",
    ],
    group: &[Key::Class, Key::Function],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "gap",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("comm", "thread", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(6),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(2),
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(4),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "function",
        "function after",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new("class", "class", Measure::Text, Cell::Text("class")),
    Field::new("group_id", "group", Measure::Count, Cell::Int("group_id")).priority(1),
    Field::new(
        "cycles",
        "missed cycles",
        Measure::Count,
        Cell::Int("cycles"),
    )
    .priority(3),
    Field::new("queued", "queued", Measure::Count, Cell::Int("queued")).priority(5),
    Field::new(
        "before_function",
        "function before",
        Measure::Text,
        Cell::Text("before_function"),
    )
    .priority(6),
    Field::new(
        "callsite_id",
        "stack",
        Measure::Count,
        Cell::Int("callsite_id"),
    )
    .priority(8),
    Field::new(
        "before_callsite_id",
        "stack before",
        Measure::Count,
        Cell::Int("before_callsite_id"),
    )
    .priority(8),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(7),
];
