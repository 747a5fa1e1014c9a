//! `signals`: signals that stop, continue or terminate processes.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::SignalRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Signals,
    about: "Signals that stop, continue or terminate processes: sender, target, delivery time",
    examples: "\
  whyslow signals log web.wsl                   one line per signal, in chronological order
  whyslow signals log web.wsl --op end          signals that terminated a process
  whyslow signals stats web.wsl --by signal,sender",
    views: &[
        View::new(
            Verb::Stats,
            "Count and time to delivery by signal",
            &SIGNALS,
        ),
        View::new(Verb::Hist, "Histogram of time to delivery", &SIGNALS),
        View::new(Verb::Top, "The signals that were pending longest", &SIGNALS),
        View::new(Verb::Log, "Signals in chronological order", &SIGNALS),
    ],
    default: Some(Verb::Log),
    is_main: false,
};

static SIGNALS: Spec = Spec {
    kind: Kind::Signals,
    name: "signals",
    rows: "signals",
    table: SignalRow::TABLE,
    only: &[],
    class: "action",
    classes: &["stop", "continue", "end", "handler"],
    group: &[Key::Signal, Key::Action],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "signal",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "sent", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "delivered", Measure::Time, Cell::Int("ts_end")).priority(7),
    Field::new("dur_ns", "pending", Measure::Duration, Cell::Int("dur")).priority(3),
    Field::new("signal", "signal", Measure::Text, Cell::Text("signal")),
    Field::new("action", "action", Measure::Text, Cell::Text("action")),
    Field::new("origin", "origin", Measure::Text, Cell::Text("origin")).priority(2),
    Field::new("result", "result", Measure::Text, Cell::Text("result")).priority(6),
    Field::new(
        "sender_comm",
        "sender",
        Measure::Text,
        Cell::Text("sender_comm"),
    ),
    Field::new(
        "sender_pid",
        "sender pid",
        Measure::Count,
        Cell::Int("sender_pid"),
    )
    .priority(4),
    Field::new(
        "sender_tid",
        "sender tid",
        Measure::Count,
        Cell::Int("sender_tid"),
    )
    .priority(5),
    Field::new("comm", "target", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(5),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
