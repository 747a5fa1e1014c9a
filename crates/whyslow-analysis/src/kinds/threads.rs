//! `threads`: threads.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::ThreadRow;

use super::gaps::GAPS;
use super::stacks::STACKS;
use super::states::STATES;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Threads,
    about: "Threads, their states over time, and their stacks",
    examples: "\
  whyslow threads list web.wsl
  whyslow threads list kafka.jfr --by pool           are all request handlers busy?
  whyslow threads states web.wsl --comm 'apache*'
  whyslow threads dump kafka.jfr --at 13:05:21.3
  whyslow threads timeline kafka.jfr --threads 'handler-[0-9]+$' --match Log.append
  whyslow threads gaps kafka.jfr --min 200ms
  whyslow threads flame kafka.jfr -w 13:05:21~2s     where the time went, as text
  whyslow threads flame kafka.jfr -o flame.svg       for browsers; also .txt, .json (speedscope)
  whyslow threads flame kafka.jfr --chart -o chart.svg",
    views: &[
        View::new(
            Verb::List,
            "Threads with process, start and exit; --by pool: thread pools with utilisation",
            &THREADS,
        ),
        View::new(
            Verb::States,
            "Time in each state: running, runnable, sleeping, uninterruptible",
            &STATES,
        ),
        View::new(
            Verb::Timeline,
            "States over time, one letter per interval; for profiles, samples",
            &STATES,
        ),
        View::new(
            Verb::Dump,
            "Stacks of all threads at a point in time (--at), identical stacks grouped",
            &STACKS,
        ),
        View::new(
            Verb::Gaps,
            "Sampling gaps of threads in a wall-clock profile, with their cause",
            &GAPS,
        ),
        View::new(
            Verb::Flame,
            "Flame graph as text, or as an image (-o flame.svg)",
            &STACKS,
        ),
    ],
    default: None,
    is_main: true,
};

pub(crate) static THREADS: Spec = Spec {
    kind: Kind::Threads,
    name: "threads",
    rows: "threads",
    table: ThreadRow::TABLE,
    only: &[],
    class: "",
    classes: &[],
    group: &[],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: "thread",
    fields: &[
        Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
        Field::new("pid", "pid", Measure::Count, Cell::Int("pid")),
        Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
        Field::new("start_ns", "start", Measure::Time, Cell::Int("ts_start")).priority(3),
        Field::new("exit_ns", "exit", Measure::Time, Cell::Int("ts_exit")).priority(3),
        Field::new("kernel", "kernel", Measure::Text, Cell::Bool("is_kernel")).priority(6),
        Field::new("tracer", "tracer", Measure::Text, Cell::Bool("is_tracer")).priority(6),
    ],
    hooks: Hooks::NONE,
};
