//! `stacks`: off-CPU stacks of long waits, and samples of running code.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::StackSampleRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Stacks,
    about: "Off-CPU stacks of long waits, and on-CPU and wall-clock samples",
    examples: "\
  whyslow stacks web.wsl                        off-CPU time as a caller tree
  whyslow stacks web.wsl -c mysqld -w op:17     where threads waited during one call
  whyslow stacks web.wsl --op sample            on-CPU samples (record --sample)
  whyslow stacks web.wsl --op wall --by state,function
                                                all threads (record --stacks wall:10ms)
  whyslow stacks stats web.wsl --by comm,function",
    views: &[
        View::new(Verb::Top, "Time by stack, as a caller tree", &STACKS),
        View::new(Verb::Stats, "Count and duration by function", &STACKS),
        View::new(Verb::Usage, "Off-CPU time and samples by process", &STACKS),
        View::new(Verb::Hist, "Duration histogram with percentiles", &STACKS),
        View::new(Verb::Log, "Stacks in chronological order", &STACKS),
        View::new(Verb::Heat, "Duration over time", &STACKS),
    ],
    default: Some(Verb::Top),
    is_main: false,
};

pub(crate) static STACKS: Spec = Spec {
    kind: Kind::Stacks,
    name: "stacks",
    rows: "stacks",
    table: StackSampleRow::TABLE,
    only: &[],
    class: "kind",
    classes: &["offcpu", "sample", "wall", "execution", "native"],
    group: &[Key::Kind, Key::State, Key::Function],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "stack",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")).priority(2),
    Field::new("state", "state", Measure::Text, Cell::Text("state")),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new(
        "user_function",
        "user function",
        Measure::Text,
        Cell::Text("user_function"),
    )
    .priority(3),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(4),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(7),
    Field::new(
        "callsite_id",
        "stack",
        Measure::Count,
        Cell::Int("callsite_id"),
    )
    .priority(8),
    Field::new("credits", "samples", Measure::Count, Cell::Int("credits")).priority(9),
    Field::new("syscall", "call", Measure::Text, Cell::Text("syscall")).priority(10),
    Field::new("sampler", "sampler", Measure::Text, Cell::Text("sampler")).priority(11),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
