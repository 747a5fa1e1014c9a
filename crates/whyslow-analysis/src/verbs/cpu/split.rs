//! CPU time by state, in the terms of top and mpstat.
//!
//! User, nice and system time are from slices. Interrupts count where they occurred, in a thread or
//! on an idle CPU. The rest is idle time. Part of it is called iowait, as in the kernel: the time
//! in which a thread that had last run on the CPU slept uninterruptibly. The kernel only counts
//! sleeps that wait for I/O, which a trace does not identify, so this value may be higher. Steal
//! time is not recorded.
//!
//! Before a CPU's first event, and where events were lost, it is unknown what ran unless a slice
//! shows it: that time is neither busy nor idle, and shares refer to the rest.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::gaps::{self, Covers, OnCpus, Sleeps};
use super::handlers::{self, IdleIrqs};
use super::{Recorded, Spans, Spent, Times, ratio};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::grouping::{Grouping, Object};
use crate::keys::{Key, KeyValue};
use crate::kinds::SLICES;
use crate::pass::Unordered;
use crate::scan::Projection;
use crate::sweep::Parts;

/// Input of the table in addition to slices.
pub(super) struct Split {
    parts: Parts,
    idle_irqs: IdleIrqs,
    covers: Vec<(i64, Covers)>,
}

impl Split {
    pub(super) fn of(context: &Context<'_>) -> Result<Self, AnalysisError> {
        let parts = Parts::of_query(context);
        let cpus = known(context)?;
        let (idle_irqs, covers) = context.both(
            |context| handlers::idle_irqs(context, parts),
            |context| gaps::covers(context, &cpus, Sleeps::Counted),
        )?;
        Ok(Self {
            parts,
            idle_irqs,
            covers,
        })
    }

    pub(super) fn table(&self, context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
        let [on_cpus] = self.slices(context, [&[Key::Cpu]])?;
        Ok(self.table_of(context, on_cpus))
    }

    /// Time of slices by lists of keys, in one scan; the first list has to be by CPU.
    pub(super) fn slices<const N: usize>(
        &self,
        context: &Context<'_>,
        by: [&[Key]; N],
    ) -> Result<[Unordered<Spans>; N], AnalysisError> {
        let mut pass = context.pass_with_cut(&SLICES, &[], &context.query.filter)?;
        let first = Object::First;
        let groupings = by.map(|keys| {
            Grouping::new(&SLICES, (keys, first), &context.names, &mut pass.projection)
        });
        let times = Times::new(context, self.parts, &mut pass);
        let on_cpus = OnCpus::new(times, &self.covers);
        let mut found = pass
            .run_by(context.tables, &on_cpus, &groupings)?
            .into_iter();
        Ok(by.map(|_| {
            let groups = found.next().into_iter().flatten();
            groups.map(|(group, of)| (group, of.spans)).collect()
        }))
    }

    pub(super) fn table_of(&self, context: &Context<'_>, on_cpus: Unordered<Spans>) -> AnswerTable {
        let mut slices: FxHashMap<i64, FxHashMap<u32, Spent>> = FxHashMap::default();
        for (group, spans) in on_cpus {
            if let [KeyValue::Int(cpu)] = group.as_slice() {
                slices.insert(*cpu, spans.into_parts().into_iter().collect());
            }
        }
        let (parts, recorded) = (self.parts, Recorded::of(context));
        let by_time = context.interval.is_some();
        let mut table = AnswerTable::new("cpus", "CPUs", columns(by_time));
        let mut unknown_all = 0;
        for part in 0..parts.count() {
            for (cpu, covers) in &self.covers {
                let spent = slices.get(cpu).and_then(|spans| spans.get(&(part as u32)));
                let spent = spent.copied().unwrap_or_default();
                let irqs = self
                    .idle_irqs
                    .get(cpu)
                    .and_then(|parts| parts.get(&(part as u32)));
                let gap = covers.gap(part, &spent);
                unknown_all += gap.unknown;
                let mut row = Vec::with_capacity(table.columns.len());
                if by_time {
                    row.push(parts.begin(part).into());
                }
                row.push((*cpu).into());
                let known = parts.length(part) - gap.unknown;
                let irqs = irqs.copied().unwrap_or_default();
                row.extend(shares(&spent, irqs, (known, gap.waited), recorded));
                table.rows.push(row);
            }
        }
        note_unknown(context, unknown_all);
        context.note(
            "iowait is idle time in which a thread that last ran on the CPU slept \
             uninterruptibly; whether it waited for I/O is not recorded"
                .into(),
        );
        context.finish(&mut table, usize::MAX);
        table
    }
}

/// Shares of the `known` time.
fn shares(
    spent: &Spent,
    (hard, soft): (Ns, Ns),
    (known, waited): (Ns, Ns),
    recorded: Recorded,
) -> [Value; 10] {
    let idle = (known - spent.busy - hard - soft).max(0);
    let waited = waited.min(idle);
    let of = |time: Ns, is_known: bool| {
        if is_known {
            ratio(time, known)
        } else {
            Value::Null
        }
    };
    [
        of(spent.user, recorded.calls),
        of(spent.nice, recorded.calls),
        of(spent.system, recorded.calls),
        of(waited, true),
        of(spent.hardirq + hard, recorded.irqs),
        of(spent.softirq + soft, recorded.irqs),
        Value::Null,
        of(idle - waited, true),
        of(spent.busy, true),
        spent.busy.into(),
    ]
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

pub(super) fn note_unknown(context: &Context<'_>, unknown: Ns) {
    if unknown > 0 {
        context.note(format!(
            "the running thread is unknown for {} s of CPU time, before a CPU's first event or \
             where events were lost; CPU shares are relative to the rest",
            unknown as f64 / 1e9
        ));
    }
}

/// CPUs in the recording that the query selects, and the times of their first events.
pub(super) fn known(context: &Context<'_>) -> Result<Vec<(i64, Ns)>, AnalysisError> {
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
    let wanted = &context.query.filter.cpus;
    cpus.retain(|(cpu, _)| {
        wanted.is_empty() || wanted.iter().any(|number| i64::from(*number) == *cpu)
    });
    cpus.sort_unstable();
    Ok(cpus)
}
