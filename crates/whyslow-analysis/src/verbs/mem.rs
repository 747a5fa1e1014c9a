//! `mem usage`: pages allocated and freed, page faults, and time in which threads waited for direct
//! reclaim. Counts are per second, so a window is extended to whole seconds for them; times count
//! with their part inside. Intervals are whole seconds for the same reason.
//!
//! A count that is zero in the whole recording was probably not recorded, and is left empty.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{PAGES, RECLAIM};
use crate::pass::{Groups, Pass, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
const SECOND: i64 = 1_000_000_000;

/// Count columns.
const COUNTS: [&str; 8] = [
    "allocated",
    "freed",
    "faults_user",
    "faults_kernel",
    "cache_added",
    "cache_removed",
    "reclaim_written",
    "kswapd_wakeups",
];

/// Kinds of reclaim in which a thread waits. Soft limit reclaim happens within another one.
const STALLS: [&str; 3] = ["direct", "cgroup", "node"];

#[derive(Default)]
struct Memory {
    counts: [i64; COUNTS.len()],
    stalled: Stall,
}

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let parts = parts(context)?;
    let mut groups: BTreeMap<Vec<KeyValue>, Memory> = BTreeMap::new();
    let mut known = [false; COUNTS.len()];
    if context.has(PAGES.table.name) {
        for (group, counts) in counts(context, parts, keys)? {
            groups.entry(group).or_default().counts = counts;
        }
        let mut pass = context.pass_in(&PAGES, &[], &Filter::default(), None)?;
        let counts = Counts::new(&mut pass);
        for sums in pass.run(context.tables, &counts)?.into_values() {
            known = sums.map(|sum| sum != 0);
        }
        if let Some(cut) = &context.tables.info().cut {
            let columns = cut.recorded_words.get(PAGES.table.name);
            known = COUNTS.map(|name| columns.is_some_and(|columns| columns.contains(name)));
        }
    }
    let has_reclaim = context.has(RECLAIM.table.name);
    if has_reclaim {
        for (group, stalled) in stalls(context, parts, keys)? {
            groups.entry(group).or_default().stalled = stalled;
        }
    }
    let mut groups: Vec<(Vec<KeyValue>, Memory)> = groups.into_iter().collect();
    groups.index_sort_by(|(group_a, a), (group_b, b)| {
        let rank = |memory: &Memory| (memory.counts, memory.stalled.time);
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        by_time
            .then_with(|| rank(b).cmp(&rank(a)))
            .then_with(|| group_a.cmp(group_b))
    });
    let by_time = context.interval.is_some();
    let mut table = AnswerTable::new("usage", "memory", columns(keys, by_time));
    for (group, Memory { counts, stalled }) in groups {
        let mut row = Vec::with_capacity(table.columns.len());
        let (values, time) = group.split_at(keys.len());
        if let Some(KeyValue::Int(begin)) = time.first() {
            row.push((*begin).into());
        }
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, &context.names));
        }
        let count = |at: usize| Value::from(known[at].then_some(counts[at]));
        row.extend([count(0), count(1)]);
        row.push(
            (known[0] && known[1])
                .then_some(counts[0] - counts[1])
                .into(),
        );
        row.extend([count(2), count(3)]);
        row.push(has_reclaim.then_some(stalled.count).into());
        row.push(has_reclaim.then_some(stalled.time).into());
        row.extend((4..COUNTS.len()).map(count));
        table.rows.push(row);
    }
    let default = if by_time { 0 } else { ROWS };
    context.finish_blocks(&mut table, context.limit(default));
    Ok(table)
}

fn columns(keys: &[Key], by_time: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("allocated_pages", "pages allocated", Measure::Count),
        column("freed_pages", "pages freed", Measure::Count),
        column("kept_pages", "difference", Measure::Count).priority(1),
        column("faults_user", "faults", Measure::Count).priority(2),
        column("faults_kernel", "kernel faults", Measure::Count).priority(4),
        column("stalls", "stalls", Measure::Count).priority(2),
        column("stalled_ns", "stalled", Measure::Duration).priority(2),
        column("cache_added_pages", "cache added", Measure::Count).priority(5),
        column("cache_removed_pages", "cache removed", Measure::Count).priority(5),
        column("reclaim_written_pages", "reclaim wrote", Measure::Count).priority(6),
        column("kswapd_wakeups", "kswapd calls", Measure::Count).priority(6),
    ]);
    columns
}

type ByGroup<S> = BTreeMap<Vec<KeyValue>, S>;

/// Parts that start at a full second, like the counts: for others, their content would be unknown.
fn parts(context: &Context<'_>) -> Result<Parts, AnalysisError> {
    let span = Window::new(second_of(context.span.begin), context.span.end);
    let length = span.length();
    let longest = SECOND * (length / SECOND + i64::from(length % SECOND > 0)).max(1);
    let given = context.query.interval;
    if given.is_some_and(|width| width % SECOND != 0) {
        return Err(AnalysisError::query(
            "pages are counted per second: the interval must be whole seconds",
            "use `1s` or a multiple of it",
        ));
    }
    let width = given.map_or(longest, |width| width.min(longest));
    Ok(Parts { span, width })
}

/// Start of the second that contains a time.
fn second_of(ts: Ns) -> Ns {
    ts.saturating_sub(ts.rem_euclid(SECOND))
}

fn counts(
    context: &Context<'_>,
    parts: Parts,
    keys: &[Key],
) -> Result<Groups<[i64; COUNTS.len()]>, AnalysisError> {
    let whole = context.selected().map(|window| {
        context
            .note("pages are counted per second: the window was extended to whole seconds".into());
        Window::new(second_of(window.begin), window.end)
    });
    let mut pass = context.pass_in(&PAGES, keys, &context.query.filter, whole)?;
    if context.interval.is_some() {
        pass.group_by_time(parts.span, parts.width);
    }
    let counts = Counts::new(&mut pass);
    pass.run(context.tables, &counts)
}

struct Counts([ColumnRef; COUNTS.len()]);

impl Counts {
    fn new(pass: &mut Pass) -> Self {
        Self(COUNTS.map(|name| pass.projection.need(name)))
    }
}

impl Summing for Counts {
    type Columns<'b> = Vec<Ints<'b>>;
    type Sum = [i64; COUNTS.len()];

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Vec<Ints<'b>>, AnalysisError> {
        self.0.iter().map(|column| column.ints(batch)).collect()
    }

    fn add(&self, sum: &mut Self::Sum, columns: &Vec<Ints<'_>>, row: u32) {
        for (sum, column) in sum.iter_mut().zip(columns) {
            *sum += column.at(row);
        }
    }

    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum) {
        for (sum, more) in sum.iter_mut().zip(other) {
            *sum += more;
        }
    }
}

/// Time in which a thread waited for pages, and number of waits.
#[derive(Debug, Clone, Copy, Default)]
struct Stall {
    time: Ns,
    count: i64,
}

/// By group and interval, with the time in each interval; a stall is counted where it starts.
fn stalls(
    context: &Context<'_>,
    parts: Parts,
    keys: &[Key],
) -> Result<ByGroup<Stall>, AnalysisError> {
    let mut pass = context.pass(&RECLAIM, keys)?;
    let stalls = Stalls {
        parts,
        span: context.span,
        recording_end: context.recording_end(),
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
        kind: pass.projection.need("kind"),
    };
    let mut found = ByGroup::new();
    for (group, of_parts) in pass.run(context.tables, &stalls)? {
        for (part, stall) in of_parts {
            let mut group = group.clone();
            if context.interval.is_some() {
                group.push(KeyValue::Int(parts.begin(part)));
            }
            found.insert(group, stall);
        }
    }
    Ok(found)
}

struct Stalls {
    parts: Parts,
    /// The measured window: it may start within the first second of the parts.
    span: Window,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
    kind: ColumnRef,
}

impl Summing for Stalls {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>, Vec<bool>);
    type Sum = BTreeMap<usize, Stall>;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let kind = self.kind.texts(batch)?;
        let waits = per_word(&kind, |kind| STALLS.contains(&kind));
        Ok((self.ts.ints(batch)?, self.ts_end.ints(batch)?, kind, waits))
    }

    fn add(&self, sums: &mut Self::Sum, (ts, ts_end, kind, waits): &Self::Columns<'_>, row: u32) {
        if !kind.key(row).is_some_and(|key| waits[key]) {
            return;
        }
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        let begin = ts.at(row).max(self.span.begin);
        for (number, piece) in self.parts.pieces(begin, end).enumerate() {
            let stall = sums.entry(piece.part).or_default();
            stall.time += piece.length;
            stall.count += i64::from(number == 0);
        }
    }

    fn merge(&self, sums: &mut Self::Sum, other: Self::Sum) {
        for (part, more) in other {
            let stall = sums.entry(part).or_default();
            stall.time += more.time;
            stall.count += more.count;
        }
    }
}
