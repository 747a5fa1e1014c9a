//! `usdt usage`: frequency of events without duration, by their keys.

use std::cmp::Reverse;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::keys::{Key, KeyValue};
use crate::pass::Count;
use crate::spec::Spec;

const ROWS: usize = 20;

/// Most frequent first; intervals in time order.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<AnswerTable, AnalysisError> {
    let mut pass = context.pass(spec, keys)?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let groups = pass.run(context.tables, &Count)?;
    let mut groups: Vec<(Vec<KeyValue>, u64)> = groups.into_iter().collect();
    groups.index_sort_by(|(group_a, a), (group_b, b)| {
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        by_time
            .then_with(|| Reverse(a).cmp(&Reverse(b)))
            .then_with(|| group_a.cmp(group_b))
    });
    let mut columns = Vec::new();
    if context.interval.is_some() {
        columns.push(AnswerColumn::new("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.push(AnswerColumn::new("count", "count", Measure::Count));
    columns.push(AnswerColumn::new("rate_per_s", "/s", Measure::Rate));
    let mut table = AnswerTable::new("usage", spec.rows, columns);
    let width = context.interval.unwrap_or(context.span.length());
    let seconds = width as f64 / 1e9;
    for (group, count) in groups {
        let (values, time) = group.split_at(keys.len());
        let mut row: Vec<Value> = Vec::with_capacity(table.columns.len());
        if let Some(KeyValue::Int(begin)) = time.first() {
            row.push((*begin).into());
        }
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, &context.names));
        }
        row.push((count as i64).into());
        row.push((seconds > 0.0).then(|| count as f64 / seconds).into());
        table.rows.push(row);
    }
    let default = if context.interval.is_some() { 0 } else { ROWS };
    context.finish_blocks(&mut table, context.limit(default));
    Ok(table)
}
