//! Interrupt handlers on idle CPUs.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::Spans;
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::IRQ;
use crate::pass::Summing;
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, per_row, per_word};
use crate::sweep::Parts;

/// Time of hard and soft interrupt handlers on idle CPUs, by CPU and part.
pub(super) type IdleIrqs = FxHashMap<i64, FxHashMap<u32, (Ns, Ns)>>;

pub(super) fn idle_irqs(context: &Context<'_>, parts: Parts) -> Result<IdleIrqs, AnalysisError> {
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
            found.insert(*cpu, by_part.into_parts().into_iter().collect());
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
    type Sum = Spans<(Ns, Ns)>;

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

    #[inline]
    fn add(&self, sum: &mut Self::Sum, ([ts, own, utid], is_soft): &Self::Columns<'_>, row: u32) {
        let begin = ts.at(row);
        let span = self.parts.span;
        // Windows are half-open, but include the last event of the recording.
        let is_last = begin == span.end && begin == self.recording_end;
        if !(span.contains(begin) || is_last) {
            return;
        }
        // Whether the next handler interrupts a thread, or is soft, is unpredictable: there is no
        // branch.
        let own = own.or_zero(row) & -i64::from(utid.get(row).is_none());
        let soft = own & -i64::from(is_soft[row as usize]);
        let (hard_all, soft_all) = sum.at(self.parts.of(begin) as u32);
        *hard_all += own - soft;
        *soft_all += soft;
    }

    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum) {
        for (part, (hard, soft)) in other.into_parts() {
            let time = sum.at(part);
            time.0 += hard;
            time.1 += soft;
        }
    }
}
