//! `block`: block device requests, their queue time and device time.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::BlockIoRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Block,
    about: "Block device (disk) requests",
    examples: "\
  whyslow block stats web.wsl 1          one report per second, like iostat
  whyslow block hist web.wsl --dev sdy --vs sdt --size 8k --op read
  whyslow block heat web.wsl --dev 8:0
  whyslow block outliers web.wsl --min 65ms
  sudo whyslow block outliers @live      slow requests on this machine, as they complete",
    views: &[
        View::new(
            Verb::Usage,
            "Bytes and requests by process and device",
            &BLOCK,
        ),
        View::new(
            Verb::Stats,
            "Count, bytes, queue and device time by device",
            &BLOCK,
        ),
        View::new(
            Verb::Outliers,
            "Long requests, and devices that deviate from their peers",
            &BLOCK,
        ),
        View::new(Verb::Hist, "Latency histogram with percentiles", &BLOCK),
        View::new(Verb::Top, "The longest requests", &BLOCK),
        View::new(Verb::Log, "Requests in chronological order", &BLOCK),
        View::new(
            Verb::Differs,
            "How selected requests (-w, --min, …) differ from the others (--vs)",
            &BLOCK,
        ),
        View::new(Verb::Heat, "Latency over time", &BLOCK),
    ],
    default: None,
    is_main: true,
};

pub(super) const ID_PREFIX: &str = "block";

pub(crate) static BLOCK: Spec = Spec {
    kind: Kind::Block,
    name: "block",
    rows: "requests",
    table: BlockIoRow::TABLE,
    only: &[],
    class: "op",
    classes: &["read", "write", "discard", "flush", "other"],
    group: &[Key::Dev, Key::Op],
    series: &[Key::Dev, Key::Op],
    size: Some("bytes"),
    errno: Some("error"),
    lasting: false,
    owner: "utid",
    stages: &[("queue", "queue_ns"), ("device", "device_ns")],
    id_prefix: ID_PREFIX,
    fields: FIELDS,
    hooks: Hooks {
        has_ends_alone: true,
        ..Hooks::NONE
    },
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new(
        "queue_ns",
        "queue",
        Measure::Duration,
        Cell::Int("queue_ns"),
    )
    .priority(2),
    Field::new(
        "device_ns",
        "device",
        Measure::Duration,
        Cell::Int("device_ns"),
    )
    .priority(2),
    Field::new("dev", "dev", Measure::Text, Cell::Text("dev_name")),
    Field::new("part", "part", Measure::Text, Cell::Text("part_name")).priority(5),
    Field::new("op", "op", Measure::Text, Cell::Text("op")),
    Field::new("rwbs", "rwbs", Measure::Text, Cell::Text("rwbs")).priority(7),
    Field::new("sector", "sector", Measure::Count, Cell::Int("sector")).priority(4),
    Field::new("sectors", "sectors", Measure::Count, Cell::Int("sectors")).priority(8),
    Field::new("bytes", "size", Measure::Bytes, Cell::Int("bytes")),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new(
        "submitter_source",
        "submitter source",
        Measure::Text,
        Cell::Text("submitter_source"),
    )
    .priority(9),
    Field::new("layer", "layer", Measure::Text, Cell::Text("layer")).priority(9),
    Field::new("merges", "merges", Measure::Count, Cell::Int("merges")).priority(9),
    Field::new(
        "completions",
        "completions",
        Measure::Count,
        Cell::Int("completions"),
    )
    .priority(9),
    Field::new("error", "error", Measure::Text, Cell::Errno("error")).priority(5),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
