//! `cpu usage`: CPU time by the given keys, split into user, system and interrupt time.
//!
//! A slice that crosses an edge of the window or of an interval counts with its part inside. Its
//! system and interrupt time is assumed to be spread evenly over it, because the recording has only
//! their sums per slice.

mod busy;
mod cover;
mod gaps;
mod handlers;
mod split;

pub(crate) use busy::ratios;

use arrow_array::RecordBatch;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use split::Split;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{IRQ, SLICES, SYSCALLS};
use crate::pass::{Pass, Summing, Unordered};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints};
use crate::sweep::Parts;

const ROWS: usize = 20;

/// The priority of threads with nice value 0; higher values are nicer.
const PRIO_DEFAULT: i64 = 120;

pub(crate) fn tables(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let is_by_cpu = context.query.by == ["cpu"];
    let whole = Filter {
        cpus: context.query.filter.cpus.clone(),
        ..Filter::default()
    };
    // If only some threads are selected, the rest of a CPU's time is unknown.
    let is_whole = context.query.filter == whole;
    if is_by_cpu && is_whole {
        return Ok(vec![Split::of(context)?.table(context)?]);
    }
    if context.query.by.is_empty() && is_whole {
        let split = Split::of(context)?;
        let [on_cpus, by_owner] = split.slices(context, [&[Key::Cpu], keys])?;
        return Ok(vec![
            owners(context, keys, by_owner),
            split.table_of(context, on_cpus),
        ]);
    }
    let mut pass = context.pass_with_cut(&SLICES, keys, &context.query.filter)?;
    let times = Times::new(context, Parts::of_query(context), &mut pass);
    let grouping = std::slice::from_ref(&pass.grouping);
    let groups = pass.run_by(context.tables, &times, grouping)?;
    let by_owner = groups.into_iter().flatten().collect();
    Ok(vec![owners(context, keys, by_owner)])
}

fn owners(context: &Context<'_>, keys: &[Key], groups: Unordered<Spans>) -> AnswerTable {
    let parts = Parts::of_query(context);
    let by_time = context.interval.is_some();
    let mut rows: Vec<(u32, Vec<KeyValue>, Spent)> = Vec::new();
    for (group, spans) in groups {
        let of_group = spans.into_parts().into_iter();
        rows.extend(of_group.map(|(part, spent)| (part, group.clone(), spent)));
    }
    rows.index_sort_by(|(part_a, group_a, a), (part_b, group_b, b)| {
        let by_part = part_a.cmp(part_b);
        by_part
            .then(b.busy.cmp(&a.busy))
            .then_with(|| group_a.cmp(group_b))
    });
    let mut table = AnswerTable::new("usage", "CPU time", columns(keys, by_time));
    let has = Recorded::of(context);
    for (part, group, spent) in rows {
        let mut row = Vec::with_capacity(table.columns.len());
        if by_time {
            row.push(parts.begin(part as usize).into());
        }
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        let length = parts.length(part as usize);
        row.push(spent.busy.into());
        row.push(ratio(spent.busy, length));
        row.push(has.calls.then_some(spent.user + spent.nice).into());
        row.push(has.calls.then_some(spent.system).into());
        row.push(has.irqs.then_some(spent.hardirq).into());
        row.push(has.irqs.then_some(spent.softirq).into());
        row.push(spent.slices.into());
        row.push(spent.migrations.into());
        table.rows.push(row);
    }
    let default = if by_time { 0 } else { ROWS };
    context.finish_blocks(&mut table, context.limit(default));
    table
}

fn columns(keys: &[Key], by_time: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("cpu_ns", "CPU time", Measure::Duration),
        column("cpu_ratio", "% CPU", Measure::Ratio),
        column("user_ns", "user", Measure::Duration).priority(1),
        column("system_ns", "system", Measure::Duration).priority(1),
        column("hardirq_ns", "hard irq", Measure::Duration).priority(4),
        column("softirq_ns", "softirq", Measure::Duration).priority(4),
        column("slices", "slices", Measure::Count).priority(3),
        column("migrations", "migrations", Measure::Count).priority(3),
    ]);
    columns
}

fn ratio(time: Ns, length: Ns) -> Value {
    (length > 0).then(|| time as f64 / length as f64).into()
}

/// What the recording has in addition to context switches.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    calls: bool,
    irqs: bool,
}

impl Recorded {
    fn of(context: &Context<'_>) -> Self {
        Self {
            calls: context.has(SYSCALLS.table.name),
            irqs: context.has(IRQ.table.name),
        }
    }
}

/// Time of slices.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    busy: Ns,
    user: Ns,
    /// User time of threads with a positive nice value.
    nice: Ns,
    system: Ns,
    hardirq: Ns,
    softirq: Ns,
    slices: i64,
    migrations: i64,
    /// The busy time at times for which only slices show what ran …
    while_unknown: Ns,
    /// … and the busy time while a thread of the CPU slept uninterruptibly. Counted by CPU only.
    while_waited: Ns,
}

impl Spent {
    fn merge(&mut self, other: &Spent) {
        self.busy += other.busy;
        self.user += other.user;
        self.nice += other.nice;
        self.system += other.system;
        self.hardirq += other.hardirq;
        self.softirq += other.softirq;
        self.slices += other.slices;
        self.migrations += other.migrations;
        self.while_unknown += other.while_unknown;
        self.while_waited += other.while_waited;
    }
}

/// Time by part; empty parts are omitted.
///
/// Rows are mostly in time order, so the current part is stored inline and not behind a pointer:
/// with many groups, memory accesses dominate.
#[derive(Debug)]
struct Spans<T = Spent> {
    /// The current part, if any, and its number.
    current: (u32, T),
    place: usize,
    /// All of them in order; the entry of the current one is unused.
    parts: Vec<(u32, T)>,
}

/// Marks the absence of a part.
const NO_PART: u32 = u32::MAX;

impl<T: Default> Default for Spans<T> {
    fn default() -> Self {
        Self {
            current: (NO_PART, T::default()),
            place: 0,
            parts: Vec::new(),
        }
    }
}

impl<T: Default> Spans<T> {
    #[inline]
    fn at(&mut self, part: u32) -> &mut T {
        if self.current.0 != part {
            self.change_to(part);
        }
        &mut self.current.1
    }

    #[inline(never)]
    fn change_to(&mut self, part: u32) {
        self.put_back();
        let found = self.parts.binary_search_by_key(&part, |(part, _)| *part);
        self.place = found.unwrap_or_else(|place| {
            self.parts.insert(place, (part, T::default()));
            place
        });
        self.current = (part, std::mem::take(&mut self.parts[self.place].1));
    }

    fn put_back(&mut self) {
        if let Some((_, kept)) = self.parts.get_mut(self.place) {
            *kept = std::mem::take(&mut self.current.1);
        }
    }

    /// In the order of the parts.
    fn into_parts(mut self) -> Vec<(u32, T)> {
        self.put_back();
        self.parts
    }
}

struct Times {
    parts: Parts,
    recording_end: Ns,
    counts_ended: bool,
    columns: [ColumnRef; 7],
}

impl Times {
    fn new(context: &Context<'_>, parts: Parts, pass: &mut Pass) -> Self {
        let names = [
            "ts",
            "ts_end",
            "prio",
            "system_ns",
            "hardirq_ns",
            "softirq_ns",
            "migrations",
        ];
        Self {
            parts,
            recording_end: context.recording_end(),
            counts_ended: context.query.counts_ended,
            columns: names.map(|name| pass.projection.need(name)),
        }
    }

    /// Start and end of a slice.
    #[inline]
    fn slice(&self, [ts, ts_end, ..]: &[Ints<'_>; 7], row: u32) -> (Ns, Ns) {
        (ts.at(row), ts_end.get(row).unwrap_or(self.recording_end))
    }
}

/// The share of `time` of a slice that corresponds to `inside` of the slice.
fn share(time: Ns, inside: Ns, whole: Ns) -> Ns {
    if inside == whole {
        return time;
    }
    (i128::from(time) * i128::from(inside) / i128::from(whole.max(1))) as Ns
}

impl Summing for Times {
    type Columns<'b> = [Ints<'b>; 7];
    type Sum = Spans;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 7], AnalysisError> {
        let [a, b, c, d, e, f, g] = self.columns;
        Ok([
            a.ints(batch)?,
            b.ints(batch)?,
            c.ints(batch)?,
            d.ints(batch)?,
            e.ints(batch)?,
            f.ints(batch)?,
            g.ints(batch)?,
        ])
    }

    #[inline]
    fn add(&self, spans: &mut Spans, columns: &[Ints<'_>; 7], row: u32) {
        let [_, _, prio, system, hardirq, softirq, migrations] = columns;
        let (begin, end) = self.slice(columns, row);
        let slice = Window::new(begin, end);
        let counts = i64::from(!self.counts_ended || columns[1].get(row).is_some());
        let is_nice = prio.get(row).is_some_and(|prio| prio > PRIO_DEFAULT);
        let part = self.parts.of(slice.begin);
        let ends_later = slice.end > self.parts.begin(part).saturating_add(self.parts.width);
        if self.parts.span.begin <= slice.begin && slice.end <= self.parts.span.end && !ends_later {
            let (system, hardirq, softirq) = (system.at(row), hardirq.at(row), softirq.at(row));
            let busy = slice.length();
            let spent = spans.at(part as u32);
            let user = (busy - system - hardirq - softirq).max(0);
            spent.busy += busy;
            if is_nice {
                spent.nice += user;
            } else {
                spent.user += user;
            }
            spent.system += system;
            spent.hardirq += hardirq;
            spent.softirq += softirq;
            spent.slices += counts;
            spent.migrations += migrations.at(row);
            return;
        }
        let pieces = self.parts.pieces(slice.begin, slice.end);
        for (number, piece) in pieces.enumerate() {
            let inside = piece.length;
            let of = |time: &Ints<'_>| share(time.at(row), inside, slice.length());
            let (system, hardirq, softirq) = (of(system), of(hardirq), of(softirq));
            let user = (inside - system - hardirq - softirq).max(0);
            let spent = spans.at(piece.part as u32);
            spent.merge(&Spent {
                busy: inside,
                user: if is_nice { 0 } else { user },
                nice: if is_nice { user } else { 0 },
                system,
                hardirq,
                softirq,
                slices: if number == 0 { counts } else { 0 },
                migrations: if piece.begin == slice.begin {
                    migrations.at(row)
                } else {
                    0
                },
                ..Spent::default()
            });
        }
    }

    fn merge(&self, spans: &mut Spans, other: Spans) {
        for (part, spent) in other.into_parts() {
            spans.at(part).merge(&spent);
        }
    }
}
