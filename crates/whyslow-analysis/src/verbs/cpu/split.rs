//! How each CPU spent its time, in the terms of top and mpstat.
//!
//! User, nice and system time are those of the slices. Interrupts count where they happened, be it
//! in a thread or on an idle CPU. Idle time is what is left, and as the kernel does it, a part of it
//! is called iowait: that in which a thread slept uninterruptibly that had last run on the CPU. The
//! kernel counts only sleeps it knows to wait for I/O, which a trace does not tell, so this may be
//! more. Time stolen by a hypervisor is not recorded.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::{Spans, Spent, Times, Told, ratio};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::keys::{Key, KeyValue};
use crate::kinds::{IRQ, SLICES, STATES};
use crate::query::Filter;
use crate::scan::Projection;
use crate::sweep::{InFlight, Parts};

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let parts = Parts::of_question(context);
    let cpus = &context.question.filter.cpus;
    let slices = slices(context, parts)?;
    let idle_irqs = idle_irqs(context, parts)?;
    let iowait = iowait(context, parts)?;
    let by_time = context.interval.is_some();
    let told = Told::of(context);
    let mut table = AnswerTable::new("cpus", "CPUs", columns(by_time));
    let mut all: Vec<i64> = known(context)?;
    all.retain(|cpu| cpus.is_empty() || cpus.iter().any(|wanted| i64::from(*wanted) == *cpu));
    for part in 0..parts.count() {
        for cpu in &all {
            let spent = slices.get(cpu).and_then(|spans| spans.get(&(part as u32)));
            let spent = spent.copied().unwrap_or_default();
            let (hard, soft) = idle_irqs.get(&(*cpu, part)).copied().unwrap_or_default();
            let waited = iowait.get(cpu).map_or(0, |waited| waited[part]);
            let length = parts.length(part);
            let idle = (length - spent.busy - hard - soft).max(0);
            let waited = waited.min(idle);
            let mut row = Vec::with_capacity(table.columns.len());
            if by_time {
                row.push(parts.begin(part).into());
            }
            let of = |time: Ns, told: bool| {
                if told {
                    ratio(time, length)
                } else {
                    Value::Null
                }
            };
            row.extend([
                (*cpu).into(),
                of(spent.user, told.calls),
                of(spent.nice, told.calls),
                of(spent.system, told.calls),
                of(waited, true),
                of(spent.hardirq + hard, told.irqs),
                of(spent.softirq + soft, told.irqs),
                Value::Null,
                of(idle - waited, true),
                of(spent.busy, true),
                spent.busy.into(),
            ]);
            table.rows.push(row);
        }
    }
    context.note(
        "iowait is idle time in which a thread that had last run on the CPU slept \
         uninterruptibly: which of these sleeps wait for I/O is not recorded"
            .into(),
    );
    context.finish(&mut table, usize::MAX);
    Ok(table)
}

fn columns(by_time: bool) -> Vec<AnswerColumn> {
    let ratio = |name, title| AnswerColumn::new(name, title, Measure::Ratio);
    let mut columns = Vec::new();
    if by_time {
        columns.push(AnswerColumn::new("ts_ns", "time", Measure::Time));
    }
    columns.extend([
        AnswerColumn::new("cpu", "cpu", Measure::Count),
        ratio("user_ratio", "% us"),
        ratio("nice_ratio", "% ni").priority(3),
        ratio("system_ratio", "% sy"),
        ratio("iowait_ratio", "% wa"),
        ratio("hardirq_ratio", "% hi"),
        ratio("softirq_ratio", "% si"),
        ratio("steal_ratio", "% st").priority(4),
        ratio("idle_ratio", "% id"),
        ratio("busy_ratio", "% busy").priority(2),
        AnswerColumn::new("busy_ns", "busy", Measure::Duration).priority(5),
    ]);
    columns
}

/// CPUs that the recording knows.
fn known(context: &Context<'_>) -> Result<Vec<i64>, AnalysisError> {
    use whyslow_model::row::Row;
    use whyslow_model::tables::CpuRow;
    let mut projection = Projection::new(CpuRow::TABLE);
    let cpu = projection.need("cpu");
    let mut cpus = Vec::new();
    in_order(context.tables, &projection.scan(None), |batch| {
        let cpu = cpu.ints(batch)?;
        cpus.extend((0..batch.num_rows() as u32).map(|row| cpu.at(row)));
        Ok(ControlFlow::Continue(()))
    })?;
    cpus.sort_unstable();
    Ok(cpus)
}

type ByPart = FxHashMap<u32, Spent>;

fn slices(context: &Context<'_>, parts: Parts) -> Result<BTreeMap<i64, ByPart>, AnalysisError> {
    let mut pass = context.pass(&SLICES, &[Key::Cpu])?;
    let times = Times::new(context, parts, &mut pass);
    let mut slices = BTreeMap::new();
    for (group, Spans(spans)) in pass.run(context.tables, &times)? {
        if let [KeyValue::Int(cpu)] = group.as_slice() {
            slices.insert(*cpu, spans.into_iter().collect());
        }
    }
    Ok(slices)
}

/// Time of hard and soft handlers that interrupted nobody.
type IdleIrqs = FxHashMap<(i64, usize), (Ns, Ns)>;

fn idle_irqs(context: &Context<'_>, parts: Parts) -> Result<IdleIrqs, AnalysisError> {
    let mut found = IdleIrqs::default();
    if !context.has(IRQ.table.name) {
        return Ok(found);
    }
    let mut projection = Projection::new(IRQ.table);
    let [ts, cpu, own, utid] = ["ts", "cpu", "self_ns", "utid"].map(|name| projection.need(name));
    let kind = projection.need("kind");
    in_order(
        context.tables,
        &projection.scan(context.selected()),
        |batch| {
            let (ts, cpu, own) = (ts.ints(batch)?, cpu.ints(batch)?, own.ints(batch)?);
            let (utid, kind) = (utid.ints(batch)?, kind.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let (begin, own) = (ts.at(row), own.or_zero(row));
                let inside = context.span.contains(begin) || begin == context.span.end;
                if utid.get(row).is_none() && inside {
                    let time = found.entry((cpu.at(row), parts.of(begin))).or_default();
                    if kind.get(row) == Some("soft") {
                        time.1 += own;
                    } else {
                        time.0 += own;
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// Per CPU and part the time in which nothing ran there though a thread that had last run there
/// slept uninterruptibly: the union of both less that of the slices.
fn iowait(context: &Context<'_>, parts: Parts) -> Result<BTreeMap<i64, Vec<Ns>>, AnalysisError> {
    let mut sleeps = sleeps(context)?;
    let mut both: BTreeMap<i64, (InFlight, InFlight)> = BTreeMap::new();
    let new = || (InFlight::new(parts), InFlight::new(parts));
    let mut projection = Projection::new(SLICES.table);
    let [ts, ts_end, cpu] = ["ts", "ts_end", "cpu"].map(|name| projection.need(name));
    in_order(
        context.tables,
        &projection.scan(context.selected()),
        |batch| {
            let (ts, ts_end, cpu) = (ts.ints(batch)?, ts_end.ints(batch)?, cpu.ints(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let (begin, cpu) = (ts.at(row), cpu.at(row));
                let end = ts_end.get(row).unwrap_or(context.recording_end());
                let (either, running) = both.entry(cpu).or_insert_with(new);
                if let Some(sleeps) = sleeps.get_mut(&cpu) {
                    while let Some((from, to)) = sleeps.next_if(|(from, _)| *from <= begin) {
                        either.add(from, to);
                    }
                }
                either.add(begin, end);
                running.add(begin, end);
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for (cpu, rest) in sleeps {
        let (either, _) = both.entry(cpu).or_insert_with(new);
        rest.for_each(|(from, to)| either.add(from, to));
    }
    let waited = both.into_iter().map(|(cpu, (either, running))| {
        let pairs = either.busy().iter().zip(running.busy());
        (
            cpu,
            pairs.map(|(either, running)| either - running).collect(),
        )
    });
    Ok(waited.collect())
}

type Sleeps = std::iter::Peekable<std::vec::IntoIter<(Ns, Ns)>>;

/// Uninterruptible sleeps by the CPU where the thread had run, in order of begin; those that touch
/// each other are one.
fn sleeps(context: &Context<'_>) -> Result<BTreeMap<i64, Sleeps>, AnalysisError> {
    let uninterruptible = Filter {
        ops: vec!["uninterruptible".into()],
        ..Filter::default()
    };
    let mut pass = context.pass_in(&STATES, &[], &uninterruptible, context.selected())?;
    let [ts, ts_end, cpu] = ["ts", "ts_end", "cpu"].map(|name| pass.projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut found: BTreeMap<i64, Vec<(Ns, Ns)>> = BTreeMap::new();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            let (ts, ts_end, cpu) = (ts.ints(batch)?, ts_end.ints(batch)?, cpu.ints(batch)?);
            for row in rows.iter().copied() {
                let Some(cpu) = cpu.get(row) else { continue };
                let (from, to) = (ts.at(row), ts_end.get(row));
                let to = to.unwrap_or(context.recording_end());
                let of_cpu = found.entry(cpu).or_default();
                match of_cpu.last_mut() {
                    Some((_, reached)) if from <= *reached => *reached = to.max(*reached),
                    _ => of_cpu.push((from, to)),
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let found = found.into_iter();
    Ok(found
        .map(|(cpu, sleeps)| (cpu, sleeps.into_iter().peekable()))
        .collect())
}
