//! `threads`: the threads themselves, and their slices of CPU time.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{SchedSliceRow, ThreadRow};

use super::{Cell, Field, Only, Spec};
use crate::query::Kind;

pub(crate) static THREADS: Spec = Spec {
    kind: Kind::Threads,
    name: "threads",
    rows: "threads",
    table: ThreadRow::TABLE,
    only: Only::Everything,
    class: "",
    classes: &[],
    group: &[],
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
};

pub(crate) static SLICES: Spec = Spec {
    name: "slices",
    rows: "slices of CPU time",
    table: SchedSliceRow::TABLE,
    lasting: false,
    id_prefix: "slice",
    fields: &[],
    ..THREADS
};
