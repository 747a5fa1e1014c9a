//! `states`: thread states over time.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{THREAD_STATES, ThreadStateRow};

use super::{block, net};
use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View, WaitRows, Waits, WokenBy};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::States,
    about: "Thread states: running, runnable, sleeping, uninterruptible",
    examples: "\
  whyslow states web.wsl --comm 'apache*'       time in each state
  whyslow states top web.wsl --op uninterruptible
  whyslow states log web.wsl -t 31517",
    views: &[
        View::new(Verb::Usage, "Time in each state, by process", &STATES),
        View::new(Verb::Stats, "Count and duration by state", &STATES),
        View::new(Verb::Hist, "Duration histogram with percentiles", &STATES),
        View::new(Verb::Top, "The longest states", &STATES),
        View::new(Verb::Log, "States in chronological order", &STATES),
        View::new(
            Verb::Differs,
            "How selected states (-w, --min, …) differ from the others (--vs)",
            &STATES,
        ),
        View::new(Verb::Heat, "Duration over time", &STATES),
    ],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(crate) static STATES: Spec = Spec {
    kind: Kind::States,
    name: "states",
    rows: "states",
    table: ThreadStateRow::TABLE,
    only: &[],
    class: "state",
    classes: &THREAD_STATES,
    group: &[Key::State],
    series: &[Key::State],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "state",
    fields: FIELDS,
    hooks: Hooks {
        has_ends_alone: true,
        waits: Some(Waits {
            rows: WaitRows::States,
            views: Waits::OF_DURATIONS,
        }),
        class_rank: |state| {
            let rank = RANKS.iter().position(|ranked| *ranked == state);
            rank.unwrap_or(RANKS.len())
        },
        ..Hooks::NONE
    },
};

/// States in the order of an answer: first those in which a thread is held up.
const RANKS: [&str; 4] = ["uninterruptible", "runnable", "sleeping", "running"];

/// A completed device request.
pub(super) const REQUEST: WokenBy = WokenBy {
    causes: ["block_io", "worker"],
    id_prefix: block::ID_PREFIX,
};

/// A received packet.
pub(super) const PACKET: WokenBy = WokenBy {
    causes: ["packet", "received"],
    id_prefix: net::ID_PREFIX,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("state", "state", Measure::Text, Cell::Text("state")),
    Field::new("reason", "reason", Measure::Text, Cell::Text("reason")).priority(4),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("prio", "prio", Measure::Count, Cell::Int("prio")).priority(7),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(2),
    Field::new(
        "wake_context",
        "woken from",
        Measure::Text,
        Cell::Text("wake_context"),
    )
    .priority(5),
    Field::new("waker", "waker", Measure::Text, Cell::Thread("waker_utid")).priority(6),
    Field::new(
        "request",
        "woken by request",
        Measure::Id,
        Cell::WokenBy(REQUEST),
    )
    .priority(4),
    Field::new(
        "packet",
        "woken by packet",
        Measure::Id,
        Cell::WokenBy(PACKET),
    )
    .priority(7),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
