//! `sched`: run-queue latency, the time that runnable threads waited for a CPU.

use whyslow_model::answer::Measure;
use whyslow_model::tables::RUNNABLE_REASONS;

use super::states::{PACKET, REQUEST, STATES};
use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Only, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Sched,
    about: "Run-queue latency: waits for a CPU, preemption, wakers",
    examples: "\
  whyslow sched stats web.wsl --by comm
  whyslow sched top web.wsl -n 5 --op woken     the longest waits after a wakeup
  whyslow sched log web.wsl -p 31517            its threads: wakers and run-queue latency",
    views: &[
        View::new(
            Verb::Stats,
            "Count and latency by reason: woken, preempted, created",
            &SCHED,
        ),
        View::new(Verb::Hist, "Latency histogram with percentiles", &SCHED),
        View::new(Verb::Top, "The longest waits", &SCHED),
        View::new(
            Verb::Log,
            "Waits in chronological order, with wakers",
            &SCHED,
        ),
        View::new(
            Verb::Differs,
            "How selected waits (-w, --min, …) differ from the others (--vs)",
            &SCHED,
        ),
        View::new(Verb::Heat, "Latency over time", &SCHED),
    ],
    default: None,
    is_main: true,
};

pub(crate) static SCHED: Spec = Spec {
    kind: Kind::Sched,
    name: "sched",
    rows: "waits for a CPU",
    only: &[Only {
        column: "state",
        holds: |state| state == "runnable",
    }],
    class: "reason",
    classes: &RUNNABLE_REASONS,
    group: &[Key::Cause],
    series: &[],
    fields: FIELDS,
    ..STATES
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "runnable", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "running", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "wait", Measure::Duration, Cell::Int("dur")),
    Field::new("reason", "reason", Measure::Text, Cell::Text("reason")),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("prio", "prio", Measure::Count, Cell::Int("prio")).priority(2),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(4),
    Field::new("waker", "waker", Measure::Text, Cell::Thread("waker_utid")).priority(1),
    Field::new(
        "wake_context",
        "woken from",
        Measure::Text,
        Cell::Text("wake_context"),
    )
    .priority(5),
    Field::new(
        "request",
        "woken by request",
        Measure::Id,
        Cell::WokenBy(REQUEST),
    )
    .priority(5),
    Field::new(
        "packet",
        "woken by packet",
        Measure::Id,
        Cell::WokenBy(PACKET),
    )
    .priority(7),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
