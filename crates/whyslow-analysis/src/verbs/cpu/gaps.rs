//! CPU time that no slice covers: unknown, idle, or idle while a thread waited uninterruptibly.
//!
//! Slices of a CPU do not overlap. So the uncovered part of an interval is its length minus the
//! parts of slices in it, and slices may come in any order.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::Ns;

use super::cover::Cover;
use super::{Spans, Spent, Times};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::STATES;
use crate::losses;
use crate::pass::Summing;
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints};
use crate::sweep::Parts;

/// CPU time that no slice covers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gap {
    /// It is unknown what ran.
    pub(super) unknown: Ns,
    /// No thread ran, but a thread that had last run there slept uninterruptibly.
    pub(super) waited: Ns,
}

/// Times of a CPU that are not certainly idle.
#[derive(Debug, Default)]
pub(super) struct Covers {
    /// It is unknown what ran.
    unknown: Cover,
    /// A thread that had last run there slept uninterruptibly.
    waited: Cover,
    /// Their length in each part.
    all: Vec<Gap>,
}

/// Whether uninterruptible sleeps are read: they are only needed for iowait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleeps {
    Counted,
    Left,
}

/// In CPU order.
pub(super) fn covers(
    context: &Context<'_>,
    cpus: &[(i64, Ns)],
    wanted: Sleeps,
) -> Result<Vec<(i64, Covers)>, AnalysisError> {
    let parts = Parts::of_query(context);
    let mut unknown_by_cpu: BTreeMap<i64, Vec<(Ns, Ns)>> = BTreeMap::new();
    for (cpu, from, to) in unknown(context, cpus)? {
        unknown_by_cpu.entry(cpu).or_default().push((from, to));
    }
    let mut sleeps = match wanted {
        Sleeps::Counted => sleeps(context)?,
        Sleeps::Left => BTreeMap::new(),
    };
    let cover = |(cpu, _): &(i64, Ns)| {
        let of = |by_cpu: &mut BTreeMap<i64, Vec<(Ns, Ns)>>| {
            Cover::union(by_cpu.remove(cpu).unwrap_or_default())
        };
        let unknown = of(&mut unknown_by_cpu);
        let waited = of(&mut sleeps).without(&unknown);
        let all = lengths(parts, &unknown, &waited);
        let covers = Covers {
            unknown,
            waited,
            all,
        };
        (*cpu, covers)
    };
    Ok(cpus.iter().map(cover).collect())
}

impl Covers {
    /// The uncovered time of a part.
    pub(super) fn gap(&self, part: usize, spent: &Spent) -> Gap {
        let all = self.all.get(part).copied().unwrap_or_default();
        Gap {
            unknown: all.unknown - spent.while_unknown,
            waited: all.waited - spent.while_waited,
        }
    }

    /// Time of a part in which it is unknown what ran, unless a slice shows it.
    pub(super) fn unknown_in(&self, part: usize) -> Ns {
        self.all.get(part).map_or(0, |all| all.unknown)
    }

    /// Passes on the parts of a slice in such time.
    pub(super) fn while_unknown(
        &self,
        slice: (Ns, Ns),
        near: &mut usize,
        each: impl FnMut(Ns, Ns),
    ) {
        self.unknown.within(slice, near, each);
    }
}

/// Lengths of the covers by part.
fn lengths(parts: Parts, unknown: &Cover, waited: &Cover) -> Vec<Gap> {
    let mut all = vec![Gap::default(); parts.count()];
    for (from, to) in unknown.stretches() {
        for piece in parts.pieces(from, to) {
            all[piece.part].unknown += piece.length;
        }
    }
    for (from, to) in waited.stretches() {
        for piece in parts.pieces(from, to) {
            all[piece.part].waited += piece.length;
        }
    }
    all
}
/// What a CPU ran, and how much of it was in covered time: slices of a CPU do not overlap, so the
/// rest of a cover is what remains.
#[derive(Debug, Default)]
pub(super) struct OfCpu {
    pub(super) spans: Spans,
    /// Index of the CPU in the list of covers, and where the last slice was found in each of them.
    place: Option<usize>,
    near: [usize; 2],
}

/// Sums by CPU in the first grouping, by any keys in the others.
pub(super) struct OnCpus<'c> {
    times: Times,
    covers: &'c [(i64, Covers)],
}

impl<'c> OnCpus<'c> {
    pub(super) fn new(times: Times, covers: &'c [(i64, Covers)]) -> Self {
        Self { times, covers }
    }
}

impl Summing for OnCpus<'_> {
    type Columns<'b> = <Times as Summing>::Columns<'b>;
    type Sum = OfCpu;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        self.times.columns(batch, first)
    }

    fn start(&self, grouping: usize, group: &dyn Fn() -> Vec<KeyValue>) -> OfCpu {
        let place = match (grouping, group().as_slice()) {
            (0, [KeyValue::Int(cpu)]) => self.covers.iter().position(|(of, _)| of == cpu),
            _ => None,
        };
        OfCpu {
            place,
            ..OfCpu::default()
        }
    }

    #[inline]
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

/// By CPU and interval: before its first event, and where its events were lost.
fn unknown(context: &Context<'_>, cpus: &[(i64, Ns)]) -> Result<Vec<(i64, Ns, Ns)>, AnalysisError> {
    let begin = context.tables.info().whole().begin;
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

/// Uninterruptible sleeps by the CPU on which the thread had run; those that touch each other are
/// merged.
fn sleeps(context: &Context<'_>) -> Result<BTreeMap<i64, Vec<(Ns, Ns)>>, AnalysisError> {
    let uninterruptible = Filter {
        ops: vec!["uninterruptible".into()],
        ..Filter::default()
    };
    let mut pass = context.pass_in(&STATES, &[Key::Cpu], &uninterruptible, context.selected())?;
    let sleeps = Uninterruptible {
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

struct Uninterruptible {
    columns: [ColumnRef; 2],
    recording_end: Ns,
}

#[derive(Debug, Default)]
struct Slept(Vec<(Ns, Ns)>);

impl Summing for Uninterruptible {
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
