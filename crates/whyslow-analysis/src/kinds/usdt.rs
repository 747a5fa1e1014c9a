//! `usdt`: hits of recorded USDT probes.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::UsdtEventRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Usdt,
    about: "USDT probe hits (record --usdt): count, process, arguments",
    examples: "\
  whyslow usdt web.wsl                          by probe
  whyslow usdt web.wsl --by process,text
  whyslow usdt log web.wsl --op gc__start       each hit, with arguments",
    views: &[
        View::new(Verb::Usage, "Hits by probe", &HITS),
        View::new(Verb::Log, "Hits in chronological order", &HITS),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

static HITS: Spec = Spec {
    kind: Kind::Usdt,
    name: "usdt",
    rows: "USDT probe hits",
    table: UsdtEventRow::TABLE,
    only: &[],
    class: "name",
    classes: &[],
    group: &[Key::Provider, Key::Name],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: "usdt",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "time", Measure::Time, Cell::Int("ts")),
    Field::new(
        "provider",
        "provider",
        Measure::Text,
        Cell::Text("provider"),
    ),
    Field::new("name", "probe", Measure::Text, Cell::Text("name")),
    Field::new("text", "text", Measure::Text, Cell::Text("text")),
    Field::new("text2", "text 2", Measure::Text, Cell::Text("text2")).priority(4),
    Field::new("arg1", "arg 1", Measure::Count, Cell::Int("arg1")).priority(2),
    Field::new("arg2", "arg 2", Measure::Count, Cell::Int("arg2")).priority(2),
    Field::new("arg3", "arg 3", Measure::Count, Cell::Int("arg3")).priority(5),
    Field::new("arg4", "arg 4", Measure::Count, Cell::Int("arg4")).priority(5),
    Field::new("arg5", "arg 5", Measure::Count, Cell::Int("arg5")).priority(5),
    Field::new("arg6", "arg 6", Measure::Count, Cell::Int("arg6")).priority(5),
    Field::new("arg7", "arg 7", Measure::Count, Cell::Int("arg7")).priority(9),
    Field::new("arg8", "arg 8", Measure::Count, Cell::Int("arg8")).priority(9),
    Field::new("arg9", "arg 9", Measure::Count, Cell::Int("arg9")).priority(9),
    Field::new("arg10", "arg 10", Measure::Count, Cell::Int("arg10")).priority(9),
    Field::new("arg11", "arg 11", Measure::Count, Cell::Int("arg11")).priority(9),
    Field::new("arg12", "arg 12", Measure::Count, Cell::Int("arg12")).priority(9),
    Field::new("module", "file", Measure::Path, Cell::Text("module")).priority(7),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(8),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
