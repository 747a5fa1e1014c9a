//! `gaps`: times in which a wall-clock profile has no samples of a thread.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::SampleGapRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Gaps,
    about: "Times in which a wall-clock profile has no samples of a thread",
    examples: "\
  whyslow gaps stats kafka.jfr                  by class and the call they ended in
  whyslow gaps usage kafka.jfr --by thread --op kernel_wait
  whyslow threads gaps kafka.jfr                those that mean something, in order of time",
    views: &[
        View::new(Verb::Stats, "Count and length by class", &GAPS),
        View::new(Verb::Usage, "Time without samples by process", &GAPS),
        View::new(Verb::Hist, "Histogram of lengths with percentiles", &GAPS),
        View::new(Verb::Top, "The longest", &GAPS),
        View::new(
            Verb::Stacks,
            "Time by the stack that ended it, caller by caller",
            &GAPS,
        ),
        View::new(Verb::Log, "All in order of time", &GAPS),
        View::new(Verb::Heat, "Length over time", &GAPS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static GAPS: Spec = Spec {
    kind: Kind::Gaps,
    name: "gaps",
    rows: "times without samples",
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
    Field::new("ts_ns", "begin", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(4),
    Field::new("dur_ns", "length", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "function",
        "ended in",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new("class", "class", Measure::Text, Cell::Text("class")),
    Field::new("group_id", "group", Measure::Count, Cell::Int("group_id")).priority(1),
    Field::new(
        "cycles",
        "rounds missed",
        Measure::Count,
        Cell::Int("cycles"),
    )
    .priority(3),
    Field::new("queued", "queued", Measure::Count, Cell::Int("queued")).priority(5),
    Field::new(
        "before_function",
        "before it",
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
