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

use super::cover::Cover;
use super::{Spans, Spent, Times, Told, ratio};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, in_order};
use crate::keys::{Key, KeyValue};
use crate::kinds::{IRQ, SLICES, STATES};
use crate::losses;
use crate::pass::Summing;
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Projection, per_row, per_word};
use crate::sweep::Parts;

/// Sleeps are looked at only by those who want to know of iowait; idle time is then all there is.
pub(crate) fn table(
    context: &Context<'_>,
    wants_iowait: bool,
) -> Result<AnswerTable, AnalysisError> {
    let parts = Parts::of_question(context);
    let idle_irqs = idle_irqs(context, parts)?;
    let cpus_known = known(context)?;
    let covers = covers(context, &cpus_known, wants_iowait)?;
    let (slices, gaps) = slices(context, parts, covers)?;
    let mut unknown_all = 0;
    let by_time = context.interval.is_some();
    let told = Told::of(context);
    let mut table = AnswerTable::new("cpus", "CPUs", columns(by_time));
    let all: Vec<i64> = cpus_known.iter().map(|(cpu, _)| *cpu).collect();
    for part in 0..parts.count() {
        for cpu in &all {
            let spent = slices.get(cpu).and_then(|spans| spans.get(&(part as u32)));
            let spent = spent.copied().unwrap_or_default();
            let of_cpu = idle_irqs.get(cpu).and_then(|parts| parts.get(&part));
            let (hard, soft) = of_cpu.copied().unwrap_or_default();
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
                of(waited, wants_iowait),
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
    if wants_iowait {
        context.note(
            "iowait is idle time in which a thread that had last run on the CPU slept \
         uninterruptibly: which of these sleeps wait for I/O is not recorded"
                .into(),
        );
    }
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

/// Time of hard and soft handlers that interrupted nobody, by CPU and part.
type IdleIrqs = FxHashMap<i64, BTreeMap<usize, (Ns, Ns)>>;

fn idle_irqs(context: &Context<'_>, parts: Parts) -> Result<IdleIrqs, AnalysisError> {
    if !context.has(IRQ.table.name) {
        return Ok(IdleIrqs::default());
    }
    let all = Filter::default();
    let mut pass = context.pass_in(&IRQ, &[Key::Cpu], &all, context.selected())?;
    let handlers = Handlers {
        columns: ["ts", "self_ns", "utid"].map(|name| pass.projection.need(name)),
        kind: pass.projection.need("kind"),
        parts,
        recording_end: context.recording_end(),
    };
    let mut found = IdleIrqs::default();
    for (group, by_part) in pass.run(context.tables, &handlers)? {
        if let [KeyValue::Int(cpu)] = group.as_slice() {
            found.insert(*cpu, by_part);
        }
    }
    Ok(found)
}

struct Handlers {
    columns: [ColumnRef; 3],
    kind: ColumnRef,
    parts: Parts,
    recording_end: Ns,
}

impl Summing for Handlers {
    type Columns<'b> = ([Ints<'b>; 3], Vec<bool>);
    type Sum = BTreeMap<usize, (Ns, Ns)>;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let [ts, own, utid] = self.columns;
        let kind = self.kind.texts(batch)?;
        let is_soft = per_word(&kind, |kind| kind == "soft");
        let ints = [ts.ints(batch)?, own.ints(batch)?, utid.ints(batch)?];
        Ok((ints, per_row(&kind, &is_soft, false)))
    }

    fn add(&self, sum: &mut Self::Sum, ([ts, own, utid], is_soft): &Self::Columns<'_>, row: u32) {
        let begin = ts.at(row);
        let span = self.parts.span;
        // Windows are open at their end, but the recording's last event is part of it.
        let is_last = begin == span.end && begin == self.recording_end;
        if utid.get(row).is_some() || !(span.contains(begin) || is_last) {
            return;
        }
        let time = sum.entry(self.parts.of(begin)).or_default();
        if is_soft[row as usize] {
            time.1 += own.or_zero(row);
        } else {
            time.0 += own.or_zero(row);
        }
    }

    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum) {
        for (part, (hard, soft)) in other {
            let time = sum.entry(part).or_default();
            time.0 += hard;
            time.1 += soft;
        }
    }
}

/// Of what a CPU did not run, what is not idle for sure.
#[derive(Debug, Default)]
struct Covers {
    /// Nobody can tell who ran.
    unknown: Cover,
    /// A thread slept uninterruptibly that had last run there.
    waited: Cover,
}

fn covers(
    context: &Context<'_>,
    cpus: &[(i64, Ns)],
    wants_iowait: bool,
) -> Result<BTreeMap<i64, Covers>, AnalysisError> {
    let mut unknown_by_cpu: BTreeMap<i64, Vec<(Ns, Ns)>> = BTreeMap::new();
    for (cpu, from, to) in unknown(context, cpus)? {
        unknown_by_cpu.entry(cpu).or_default().push((from, to));
    }
    let mut sleeps = if wants_iowait {
        sleeps(context)?
    } else {
        BTreeMap::new()
    };
    let cover = |(cpu, _): &(i64, Ns)| {
        let of = |by_cpu: &mut BTreeMap<i64, Vec<(Ns, Ns)>>| {
            Cover::union(by_cpu.remove(cpu).unwrap_or_default())
        };
        let unknown = of(&mut unknown_by_cpu);
        let waited = of(&mut sleeps).without(&unknown);
        (*cpu, Covers { unknown, waited })
    };
    Ok(cpus.iter().map(cover).collect())
}

/// What a CPU did, and what of the time that is covered otherwise it ran nevertheless: slices of a
/// CPU do not overlap, so what is left of a cover is the rest.
#[derive(Debug, Default)]
struct OfCpu {
    spans: Spans,
    /// Place of the CPU in the list of covers, and where the last slice was found in each of them.
    place: Option<usize>,
    near: [usize; 2],
}

struct OnCpus {
    times: Times,
    covers: Vec<(i64, Covers)>,
}

impl Summing for OnCpus {
    type Columns<'b> = <Times as Summing>::Columns<'b>;
    type Sum = OfCpu;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        self.times.columns(batch, first)
    }

    fn start(&self, group: &dyn Fn() -> Vec<KeyValue>) -> OfCpu {
        let place = match group().as_slice() {
            [KeyValue::Int(cpu)] => self.covers.iter().position(|(of, _)| of == cpu),
            _ => None,
        };
        OfCpu {
            place,
            ..OfCpu::default()
        }
    }

    fn add(&self, sum: &mut OfCpu, columns: &Self::Columns<'_>, row: u32) {
        self.times.add(&mut sum.spans, columns, row);
        let Some((_, covers)) = sum.place.and_then(|place| self.covers.get(place)) else {
            return;
        };
        let slice = self.times.slice(columns, row);
        let parts = self.times.parts;
        let spans = &mut sum.spans;
        let [near_unknown, near_waited] = &mut sum.near;
        covers.unknown.within(slice, near_unknown, |from, to| {
            for piece in parts.pieces(from, to) {
                spans.at(piece.part as u32).while_unknown += piece.length;
            }
        });
        covers.waited.within(slice, near_waited, |from, to| {
            for piece in parts.pieces(from, to) {
                spans.at(piece.part as u32).while_waited += piece.length;
            }
        });
    }

    fn merge(&self, sum: &mut OfCpu, other: OfCpu) {
        self.times.merge(&mut sum.spans, other.spans);
    }
}

type ByPart = FxHashMap<u32, Spent>;

/// What each CPU ran, and what of its time no slice tells of.
type Slices = (BTreeMap<i64, ByPart>, BTreeMap<i64, Vec<Gap>>);

fn slices(
    context: &Context<'_>,
    parts: Parts,
    covers: BTreeMap<i64, Covers>,
) -> Result<Slices, AnalysisError> {
    let mut pass = context.pass(&SLICES, &[Key::Cpu])?;
    let on_cpus = OnCpus {
        times: Times::new(context, parts, &mut pass),
        covers: covers.into_iter().collect(),
    };
    let mut slices: BTreeMap<i64, ByPart> = BTreeMap::new();
    for (group, of_cpu) in pass.run(context.tables, &on_cpus)? {
        if let [KeyValue::Int(cpu)] = group.as_slice() {
            slices.insert(*cpu, of_cpu.spans.0.into_iter().collect());
        }
    }
    let gaps = on_cpus.covers.iter().map(|(cpu, covers)| {
        let mut gaps = vec![Gap::default(); parts.count()];
        for (from, to) in covers.unknown.stretches() {
            for piece in parts.pieces(from, to) {
                gaps[piece.part].unknown += piece.length;
            }
        }
        for (from, to) in covers.waited.stretches() {
            for piece in parts.pieces(from, to) {
                gaps[piece.part].waited += piece.length;
            }
        }
        for (part, spent) in slices.get(cpu).into_iter().flatten() {
            let gap = &mut gaps[*part as usize];
            gap.unknown -= spent.while_unknown;
            gap.waited -= spent.while_waited;
        }
        (*cpu, gaps)
    });
    let gaps = gaps.collect();
    Ok((slices, gaps))
}

/// Time of a CPU in which no slice tells who ran.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    /// Nobody can tell.
    unknown: Ns,
    /// Nothing ran, though a thread that had last run there slept uninterruptibly.
    waited: Ns,
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

/// Uninterruptible sleeps by the CPU where the thread had run; those that touch each other are one.
fn sleeps(context: &Context<'_>) -> Result<BTreeMap<i64, Vec<(Ns, Ns)>>, AnalysisError> {
    let uninterruptible = Filter {
        ops: vec!["uninterruptible".into()],
        ..Filter::default()
    };
    let mut pass = context.pass_in(&STATES, &[Key::Cpu], &uninterruptible, context.selected())?;
    let sleeps = Sleeps {
        columns: ["ts", "ts_end"].map(|name| pass.projection.need(name)),
        recording_end: context.recording_end(),
    };
    let mut found = BTreeMap::new();
    for (group, Slept(intervals)) in pass.run(context.tables, &sleeps)? {
        if let [KeyValue::Int(cpu)] = group.as_slice() {
            found.insert(*cpu, intervals);
        }
    }
    Ok(found)
}

struct Sleeps {
    columns: [ColumnRef; 2],
    recording_end: Ns,
}

#[derive(Debug, Default)]
struct Slept(Vec<(Ns, Ns)>);

impl Summing for Sleeps {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = Slept;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        let [ts, ts_end] = self.columns;
        Ok([ts.ints(batch)?, ts_end.ints(batch)?])
    }

    fn add(&self, Slept(intervals): &mut Slept, [ts, ts_end]: &[Ints<'_>; 2], row: u32) {
        let from = ts.at(row);
        let to = ts_end.get(row).unwrap_or(self.recording_end);
        match intervals.last_mut() {
            Some((begin, reached)) if *begin <= from && from <= *reached => {
                *reached = to.max(*reached);
            }
            _ => intervals.push((from, to)),
        }
    }

    fn merge(&self, Slept(intervals): &mut Slept, other: Slept) {
        intervals.extend(other.0);
    }
}
