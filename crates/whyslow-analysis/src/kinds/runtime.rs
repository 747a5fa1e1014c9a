//! `runtime`: events that a language runtime reports about its threads.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::RuntimeEventRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Runtime,
    about: "JVM runtime events: monitor and lock waits, reads and writes, pauses",
    examples: "\
  whyslow runtime stats kafka.jfr               by kind and lock, file or pause
  whyslow runtime usage kafka.jfr --by thread --op monitor_enter,park
  whyslow runtime stacks kafka.jfr --op monitor_enter
  whyslow runtime top kafka.jfr --op gc_pause",
    views: &[
        View::new(Verb::Stats, "Count and duration by kind", &RUNTIME),
        View::new(Verb::Usage, "Time by process", &RUNTIME),
        View::new(Verb::Hist, "Duration histogram with percentiles", &RUNTIME),
        View::new(Verb::Top, "The longest events", &RUNTIME),
        View::new(Verb::Stacks, "Time by stack, as a caller tree", &RUNTIME),
        View::new(Verb::Log, "Events in chronological order", &RUNTIME),
        View::new(Verb::Heat, "Duration over time", &RUNTIME),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

pub(crate) static RUNTIME: Spec = Spec {
    kind: Kind::Runtime,
    name: "runtime",
    rows: "runtime events",
    table: RuntimeEventRow::TABLE,
    only: &[],
    class: "kind",
    classes: &[
        "monitor_enter",
        "monitor_wait",
        "park",
        "sleep",
        "file_read",
        "file_write",
        "file_force",
        "socket_read",
        "socket_write",
        "native_lock",
        "gc_pause",
        "safepoint",
        "vm_operation",
        "allocation",
        "live_object",
    ],
    group: &[Key::Kind, Key::Object],
    series: &[Key::Kind],
    size: Some("bytes"),
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "runtime",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("object", "object", Measure::Text, Cell::Text("object")),
    Field::new(
        "function",
        "function",
        Measure::Text,
        Cell::Text("function"),
    )
    .priority(1),
    Field::new("comm", "thread", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(5),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(2),
    Field::new("bytes", "bytes", Measure::Bytes, Cell::Int("bytes")).priority(4),
    Field::new("address", "address", Measure::Text, Cell::Text("address")).priority(3),
    Field::new(
        "owner",
        "previous owner",
        Measure::Text,
        Cell::Thread("owner_utid"),
    )
    .priority(5),
    Field::new(
        "callsite_id",
        "stack",
        Measure::Count,
        Cell::Int("callsite_id"),
    )
    .priority(8),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(7),
];
