//! `locks`: waits for contended locks of the kernel.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::LockWaitRow;

use super::{Cell, Field, Only, Spec, Topic, View};
use crate::keys::Key;
use crate::query::{Kind, Verb};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Locks,
    about: "Waits for contended locks of the kernel: mutexes, rwsems, spin locks",
    examples: "\
  whyslow locks stats web.wsl                   by kind
  whyslow locks stats web.wsl --by function,lock
  whyslow locks usage web.wsl --by thread       who waited
  whyslow locks top web.wsl                     the longest waits
  whyslow locks stacks web.wsl --op rwsem       who wanted them, caller by caller",
    views: &[
        View::new(Verb::Stats, "Count and length of waits by kind", &LOCKS),
        View::new(Verb::Usage, "Time waited by process", &LOCKS),
        View::new(Verb::Hist, "Histogram of lengths with percentiles", &LOCKS),
        View::new(Verb::Top, "The longest waits", &LOCKS),
        View::new(
            Verb::Stacks,
            "Time waited by stack, caller by caller",
            &LOCKS,
        ),
        View::new(Verb::Log, "Waits in order of time", &LOCKS),
        View::new(
            Verb::Differs,
            "What these waits have that others have not: -w, --min, --vs",
            &LOCKS,
        ),
        View::new(Verb::Heat, "Length of waits over time", &LOCKS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static LOCKS: Spec = Spec {
    kind: Kind::Locks,
    name: "locks",
    rows: "waits for locks",
    table: LockWaitRow::TABLE,
    only: Only::Everything,
    class: "kind",
    classes: &[
        "mutex",
        "rwsem",
        "percpu_rwsem",
        "rt_mutex",
        "semaphore",
        "spin",
        "rwlock",
    ],
    group: &[Key::Kind, Key::Mode],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "lock",
    fields: FIELDS,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "begin", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "waited", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("mode", "mode", Measure::Text, Cell::Text("mode")).priority(2),
    Field::new("slept", "slept", Measure::Text, Cell::Bool("slept")).priority(5),
    Field::new("lock", "lock", Measure::Text, Cell::Text("lock")).priority(3),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    ),
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
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
