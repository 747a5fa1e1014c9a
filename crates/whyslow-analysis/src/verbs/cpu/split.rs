//! How each CPU spent its time, in the terms of top and mpstat.
//!
//! User, nice and system time are those of the slices. Interrupts count where they happened, be it
//! in a thread or on an idle CPU. Idle time is what is left, and as the kernel does it, a part of it
//! is called iowait: that in which a thread slept uninterruptibly that had last run on the CPU. The
//! kernel counts only sleeps it knows to wait for I/O, which a trace does not tell, so this may be
//! more. Time stolen by a hypervisor is not recorded.
//!
//! Before a CPU's first event, and where events were lost, nobody knows who ran unless a slice tells:
//! that time is neither busy nor idle, and shares are those of the rest.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::{Spans, Spent, Times, Told, ratio};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{fold, in_order};
use crate::keys::{Key, KeyValue};
use crate::kinds::{IRQ, SLICES, STATES};
use crate::losses;
use crate::query::Filter;
use crate::scan::{Projection, per_word};
use crate::sweep::{InFlight, Parts};

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let parts = Parts::of_question(context);
    let slices = slices(context, parts)?;
    let idle_irqs = idle_irqs(context, parts)?;
    let cpus_known = known(context)?;
    let gaps = gaps(context, parts, &cpus_known)?;
    let mut unknown_all = 0;
    let by_time = context.interval.is_some();
    let told = Told::of(context);
    let mut table = AnswerTable::new("cpus", "CPUs", columns(by_time));
    let all: Vec<i64> = cpus_known.iter().map(|(cpu, _)| *cpu).collect();
    for part in 0..parts.count() {
        for cpu in &all {
            let spent = slices.get(cpu).and_then(|spans| spans.get(&(part as u32)));
            let spent = spent.copied().unwrap_or_default();
            let (hard, soft) = idle_irqs.get(&(*cpu, part)).copied().unwrap_or_default();
            let gap = gaps.get(cpu).map(|gaps| gaps[part]).unwrap_or_default();
            unknown_all += gap.unknown;
            let length = parts.length(part) - gap.unknown;
            let idle = (length - spent.busy - hard - soft).max(0);
            let waited = gap.waited.min(idle);
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
    if unknown_all > 0 {
        context.note(format!(
            "who ran is not known for {} s of CPU time, before a CPU's first event or where events \
             were lost: shares of CPUs are those of the rest",
            unknown_all as f64 / 1e9
        ));
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

/// CPUs that the recording knows, of those asked for, and when their first events were.
fn known(context: &Context<'_>) -> Result<Vec<(i64, Ns)>, AnalysisError> {
    use whyslow_model::row::Row;
    use whyslow_model::tables::CpuRow;
    let mut projection = Projection::new(CpuRow::TABLE);
    let [cpu, first] = ["cpu", "ts_first"].map(|name| projection.need(name));
    let mut cpus = Vec::new();
    in_order(context.tables, &projection.scan(None), |batch| {
        let (cpu, first) = (cpu.ints(batch)?, first.ints(batch)?);
        cpus.extend((0..batch.num_rows() as u32).map(|row| (cpu.at(row), first.at(row))));
        Ok(ControlFlow::Continue(()))
    })?;
    let asked = &context.question.filter.cpus;
    cpus.retain(|(cpu, _)| asked.is_empty() || asked.iter().any(|asked| i64::from(*asked) == *cpu));
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
    if !context.has(IRQ.table.name) {
        return Ok(IdleIrqs::default());
    }
    let mut projection = Projection::new(IRQ.table);
    let [ts, cpu, own, utid] = ["ts", "cpu", "self_ns", "utid"].map(|name| projection.need(name));
    let kind = projection.need("kind");
    let (span, recording_end) = (context.span, context.recording_end());
    let each = |found: &mut IdleIrqs, batch: &RecordBatch, _| {
        let (ts, cpu, own) = (ts.ints(batch)?, cpu.ints(batch)?, own.ints(batch)?);
        let (utid, kind) = (utid.ints(batch)?, kind.texts(batch)?);
        let is_soft = per_word(&kind, |kind| kind == "soft");
        for row in 0..batch.num_rows() as u32 {
            let (begin, own) = (ts.at(row), own.or_zero(row));
            // Windows are open at their end, but the recording's last event is part of it.
            let is_last = begin == span.end && begin == recording_end;
            let inside = span.contains(begin) || is_last;
            if utid.get(row).is_none() && inside {
                let time = found.entry((cpu.at(row), parts.of(begin))).or_default();
                if kind.key(row).is_some_and(|kind| is_soft[kind]) {
                    time.1 += own;
                } else {
                    time.0 += own;
                }
            }
        }
        Ok(())
    };
    let merge = |found: &mut IdleIrqs, more: IdleIrqs| {
        for (place, (hard, soft)) in more {
            let time = found.entry(place).or_default();
            time.0 += hard;
            time.1 += soft;
        }
    };
    let scan = projection.scan(context.selected());
    fold(context.tables, &scan, IdleIrqs::default, each, merge)
}

/// Time of a CPU in which no slice tells who ran.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    /// Nobody can tell.
    unknown: Ns,
    /// Nothing ran, though a thread that had last run there slept uninterruptibly.
    waited: Ns,
}

/// Unions of what covers a CPU's time, each of more than the one before.
struct Covered {
    running: InFlight,
    /// Running or unknown.
    doubted: InFlight,
    /// That or waited for.
    all: InFlight,
}

impl Covered {
    fn new(parts: Parts) -> Self {
        let new = || InFlight::new(parts);
        Self {
            running: new(),
            doubted: new(),
            all: new(),
        }
    }

    fn add(&mut self, (from, to, cover): (Ns, Ns, Cover)) {
        if cover == Cover::Running {
            self.running.add(from, to);
        }
        if cover != Cover::Waited {
            self.doubted.add(from, to);
        }
        self.all.add(from, to);
    }

    fn gaps(&self) -> Vec<Gap> {
        let (running, doubted) = (self.running.busy(), self.doubted.busy());
        let parts = running.iter().zip(doubted).zip(self.all.busy());
        parts
            .map(|((running, doubted), all)| Gap {
                unknown: doubted - running,
                waited: all - doubted,
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    Running,
    Unknown,
    Waited,
}

/// By CPU and part.
fn gaps(
    context: &Context<'_>,
    parts: Parts,
    cpus: &[(i64, Ns)],
) -> Result<BTreeMap<i64, Vec<Gap>>, AnalysisError> {
    let mut others = sleeps(context)?;
    for (cpu, from, to) in unknown(context, cpus)? {
        let of_cpu = others.entry(cpu).or_default();
        of_cpu.push((from, to, Cover::Unknown));
    }
    let mut others: BTreeMap<i64, _> = others
        .into_iter()
        .map(|(cpu, mut covers)| {
            covers.sort_by_key(|(from, _, _)| *from);
            (cpu, covers.into_iter().peekable())
        })
        .collect();
    let mut covered: BTreeMap<i64, Covered> = BTreeMap::new();
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
                let of_cpu = covered.entry(cpu).or_insert_with(|| Covered::new(parts));
                if let Some(others) = others.get_mut(&cpu) {
                    while let Some(cover) = others.next_if(|(from, _, _)| *from <= begin) {
                        of_cpu.add(cover);
                    }
                }
                of_cpu.add((begin, end, Cover::Running));
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for (cpu, rest) in others {
        let of_cpu = covered.entry(cpu).or_insert_with(|| Covered::new(parts));
        rest.for_each(|cover| of_cpu.add(cover));
    }
    let gaps = covered.iter().map(|(cpu, covered)| (*cpu, covered.gaps()));
    Ok(gaps.collect())
}

/// CPU and interval: before its first event, and where events of it were lost.
fn unknown(context: &Context<'_>, cpus: &[(i64, Ns)]) -> Result<Vec<(i64, Ns, Ns)>, AnalysisError> {
    let begin = context.tables.info().begin_ns;
    let before = cpus.iter().map(|(cpu, first)| (*cpu, begin, *first));
    let mut unknown: Vec<_> = before.collect();
    for loss in losses::inside(context)? {
        let end = loss.end.unwrap_or(context.recording_end());
        let of = |cpu: i64| loss.cpu.is_none_or(|lost| i64::from(lost) == cpu);
        let concerned = cpus.iter().filter(|(cpu, _)| of(*cpu));
        unknown.extend(concerned.map(|(cpu, _)| (*cpu, loss.begin, end)));
    }
    Ok(unknown)
}

type Covers = Vec<(Ns, Ns, Cover)>;

/// Uninterruptible sleeps by the CPU where the thread had run, in order of begin; those that touch
/// each other are one.
fn sleeps(context: &Context<'_>) -> Result<BTreeMap<i64, Covers>, AnalysisError> {
    let uninterruptible = Filter {
        ops: vec!["uninterruptible".into()],
        ..Filter::default()
    };
    let mut pass = context.pass_in(&STATES, &[], &uninterruptible, context.selected())?;
    let [ts, ts_end, cpu] = ["ts", "ts_end", "cpu"].map(|name| pass.projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut found: BTreeMap<i64, Covers> = BTreeMap::new();
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
                    Some((_, reached, _)) if from <= *reached => *reached = to.max(*reached),
                    _ => of_cpu.push((from, to, Cover::Waited)),
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}
