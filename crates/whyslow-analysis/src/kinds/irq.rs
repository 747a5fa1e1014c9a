//! `irq`: interrupt handlers, with the latency from the raise of a softirq to its entry.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::IrqRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Irq,
    about: "Interrupts: device handlers, softirqs, timers",
    examples: "\
  whyslow irq stats web.wsl                     with softirq latency, from raise to entry
  whyslow irq usage web.wsl --by thread         time in interrupts by interrupted thread
  whyslow irq log web.wsl --op soft --min 1ms",
    views: &[
        View::new(Verb::Stats, "Count and duration by handler", &IRQ),
        View::new(
            Verb::Usage,
            "Time in interrupts by interrupted thread",
            &IRQ,
        ),
        View::new(Verb::Hist, "Duration histogram with percentiles", &IRQ),
        View::new(Verb::Top, "The longest handlers", &IRQ),
        View::new(Verb::Log, "Handlers in chronological order", &IRQ),
        View::new(Verb::Heat, "Duration over time", &IRQ),
    ],
    default: None,
    is_main: false,
};

pub(crate) static IRQ: Spec = Spec {
    kind: Kind::Irq,
    name: "irq",
    rows: "interrupt handlers",
    table: IrqRow::TABLE,
    only: &[],
    class: "kind",
    classes: &["hard", "soft", "hrtimer", "ipi"],
    group: &[Key::Kind, Key::Nr, Key::Name],
    series: &[Key::Kind],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[("raise", "raise_ns")],
    id_prefix: "irq",
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
    Field::new("self_ns", "self", Measure::Duration, Cell::Int("self_ns")).priority(5),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")),
    Field::new("kind", "kind", Measure::Text, Cell::Text("kind")),
    Field::new("nr", "nr", Measure::Count, Cell::Int("nr")),
    Field::new("name", "handler", Measure::Text, Cell::Text("name")),
    Field::new(
        "raise_ns",
        "raise latency",
        Measure::Duration,
        Cell::Int("raise_ns"),
    )
    .priority(2),
    Field::new(
        "ts_raise_ns",
        "raised",
        Measure::Time,
        Cell::Int("ts_raise"),
    )
    .priority(6),
    Field::new("ret", "result", Measure::Count, Cell::Int("ret")).priority(9),
    Field::new("comm", "interrupted", Measure::Text, Cell::Text("comm")).priority(3),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(8),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")).priority(3),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
