//! `requests bursts`: clients that sent far more requests than usual, or whose requests failed far
//! more often than those of others. For the test, see `burst_test`.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use super::series::{Burst, BurstOf, ERRORS_MIN, REQUESTS_MIN, Series, part_width};
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, label};
use crate::kinds::{REQUESTS, is_failure};
use crate::pass::Summing;
use crate::scan::{ColumnRef, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
const PARTS_MAX: usize = 5_000;

pub(crate) fn bursts(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let whole = context.span.length().max(1);
    let width = context.interval.unwrap_or_else(|| part_width(whole));
    let parts = Parts {
        span: context.span,
        width: width.min(whole),
    };
    if parts.count() > PARTS_MAX {
        return Err(AnalysisError::query(
            format!("more than {PARTS_MAX} intervals"),
            "use a longer interval, or a shorter window with -w",
        ));
    }
    let all = read(context, keys, parts)?;
    let total = series(all.values().flatten(), parts);
    // Unidentified clients are not one client.
    let known = all.iter().filter(|(group, counts)| {
        let is_known = group.iter().any(|value| *value != KeyValue::Null);
        let requests: u64 = counts.iter().map(|part| part.count.requests).sum();
        let errors: u64 = counts.iter().map(|part| part.count.errors).sum();
        is_known && (requests >= REQUESTS_MIN || errors >= ERRORS_MIN)
    });
    let known: Vec<_> = known.collect();
    let mut found: Vec<(&[KeyValue], Burst)> = Vec::new();
    for (group, counts) in &known {
        let bursts = series(*counts, parts).bursts(&total, known.len());
        found.extend(bursts.map(|burst| (group.as_slice(), burst)));
    }
    found.index_sort_by(|(group_a, a), (group_b, b)| {
        b.excess
            .total_cmp(&a.excess)
            .then_with(|| group_a.cmp(group_b))
    });
    let mut table = table(keys);
    for (group, burst) in found {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(group) {
            row.extend(key.cells(value, &context.names));
        }
        let client = label(keys, group, &context.names);
        cells(&burst, parts, &client, &mut row);
        table.rows.push(row);
    }
    if known.is_empty() {
        context.note(format!(
            "bursts unavailable: no identified client has {REQUESTS_MIN} requests or {ERRORS_MIN} \
             failures"
        ));
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

fn table(keys: &[Key]) -> AnswerTable {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("burst", "kind", Measure::Text),
        column("ts_ns", "start", Measure::Time),
        column("dur_ns", "duration", Measure::Duration),
        column("count", "count", Measure::Count),
        column("of", "among", Measure::Count).priority(2),
        column("ratio", "share", Measure::Ratio),
        column("usual", "usual", Measure::Number).priority(3),
        column("times", "ratio to usual", Measure::Number).priority(2),
        column("chance", "p", Measure::Number).priority(5),
        column("description", "description", Measure::Text).priority(1),
    ]);
    AnswerTable::new("bursts", "bursts", columns)
}

fn series<'p>(counts: impl IntoIterator<Item = &'p OfPart>, parts: Parts) -> Series {
    let mut series = Series::empty(parts.count());
    for OfPart { part, count } in counts {
        series.requests[*part] += count.requests;
        series.errors[*part] += count.errors;
    }
    series
}

fn cells(burst: &Burst, parts: Parts, client: &str, row: &mut Vec<Value>) {
    let begin = parts.begin(burst.first);
    let end = parts.begin(burst.last) + parts.length(burst.last);
    let seconds = parts.width as f64 / 1e9;
    let (word, usual) = match burst.of {
        BurstOf::Requests => ("requests", burst.usual / seconds),
        BurstOf::Errors => ("errors", burst.usual),
    };
    let ratio = burst.count as f64 / burst.among.max(1) as f64;
    row.extend([
        word.into(),
        begin.into(),
        (end - begin).into(),
        (burst.count as i64).into(),
        (burst.among as i64).into(),
        ratio.into(),
        usual.into(),
        burst.times.into(),
        burst.chance.min(1.0).into(),
        describe(burst, client, ratio, usual).into(),
    ]);
}

fn describe(burst: &Burst, client: &str, ratio: f64, usual: f64) -> String {
    let (count, among, percent) = (burst.count, burst.among, ratio * 100.0);
    match (burst.of, burst.times) {
        (BurstOf::Requests, Some(times)) => format!(
            "{client} sent {percent:.0} % of {among} requests, {times:.1} times its usual {usual:.1} per s"
        ),
        (BurstOf::Requests, None) => {
            format!("{client} sent {percent:.0} % of {among} requests, and none at other times")
        }
        (BurstOf::Errors, _) => format!(
            "{count} of {among} requests of {client} failed, compared with {:.1} % of others",
            usual * 100.0
        ),
    }
}

/// Requests in a part of the time; most clients only have some parts.
struct OfPart {
    part: usize,
    count: Count,
}

/// Counts by group.
fn read(
    context: &Context<'_>,
    keys: &[Key],
    parts: Parts,
) -> Result<BTreeMap<Vec<KeyValue>, Vec<OfPart>>, AnalysisError> {
    let mut pass = context.pass(&REQUESTS, keys)?;
    pass.group_by_time(parts.span, parts.width);
    let counting = Counting(pass.projection.need("outcome"));
    let mut all: BTreeMap<Vec<KeyValue>, Vec<OfPart>> = BTreeMap::new();
    for (mut group, count) in pass.run(context.tables, &counting)? {
        if let Some(KeyValue::Int(begin)) = group.pop() {
            let part = parts.of(begin);
            all.entry(group).or_default().push(OfPart { part, count });
        }
    }
    Ok(all)
}

struct Counting(ColumnRef);

#[derive(Default)]
struct Count {
    requests: u64,
    errors: u64,
}

impl Summing for Counting {
    type Columns<'b> = (Texts<'b>, Vec<bool>);
    type Sum = Count;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let outcome = self.0.texts(batch)?;
        let is_failure = per_word(&outcome, is_failure);
        Ok((outcome, is_failure))
    }

    fn add(&self, sum: &mut Count, (outcome, is_failure): &Self::Columns<'_>, row: u32) {
        sum.requests += 1;
        sum.errors += u64::from(outcome.key(row).is_some_and(|word| is_failure[word]));
    }

    fn merge(&self, sum: &mut Count, other: Count) {
        sum.requests += other.requests;
        sum.errors += other.errors;
    }
}
