//! `mem`: pages allocated and freed and page faults, counted per second; and intervals of reclaim.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{PageCountRow, ReclaimRow};

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Mem,
    about: "Memory: pages allocated and freed, page faults, reclaim",
    examples: "\
  whyslow mem web.wsl                           by process
  whyslow mem web.wsl --by thread
  whyslow mem web.wsl 1 -c mysqld               per second
  whyslow mem top web.wsl --op direct           the longest direct reclaim stalls",
    views: &[
        View::new(
            Verb::Usage,
            "Pages allocated and freed, faults and stalls by process or thread",
            &PAGES,
        ),
        View::new(
            Verb::Stats,
            "Count and duration of reclaim by kind",
            &RECLAIM,
        ),
        View::new(
            Verb::Hist,
            "Histogram of reclaim durations with percentiles",
            &RECLAIM,
        ),
        View::new(Verb::Top, "The longest reclaim intervals", &RECLAIM),
        View::new(Verb::Log, "Reclaim in chronological order", &RECLAIM),
        View::new(Verb::Heat, "Duration of reclaim over time", &RECLAIM),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(crate) static PAGES: Spec = Spec {
    kind: Kind::Mem,
    name: "mem",
    rows: "page counts",
    table: PageCountRow::TABLE,
    only: &[],
    class: "",
    classes: &[],
    group: &[Key::Process],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: "pages",
    fields: &[],
    hooks: Hooks::NONE,
};

/// Intervals in which pages were freed because memory was low.
pub(crate) static RECLAIM: Spec = Spec {
    kind: Kind::Mem,
    name: "mem",
    rows: "reclaim intervals",
    table: ReclaimRow::TABLE,
    only: &[],
    class: "kind",
    classes: &["direct", "cgroup", "cgroup_soft", "node", "kswapd"],
    group: &[Key::Kind],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "reclaim",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("pages", "pages freed", Measure::Count, Cell::Int("pages")),
    Field::new(
        "alloc_order",
        "order",
        Measure::Count,
        Cell::Int("alloc_order"),
    )
    .priority(4),
    Field::new("node", "node", Measure::Count, Cell::Int("node")).priority(5),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(7),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
