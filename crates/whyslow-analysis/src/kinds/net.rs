//! `net`: packets sent and received by network interfaces.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::NetPacketRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Net,
    about: "Network packets, retransmits and drops by interface, process and peer",
    examples: "\
  whyslow net web.wsl                           bytes and packets by interface
  whyslow net web.wsl --by process
  whyslow net web.wsl 1 --by peer               if headers were recorded
  whyslow net log web.wsl --op retransmit,drop  lost packets, with reasons",
    views: &[
        View::new(
            Verb::Usage,
            "Bytes and packets received, sent, retransmitted and dropped",
            &PACKETS,
        ),
        View::new(Verb::Log, "Packets in chronological order", &PACKETS),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(super) const ID_PREFIX: &str = "packet";

pub(crate) static PACKETS: Spec = Spec {
    kind: Kind::Net,
    name: "net",
    rows: "packets",
    table: NetPacketRow::TABLE,
    only: &[],
    class: "kind",
    classes: &[
        "receive",
        "queue",
        "transmit",
        "retransmit",
        "retransmit_synack",
        "drop",
    ],
    group: &[Key::Netif],
    series: &[],
    size: Some("bytes"),
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: ID_PREFIX,
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "time", Measure::Time, Cell::Int("ts")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("netif", "interface", Measure::Text, Cell::Text("netif")),
    Field::new("bytes", "size", Measure::Bytes, Cell::Int("bytes")),
    Field::new(
        "protocol",
        "protocol",
        Measure::Text,
        Cell::Text("protocol"),
    )
    .priority(3),
    Field::new("source", "source", Measure::Text, Cell::Text("source")).priority(2),
    Field::new(
        "destination",
        "destination",
        Measure::Text,
        Cell::Text("destination"),
    )
    .priority(2),
    Field::new("tcp_seq", "seq", Measure::Count, Cell::Int("tcp_seq")).priority(9),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(5),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(7),
    Field::new("ret", "result", Measure::Count, Cell::Int("ret")).priority(8),
    Field::new(
        "drop_reason",
        "drop reason",
        Measure::Count,
        Cell::Int("drop_reason"),
    )
    .priority(6),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(8),
];
