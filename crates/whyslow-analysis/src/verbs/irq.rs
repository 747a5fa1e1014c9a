//! `irq usage`: time of interrupt handlers, by interrupted thread. The time of nested handlers is
//! excluded, so that no time counts twice.

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::IRQ;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
const KINDS: [&str; 3] = ["hard", "soft", "hrtimer"];

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let mut pass = context.pass(&IRQ, keys)?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let taken = Taken {
        own: pass.projection.need("self_ns"),
        kind: pass.projection.need("kind"),
    };
    let mut groups: Vec<(Vec<KeyValue>, TakenSum)> =
        pass.run(context.tables, &taken)?.into_iter().collect();
    let total = |sum: &TakenSum| sum.times.iter().sum::<Ns>();
    groups.index_sort_by(|(group_a, a), (group_b, b)| {
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        by_time
            .then_with(|| total(b).cmp(&total(a)))
            .then_with(|| group_a.cmp(group_b))
    });
    let by_time = context.interval.is_some();
    let mut table = AnswerTable::new("usage", "time in interrupts", columns(keys, by_time));
    let parts = Parts::of_query(context);
    for (group, sum) in groups {
        let mut row: Vec<Value> = Vec::with_capacity(table.columns.len());
        let (values, time) = group.split_at(keys.len());
        let begin = match time.first() {
            Some(KeyValue::Int(begin)) => Some(*begin),
            _ => None,
        };
        row.extend(begin.map(Value::Int));
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, &context.names));
        }
        let total = total(&sum);
        row.push(total.into());
        let seconds = parts.seconds(begin);
        row.push((seconds > 0.0).then(|| total as f64 / 1e9 / seconds).into());
        row.extend(sum.times.map(Value::from));
        row.push(sum.count.into());
        row.push(sum.unknown.into());
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
        column("total_ns", "time", Measure::Duration),
        column("window_ratio", "% of window", Measure::Ratio),
        column("hard_ns", "hard", Measure::Duration).priority(1),
        column("soft_ns", "soft", Measure::Duration).priority(1),
        column("hrtimer_ns", "hrtimer", Measure::Duration).priority(2),
        column("count", "count", Measure::Count),
        column("unfinished", "cut", Measure::Count).priority(8),
    ]);
    columns
}

struct Taken {
    own: ColumnRef,
    kind: ColumnRef,
}

#[derive(Default)]
struct TakenSum {
    /// In the order of [`KINDS`].
    times: [Ns; 3],
    count: i64,
    /// Handlers of unknown duration.
    unknown: i64,
}

impl Summing for Taken {
    type Columns<'b> = (Ints<'b>, Texts<'b>, Vec<usize>);
    type Sum = TakenSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let kind = self.kind.texts(batch)?;
        let places = per_word(&kind, |kind| {
            KINDS.iter().position(|known| *known == kind).unwrap_or(0)
        });
        Ok((self.own.ints(batch)?, kind, places))
    }

    fn add(&self, sum: &mut TakenSum, (own, kind, places): &Self::Columns<'_>, row: u32) {
        sum.count += 1;
        match own.get(row) {
            Some(own) => sum.times[kind.key(row).map_or(0, |key| places[key])] += own,
            None => sum.unknown += 1,
        }
    }

    fn merge(&self, sum: &mut TakenSum, other: TakenSum) {
        for (time, more) in sum.times.iter_mut().zip(other.times) {
            *time += more;
        }
        sum.count += other.count;
        sum.unknown += other.unknown;
    }
}
