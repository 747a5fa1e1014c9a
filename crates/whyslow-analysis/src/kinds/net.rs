//! `net`: packets handed to and taken from network interfaces.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::NetPacketRow;

use super::{Cell, Field, Only, Spec, Topic, View};
use crate::keys::Key;
use crate::query::{Kind, Verb};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Net,
    about: "Network packets by interface, process and peer",
    examples: "\
  whyslow net web.wsl                           bytes and packets of each interface
  whyslow net web.wsl --by process
  whyslow net web.wsl 1 --by peer               where the headers were recorded",
    views: &[
        View::new(Verb::Usage, "Bytes and packets received and sent", &PACKETS).by_time(),
        View::new(Verb::Log, "Packets in order of time", &PACKETS),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(crate) static PACKETS: Spec = Spec {
    kind: Kind::Net,
    name: "net",
    rows: "packets",
    table: NetPacketRow::TABLE,
    only: Only::Everything,
    class: "kind",
    classes: &["receive", "queue", "transmit"],
    group: &[Key::Netif],
    series: &[],
    size: Some("bytes"),
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: "packet",
    fields: FIELDS,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "time", Measure::Time, Cell::Int("ts")),
    Field::new("kind", "what", Measure::Text, Cell::Text("kind")),
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
    Field::new("id", "id", Measure::Id, Cell::Id).priority(8),
];
