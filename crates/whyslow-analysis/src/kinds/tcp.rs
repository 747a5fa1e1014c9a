//! `tcp`: TCP connections.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::TcpConnectionRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Tcp,
    about: "TCP connections: opener, connect latency, duration, outcome",
    examples: "\
  whyslow tcp web.wsl                           by kind and outcome
  whyslow tcp log web.wsl                       one line per connection
  whyslow tcp hist web.wsl --stage connect      how long connecting took
  whyslow tcp stats web.wsl --by peer --op connect",
    views: &[
        View::new(
            Verb::Stats,
            "Count and duration by kind and outcome",
            &CONNECTIONS,
        ),
        View::new(Verb::Usage, "Connections by process", &CONNECTIONS),
        View::new(
            Verb::Hist,
            "Duration histogram with percentiles",
            &CONNECTIONS,
        ),
        View::new(Verb::Top, "The longest connections", &CONNECTIONS),
        View::new(
            Verb::Log,
            "Connections in chronological order",
            &CONNECTIONS,
        ),
        View::new(
            Verb::Differs,
            "How selected connections (-w, --min, …) differ from the others (--vs)",
            &CONNECTIONS,
        ),
        View::new(Verb::Heat, "Duration over time", &CONNECTIONS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

static CONNECTIONS: Spec = Spec {
    kind: Kind::Tcp,
    name: "tcp",
    rows: "connections",
    table: TcpConnectionRow::TABLE,
    only: &[],
    class: "kind",
    classes: &["connect", "accept", "unknown"],
    group: &[Key::Kind, Key::Outcome],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[("connect", "connect_ns")],
    id_prefix: "tcp",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(7),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "connect_ns",
        "connect",
        Measure::Duration,
        Cell::Int("connect_ns"),
    ),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("outcome", "outcome", Measure::Text, Cell::Text("outcome")),
    Field::new(
        "closed_by",
        "closed by",
        Measure::Text,
        Cell::Text("closed_by"),
    )
    .priority(4),
    Field::new("local", "local", Measure::Text, Cell::Text("local")).priority(3),
    Field::new("peer", "peer", Measure::Text, Cell::Text("peer")),
    Field::new(
        "bytes_sent",
        "sent",
        Measure::Bytes,
        Cell::Int("bytes_sent"),
    )
    .priority(2),
    Field::new(
        "bytes_received",
        "received",
        Measure::Bytes,
        Cell::Int("bytes_received"),
    )
    .priority(2),
    Field::new(
        "retransmits",
        "retransmits",
        Measure::Count,
        Cell::Int("retransmits"),
    )
    .priority(5),
    Field::new("rtt_ns", "rtt", Measure::Duration, Cell::Int("rtt_ns")).priority(5),
    Field::new("state", "state", Measure::Text, Cell::Text("state")).priority(8),
    Field::new("error", "error", Measure::Text, Cell::Errno("error")).priority(6),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
