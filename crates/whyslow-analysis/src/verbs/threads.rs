//! `threads list`: threads with CPU time, I/O and system calls inside the window.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::{Ns, Window};

use super::usage::{self, UsageSum};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::fold::in_order;
use crate::keys::{Key, KeyValue};
use crate::kinds::{SLICES, SYSCALLS, THREADS};
use crate::owners::ProcessName;
use crate::pass::{Summing, Unordered};
use crate::query::Filter;
use crate::rows::Cells;
use crate::scan::{ColumnRef, Ints};
use crate::spec::Field;

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let filter = &context.query.filter;
    let has_calls = context.has(SYSCALLS.table.name);
    let calls = by_thread(usage::sums(context, &SYSCALLS, &[Key::Thread])?);
    let cpu = if context.has(SLICES.table.name) {
        Some(by_thread(cpu_times(context, filter)?))
    } else {
        None
    };
    let time_of = |utid: i64| cpu.as_ref().map(|cpu| cpu.get(&utid).copied().unwrap_or(0));
    let mut threads = threads(context)?;
    threads.sort_by_cached_key(|thread| {
        let time = time_of(thread.utid).unwrap_or(0);
        let bytes = calls.get(&thread.utid).map_or(0, UsageSum::bytes);
        (std::cmp::Reverse((time, bytes)), thread.utid)
    });

    let mut table = AnswerTable::new("threads", "threads", columns());
    let length = context.span.length() as f64;
    for thread in threads {
        let time = time_of(thread.utid);
        let sum = calls.get(&thread.utid).copied().unwrap_or_default();
        let known = |value: i64| {
            if has_calls {
                Value::Int(value)
            } else {
                Value::Null
            }
        };
        let mut row = thread.cells;
        row.insert(3, context.names.command(thread.upid).into());
        row.push(time.into());
        row.push(
            time.filter(|_| length > 0.0)
                .map(|ns| ns as f64 / length)
                .into(),
        );
        row.push(known(sum.read));
        row.push(known(sum.written));
        row.push(known(sum.calls));
        let process = thread.upid.and_then(|upid| context.names.process(upid));
        let of_process = |text: fn(&ProcessName) -> &Option<String>| {
            process.and_then(|process| text(process).clone()).into()
        };
        row.push(of_process(|process| &process.user));
        row.push(of_process(|process| &process.cgroup));
        row.push(of_process(|process| &process.container));
        row.push(process.and_then(|process| process.uid).into());
        let parent = thread.upid.and_then(|upid| context.names.parent(upid));
        row.push(parent.into());
        table.rows.push(row);
    }
    context.finish(&mut table, context.limit(0));
    Ok(table)
}

fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = THREADS.fields.iter().map(Field::answer_column).collect();
    columns.insert(3, column("command", "command", Measure::Text).priority(4));
    columns.extend([
        column("cpu_ns", "CPU time", Measure::Duration),
        column("cpu_ratio", "% CPU", Measure::Ratio).priority(1),
        column("read_bytes", "read", Measure::Bytes),
        column("write_bytes", "written", Measure::Bytes),
        column("syscalls", "syscalls", Measure::Count).priority(2),
        column("user", "user", Measure::Text).priority(5),
        column("cgroup", "control group", Measure::Text).priority(7),
        column("container", "container", Measure::Text).priority(8),
        column("uid", "uid", Measure::Count).priority(9),
        column("parent", "parent", Measure::Text).priority(6),
    ]);
    columns
}

struct Thread {
    utid: i64,
    upid: Option<i64>,
    cells: Vec<Value>,
}

/// Threads that existed inside the window.
fn threads(context: &Context<'_>) -> Result<Vec<Thread>, AnalysisError> {
    let filter = &context.query.filter;
    let mut pass = context.pass_in(&THREADS, &[], filter, None)?;
    let cells = Cells::new(
        &THREADS,
        THREADS.fields,
        &context.names,
        &mut pass.projection,
    );
    let projection = &mut pass.projection;
    let [utid, upid] = ["utid", "upid"].map(|name| projection.need(name));
    let [start, exit] = ["ts_start", "ts_exit"].map(|name| projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut threads = Vec::new();
    in_order(context.tables, &pass.projection.scan(None), |batch| {
        pass.selector.select(&mut verdicts, batch, &mut rows)?;
        let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
        let (start, exit) = (start.ints(batch)?, exit.ints(batch)?);
        if let Some(window) = context.selected() {
            rows.retain(|row| {
                start.get(*row).is_none_or(|start| start < window.end)
                    && exit.get(*row).is_none_or(|exit| exit > window.begin)
            });
        }
        for (row, cells) in rows.iter().zip(cells.read(batch, &rows)?) {
            threads.push(Thread {
                utid: utid.at(*row),
                upid: upid.get(*row),
                cells,
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(threads)
}

/// Sums by thread.
fn by_thread<S>(sums: Unordered<S>) -> FxHashMap<i64, S> {
    let of = |(group, sum): (Vec<KeyValue>, S)| match group.first() {
        Some(KeyValue::Int(utid)) => Some((*utid, sum)),
        _ => None,
    };
    sums.into_iter().filter_map(of).collect()
}

fn cpu_times(context: &Context<'_>, filter: &Filter) -> Result<Unordered<Ns>, AnalysisError> {
    let mut pass = context.pass_with_cut(&SLICES, &[Key::Thread], filter)?;
    let inside = Inside {
        span: context.span,
        recording_end: context.recording_end(),
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
    };
    let groupings = std::slice::from_ref(&pass.grouping);
    let groups = pass.run_by(context.tables, &inside, groupings)?.pop();
    Ok(groups.unwrap_or_default())
}

/// Time inside the window.
struct Inside {
    span: Window,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
}

impl Summing for Inside {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = Ns;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        Ok([self.ts.ints(batch)?, self.ts_end.ints(batch)?])
    }

    fn add(&self, sum: &mut Ns, [ts, ts_end]: &[Ints<'_>; 2], row: u32) {
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        *sum += (end.min(self.span.end) - ts.at(row).max(self.span.begin)).max(0);
    }

    fn merge(&self, sum: &mut Ns, other: Ns) {
        *sum += other;
    }
}
