//! `locks`: waits for contended locks in the kernel and in programs.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::LockWaitRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Locks,
    about: "Lock contention: kernel locks (mutexes, semaphores, …), JVM monitors, user-space locks",
    examples: "\
  whyslow locks stats web.wsl                   by kind
  whyslow locks stats web.wsl --by function,lock
  whyslow locks usage web.wsl --by thread       time waited by thread
  whyslow locks top web.wsl                     the longest waits
  whyslow locks stacks web.wsl --op rwsem       where threads waited, as a caller tree
  whyslow locks chains kafka.jfr                which thread blocked which, and lock convoys
  whyslow locks stats kafka.jfr --by object,holder,holder_function
                                                which threads held each lock, and what they did",
    views: &[
        View::new(Verb::Stats, "Count and duration of waits by kind", &LOCKS),
        View::new(Verb::Usage, "Time waited by process", &LOCKS),
        View::new(Verb::Hist, "Duration histogram with percentiles", &LOCKS),
        View::new(Verb::Top, "The longest waits", &LOCKS),
        View::new(
            Verb::Stacks,
            "Time waited by stack, as a caller tree",
            &LOCKS,
        ),
        View::new(
            Verb::Chains,
            "Chains from waiting threads to the running holder; deadlocks and lock convoys",
            &LOCKS,
        ),
        View::new(Verb::Log, "Waits in chronological order", &LOCKS),
        View::new(
            Verb::Differs,
            "How selected waits (-w, --min, …) differ from the others (--vs)",
            &LOCKS,
        ),
        View::new(Verb::Heat, "Duration of waits over time", &LOCKS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static LOCKS: Spec = Spec {
    kind: Kind::Locks,
    name: "locks",
    rows: "lock waits",
    table: LockWaitRow::TABLE,
    only: &[],
    class: "kind",
    classes: &[
        "mutex",
        "rwsem",
        "percpu_rwsem",
        "rt_mutex",
        "semaphore",
        "spin",
        "rwlock",
        "monitor",
        "library_lock",
        "pthread",
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
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "waited", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("mode", "mode", Measure::Text, Cell::Text("mode"))
        .sparse()
        .priority(2),
    Field::new("slept", "slept", Measure::Text, Cell::Bool("slept")).priority(5),
    Field::new("lock", "lock", Measure::Text, Cell::Text("lock")).priority(3),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    ),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("object", "object", Measure::Text, Cell::Text("object")).sparse(),
    Field::new(
        "holder_comm",
        "held by",
        Measure::Text,
        Cell::Text("holder_comm"),
    )
    .sparse(),
    Field::new("held_ns", "held", Measure::Duration, Cell::Int("held")).sparse(),
    Field::new(
        "holder_function",
        "holder function",
        Measure::Text,
        Cell::Text("holder_function"),
    )
    .sparse(),
    Field::new(
        "confidence",
        "confidence",
        Measure::Text,
        Cell::Text("confidence"),
    )
    .sparse(),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(4),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu"))
        .sparse()
        .priority(7),
    Field::new(
        "callsite_id",
        "stack",
        Measure::Count,
        Cell::Int("callsite_id"),
    )
    .priority(8),
    Field::new(
        "reported_by",
        "reported by",
        Measure::Text,
        Cell::Text("reported_by"),
    )
    .sparse()
    .priority(9),
    Field::new(
        "holder_tid",
        "holder tid",
        Measure::Count,
        Cell::Int("holder_tid"),
    )
    .sparse()
    .priority(9),
    Field::new(
        "holder_callsite_id",
        "holder's stack",
        Measure::Count,
        Cell::Int("holder_callsite_id"),
    )
    .sparse()
    .priority(9),
    Field::new(
        "holder_gap_id",
        "holder's gap",
        Measure::Count,
        Cell::Int("holder_gap_id"),
    )
    .sparse()
    .priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
