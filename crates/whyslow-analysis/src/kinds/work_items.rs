//! `work`: workqueue items.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::WorkItemRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Work,
    about: "Workqueue items: function, submitter, queue time and run time",
    examples: "\
  whyslow work stats web.wsl                    from queueing to completion, by function
  whyslow work usage web.wsl                    by submitting process
  whyslow work hist web.wsl --stage queue       how long items were queued
  whyslow work log web.wsl --op blk_mq_run_work_fn -c dd",
    views: &[
        View::new(Verb::Stats, "Count and duration by function", &ITEMS),
        View::new(Verb::Usage, "Time by submitting process", &ITEMS),
        View::new(Verb::Hist, "Duration histogram with percentiles", &ITEMS),
        View::new(Verb::Top, "The longest work items", &ITEMS),
        View::new(Verb::Log, "Work items in chronological order", &ITEMS),
        View::new(Verb::Heat, "Duration over time", &ITEMS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

static ITEMS: Spec = Spec {
    kind: Kind::Work,
    name: "work",
    rows: "work items",
    table: WorkItemRow::TABLE,
    only: &[],
    class: "function",
    classes: &[],
    group: &[Key::Function, Key::Workqueue],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[
        ("queue", "queue_ns"),
        ("held", "held_ns"),
        ("run", "run_ns"),
    ],
    id_prefix: "item",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "queued", Measure::Time, Cell::Int("ts")),
    Field::new("ts_begin_ns", "start", Measure::Time, Cell::Int("ts_begin")).priority(7),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(8),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "queue_ns",
        "queue",
        Measure::Duration,
        Cell::Int("queue_ns"),
    ),
    Field::new("held_ns", "held", Measure::Duration, Cell::Int("held_ns")).priority(5),
    Field::new(
        "requeued",
        "requeued",
        Measure::Count,
        Cell::Int("requeued"),
    )
    .priority(8),
    Field::new("run_ns", "run", Measure::Duration, Cell::Int("run_ns")),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new(
        "workqueue",
        "workqueue",
        Measure::Text,
        Cell::Text("workqueue"),
    )
    .priority(3),
    Field::new("comm", "queued by", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(6),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(2),
    Field::new(
        "worker_comm",
        "worker",
        Measure::Text,
        Cell::Text("worker_comm"),
    )
    .priority(2),
    Field::new(
        "worker_tid",
        "worker tid",
        Measure::Count,
        Cell::Int("worker_tid"),
    )
    .priority(4),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(7),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
