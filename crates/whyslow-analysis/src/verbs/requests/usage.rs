//! `requests usage`: load by client: requests, errors, time in each phase, and time in which
//! threads had the requests and ran for them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use super::stretches::{self, ByThread};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, in_order};
use crate::keys::{Key, KeyValue};
use crate::kinds::{PHASES, REQUESTS, SLICES, WORKERS, is_failure};
use crate::pass::{Groups, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::verbs::stats;
use whyslow_model::histogram::Histogram;

pub(crate) fn usage(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    // A client is identified from one side only: both sides may have reported a request.
    let mut keys = keys.to_vec();
    if !keys.contains(&Key::Role) {
        keys.push(Key::Role);
    }
    let mut pass = context.pass(&REQUESTS, &keys)?;
    let usage = Usage {
        id: pass.projection.need("id"),
        dur: pass.projection.need("dur"),
        outcome: pass.projection.need("outcome"),
        bytes: ["bytes_sent", "bytes_received"].map(|name| pass.projection.need(name)),
        with_ids: context.has(WORKERS.table.name),
    };
    let groups = pass.run(context.tables, &usage)?;
    let times = thread_times(context, &groups)?;
    let mut table = table(&keys);
    let mut ordered: Vec<_> = groups.iter().zip(times).collect();
    ordered.index_sort_by(|((group_a, a), _), ((group_b, b), _)| {
        b.count.cmp(&a.count).then_with(|| group_a.cmp(group_b))
    });
    let mut of_role: BTreeMap<&KeyValue, u64> = BTreeMap::new();
    let role = keys.iter().position(|key| *key == Key::Role).unwrap_or(0);
    for (group, sum) in groups.iter() {
        *of_role.entry(&group[role]).or_default() += sum.count;
    }
    for ((group, sum), time) in ordered {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(group) {
            row.extend(key.cells(value, &context.names));
        }
        let all = of_role.get(&group[role]).copied().unwrap_or(0);
        sum.cells(all, time, &mut row);
        table.rows.push(row);
    }
    context.finish(&mut table, context.limit(ROWS));
    let mut tables = vec![table];
    tables.extend(phases(context)?);
    Ok(tables)
}

const ROWS: usize = 20;

/// Phases by client, if known.
fn phases(context: &Context<'_>) -> Result<Option<AnswerTable>, AnalysisError> {
    if !context.has(PHASES.table.name) || !context.query.by.is_empty() {
        return Ok(None);
    }
    let keys = [Key::Client, Key::Phase];
    let table = stats::table(context, &PHASES, "phases", "phases", &keys)?;
    Ok(Some(table))
}

fn table(keys: &[Key]) -> AnswerTable {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("count", "requests", Measure::Count),
        column("count_ratio", "% of all", Measure::Ratio),
        column("errors", "errors", Measure::Count),
        column("errors_ratio", "% errors", Measure::Ratio).priority(2),
        column("p50_ns", "p50", Measure::Duration).priority(2),
        column("p99_ns", "p99", Measure::Duration).priority(2),
        column("max_ns", "max", Measure::Duration).priority(3),
        column("total_ns", "total", Measure::Duration),
        column("threads_ns", "thread time", Measure::Duration)
            .priority(1)
            .sparse(true),
        column("running_ns", "on CPU", Measure::Duration)
            .priority(1)
            .sparse(true),
        column("bytes_sent", "sent", Measure::Bytes).priority(4),
        column("bytes_received", "received", Measure::Bytes).priority(4),
    ]);
    AnswerTable::new("usage", "requests", columns)
}

struct Usage {
    id: ColumnRef,
    dur: ColumnRef,
    outcome: ColumnRef,
    bytes: [ColumnRef; 2],
    with_ids: bool,
}

struct UsageColumns<'b> {
    id: Ints<'b>,
    dur: Ints<'b>,
    outcome: Texts<'b>,
    is_failure: Vec<bool>,
    bytes: [Ints<'b>; 2],
}

#[derive(Default)]
struct UsageSum {
    count: u64,
    errors: u64,
    durations: Histogram,
    bytes: [i64; 2],
    ids: Vec<i64>,
}

impl UsageSum {
    fn cells(&self, all: u64, time: Option<Time>, row: &mut Vec<Value>) {
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let sums = self.durations.sums();
        row.push((self.count as i64).into());
        row.push(ratio(self.count, all).into());
        row.push((self.errors as i64).into());
        row.push(ratio(self.errors, self.count).into());
        row.extend(self.durations.percentiles([500, 990]).map(Value::from));
        row.push(sums.max().into());
        row.push(sums.sum().into());
        row.push(time.map(|time| time.had).into());
        row.push(time.and_then(|time| time.ran).into());
        row.extend(self.bytes.map(Value::from));
    }
}

impl Summing for Usage {
    type Columns<'b> = UsageColumns<'b>;
    type Sum = UsageSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<UsageColumns<'b>, AnalysisError> {
        let outcome = self.outcome.texts(batch)?;
        Ok(UsageColumns {
            id: self.id.ints(batch)?,
            dur: self.dur.ints(batch)?,
            is_failure: per_word(&outcome, is_failure),
            outcome,
            bytes: [self.bytes[0].ints(batch)?, self.bytes[1].ints(batch)?],
        })
    }

    fn add(&self, sum: &mut UsageSum, columns: &UsageColumns<'_>, row: u32) {
        sum.count += 1;
        let outcome = columns.outcome.key(row);
        sum.errors += u64::from(outcome.is_some_and(|word| columns.is_failure[word]));
        columns
            .dur
            .get(row)
            .into_iter()
            .for_each(|dur| sum.durations.add(dur));
        for (bytes, column) in sum.bytes.iter_mut().zip(&columns.bytes) {
            *bytes = bytes.saturating_add(column.or_zero(row));
        }
        if self.with_ids {
            sum.ids.push(columns.id.at(row));
        }
    }

    fn merge(&self, sum: &mut UsageSum, other: UsageSum) {
        sum.count += other.count;
        sum.errors += other.errors;
        sum.durations.merge(&other.durations);
        for (bytes, more) in sum.bytes.iter_mut().zip(other.bytes) {
            *bytes = bytes.saturating_add(more);
        }
        sum.ids.extend(other.ids);
    }
}

/// Time in which threads had the requests of a group, and the part of it on CPU, if known.
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    had: Ns,
    ran: Option<Ns>,
}

/// By group, in order; empty if no request threads are known.
fn thread_times(
    context: &Context<'_>,
    groups: &Groups<UsageSum>,
) -> Result<Vec<Option<Time>>, AnalysisError> {
    if !context.has(WORKERS.table.name) {
        return Ok(vec![None; groups.len()]);
    }
    let sums = groups.iter().map(|(_, sum)| sum).enumerate();
    let of_request: FxHashMap<i64, usize> = sums
        .flat_map(|(group, sum)| sum.ids.iter().map(move |id| (*id, group)))
        .collect();
    let ids = of_request.keys().copied().collect();
    let mut stretches = stretches::read(context, Some(&ids))?;
    // A slice of a recording has no data before and after the window.
    for stretch in &mut stretches {
        stretch.ts = stretch.ts.max(context.span.begin);
        stretch.ts_end = stretch.ts_end.min(context.span.end);
    }
    stretches.retain(|stretch| stretch.ts < stretch.ts_end);
    let mut times = vec![Time::default(); groups.len()];
    let group = |request: i64| of_request.get(&request).copied();
    for stretch in &stretches {
        if let Some(group) = group(stretch.request) {
            times[group].had += stretch.ts_end - stretch.ts;
        }
    }
    let by_thread = ByThread::new(&stretches);
    if let Some(hull) = by_thread.hull().filter(|_| context.has(SLICES.table.name)) {
        let mut pass = context.pass_in(&SLICES, &[], &Filter::default(), Some(hull))?;
        let [utid, ts, ts_end] = ["utid", "ts", "ts_end"].map(|name| pass.projection.need(name));
        let whole_end = context.recording_end();
        in_order(context.tables, &pass.projection.scan(Some(hull)), |batch| {
            let [utid, ts, ts_end] = [utid.ints(batch)?, ts.ints(batch)?, ts_end.ints(batch)?];
            for row in 0..batch.num_rows() as u32 {
                let Some(utid) = utid.get(row) else { continue };
                let (ts, ts_end) = (ts.at(row), ts_end.get(row).unwrap_or(whole_end));
                // If a thread had several requests, its time counts for each: it is unknown for
                // which it ran.
                for place in by_thread.overlapping(utid, (ts, ts_end)) {
                    let stretch = &stretches[place];
                    if let Some(group) = group(stretch.request) {
                        let inside = ts_end.min(stretch.ts_end) - ts.max(stretch.ts);
                        *times[group].ran.get_or_insert(0) += inside.max(0);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(times.into_iter().map(Some).collect())
}
