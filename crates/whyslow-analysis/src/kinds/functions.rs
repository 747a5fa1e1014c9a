//! `functions`: recorded function calls (uprobes).

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::FunctionCallRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Functions,
    about: "Function calls (record --function): count, latency and arguments",
    examples: "\
  whyslow functions web.wsl                     by function
  whyslow functions usage web.wsl --by comm     time in functions by process name
  whyslow functions top web.wsl --op SSL_read   the longest calls of a function
  whyslow functions log web.wsl -w function:17  other calls during one call",
    views: &[
        View::new(Verb::Stats, "Count and latency by function", &FUNCTIONS),
        View::new(Verb::Usage, "Time in functions by process", &FUNCTIONS),
        View::new(Verb::Hist, "Latency histogram with percentiles", &FUNCTIONS),
        View::new(Verb::Top, "The longest calls", &FUNCTIONS),
        View::new(Verb::Log, "Calls in chronological order", &FUNCTIONS),
        View::new(
            Verb::Differs,
            "How selected calls (-w, --min, …) differ from the others (--vs)",
            &FUNCTIONS,
        ),
        View::new(Verb::Heat, "Latency over time", &FUNCTIONS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

static FUNCTIONS: Spec = Spec {
    kind: Kind::Functions,
    name: "functions",
    rows: "function calls",
    table: FunctionCallRow::TABLE,
    only: &[],
    class: "function",
    classes: &[],
    group: &[Key::Function],
    series: &[Key::Function],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "function",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new("text", "text", Measure::Text, Cell::Text("text")),
    Field::new("text2", "text 2", Measure::Text, Cell::Text("text2")).priority(4),
    Field::new("arg1", "arg 1", Measure::Count, Cell::Int("arg1")).priority(5),
    Field::new("arg2", "arg 2", Measure::Count, Cell::Int("arg2")).priority(5),
    Field::new("arg3", "arg 3", Measure::Count, Cell::Int("arg3")).priority(5),
    Field::new("arg4", "arg 4", Measure::Count, Cell::Int("arg4")).priority(8),
    Field::new("arg5", "arg 5", Measure::Count, Cell::Int("arg5")).priority(8),
    Field::new("arg6", "arg 6", Measure::Count, Cell::Int("arg6")).priority(8),
    Field::new("ret", "returned", Measure::Count, Cell::Int("ret")).priority(2),
    Field::new("module", "file", Measure::Path, Cell::Text("module")).priority(7),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new(
        "parent_id",
        "parent",
        Measure::Count,
        Cell::Int("parent_id"),
    )
    .priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
