//! Utilisation of each CPU over the whole window, and nothing else: neither the components of
//! slices nor interrupts need to be read.

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::Value;

use super::gaps::{self, Covers, Sleeps};
use super::{ratio, split};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::SLICES;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints};
use crate::sweep::Parts;

/// Share of the known time in which each CPU ran a thread, in CPU order.
pub(crate) fn ratios(context: &Context<'_>) -> Result<Vec<(i64, Value)>, AnalysisError> {
    let parts = Parts::of_query(context);
    let cpus = split::known(context)?;
    let covers = gaps::covers(context, &cpus, Sleeps::Left)?;
    let mut pass = context.pass_with_cut(&SLICES, &[Key::Cpu], &context.query.filter)?;
    let running = Running {
        parts,
        recording_end: context.recording_end(),
        columns: ["ts", "ts_end"].map(|name| pass.projection.need(name)),
        covers: &covers,
    };
    let slices = pass.run(context.tables, &running)?;
    let mut unknown_all = 0;
    let ratios = covers.iter().map(|(cpu, covers)| {
        let ran = slices.get(&[KeyValue::Int(*cpu)]);
        let (busy, while_unknown) = ran.map_or((0, 0), |ran| (ran.busy, ran.while_unknown));
        let unknown = covers.unknown_in(0) - while_unknown;
        unknown_all += unknown;
        (*cpu, ratio(busy, parts.length(0) - unknown))
    });
    let ratios = ratios.collect();
    split::note_unknown(context, unknown_all);
    Ok(ratios)
}

struct Running<'c> {
    parts: Parts,
    recording_end: Ns,
    columns: [ColumnRef; 2],
    covers: &'c [(i64, Covers)],
}

#[derive(Debug, Default)]
struct Ran {
    busy: Ns,
    /// The part of it at times for which only slices show what ran.
    while_unknown: Ns,
    /// Index of the CPU in the list of covers, and where the last slice was found in its own.
    place: Option<usize>,
    near: usize,
}

impl Summing for Running<'_> {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = Ran;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        let [ts, ts_end] = self.columns;
        Ok([ts.ints(batch)?, ts_end.ints(batch)?])
    }

    fn start(&self, _: usize, group: &dyn Fn() -> Vec<KeyValue>) -> Ran {
        let place = match group().as_slice() {
            [KeyValue::Int(cpu)] => self.covers.iter().position(|(of, _)| of == cpu),
            _ => None,
        };
        Ran {
            place,
            ..Ran::default()
        }
    }

    fn add(&self, sum: &mut Ran, [ts, ts_end]: &[Ints<'_>; 2], row: u32) {
        let span = self.parts.span;
        let begin = ts.at(row).max(span.begin);
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        let end = end.min(span.end);
        if end <= begin {
            return;
        }
        sum.busy += end - begin;
        let Some((_, covers)) = sum.place.and_then(|place| self.covers.get(place)) else {
            return;
        };
        let while_unknown = &mut sum.while_unknown;
        covers.while_unknown((begin, end), &mut sum.near, |from, to| {
            *while_unknown += to - from;
        });
    }

    fn merge(&self, sum: &mut Ran, other: Ran) {
        sum.busy += other.busy;
        sum.while_unknown += other.while_unknown;
    }
}
