//! `states`: what threads did, interval by interval.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{THREAD_STATES, ThreadStateRow};

use super::{Cell, Field, Only, Spec};
use crate::keys::Key;
use crate::query::Kind;

pub(crate) static STATES: Spec = Spec {
    kind: Kind::States,
    name: "states",
    rows: "states",
    table: ThreadStateRow::TABLE,
    only: Only::Everything,
    class: "state",
    classes: &THREAD_STATES,
    group: &[Key::State],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "state",
    fields: FIELDS,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "begin", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("state", "state", Measure::Text, Cell::Text("state")),
    Field::new(
        "preempted",
        "preempted",
        Measure::Text,
        Cell::Bool("preempted"),
    )
    .priority(4),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(2),
    Field::new(
        "wake_context",
        "woken from",
        Measure::Text,
        Cell::Text("wake_context"),
    )
    .priority(5),
    Field::new(
        "waker_utid",
        "waker utid",
        Measure::Count,
        Cell::Int("waker_utid"),
    )
    .priority(8),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
