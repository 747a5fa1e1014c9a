//! `dns`: DNS lookups by functions of the C library.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::DnsLookupRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Dns,
    about: "DNS lookups: names, results and latency",
    examples: "\
  whyslow dns web.wsl                           by name and result
  whyslow dns usage web.wsl --by comm           time in lookups by process name
  whyslow dns log web.wsl --op EAI_AGAIN        temporary failures in name resolution",
    views: &[
        View::new(
            Verb::Stats,
            "Count and latency by name and result",
            &LOOKUPS,
        ),
        View::new(Verb::Usage, "Time in DNS lookups by process", &LOOKUPS),
        View::new(Verb::Hist, "Latency histogram with percentiles", &LOOKUPS),
        View::new(Verb::Top, "The longest DNS lookups", &LOOKUPS),
        View::new(Verb::Log, "DNS lookups in chronological order", &LOOKUPS),
        View::new(
            Verb::Differs,
            "How selected lookups (-w, --min, …) differ from the others (--vs)",
            &LOOKUPS,
        ),
        View::new(Verb::Heat, "Latency over time", &LOOKUPS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static LOOKUPS: Spec = Spec {
    kind: Kind::Dns,
    name: "dns",
    rows: "DNS lookups",
    table: DnsLookupRow::TABLE,
    only: &[],
    class: "result",
    classes: &[],
    group: &[Key::Host, Key::Result],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "dns",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("host", "host", Measure::Path, Cell::Text("host")),
    Field::new("service", "service", Measure::Text, Cell::Text("service")).priority(5),
    Field::new("result", "result", Measure::Text, Cell::Text("result")),
    Field::new("code", "code", Measure::Count, Cell::Int("code")).priority(8),
    Field::new("address", "address", Measure::Text, Cell::Text("address")),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    )
    .priority(4),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
