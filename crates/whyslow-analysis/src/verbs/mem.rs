//! `mem usage`: pages allocated and freed. They are counted by the second, so a window is rounded
//! out to whole ones.

use arrow_array::RecordBatch;
use whyslow_model::Window;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::PAGES;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints};

const ROWS: usize = 20;
const SECOND: i64 = 1_000_000_000;

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let filter = &context.question.filter;
    let whole = context.selected().map(|window| {
        context.note(
            "pages are counted by the second: the window is rounded out to whole ones".into(),
        );
        Window::new(window.begin - window.begin.rem_euclid(SECOND), window.end)
    });
    let mut pass = context.pass_in(&PAGES, keys, filter, whole)?;
    let by_time = context.question.interval;
    if let Some(width) = by_time {
        pass.group_by_time(context.span, width);
    }
    let pages = Pages(["allocated", "freed"].map(|name| pass.projection.need(name)));
    let mut groups: Vec<(Vec<KeyValue>, [i64; 2])> =
        pass.run(context.tables, &pages)?.into_iter().collect();
    groups.sort_by(|(group_a, a), (group_b, b)| {
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        by_time
            .then_with(|| b.cmp(a))
            .then_with(|| group_a.cmp(group_b))
    });
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time.is_some() {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("allocated_pages", "pages allocated", Measure::Count),
        column("freed_pages", "pages freed", Measure::Count),
        column("kept_pages", "difference", Measure::Count).priority(1),
    ]);
    let mut table = AnswerTable::new("usage", "pages of memory", columns);
    for (group, [allocated, freed]) in groups {
        let mut row = Vec::with_capacity(table.columns.len());
        let (values, time) = group.split_at(keys.len());
        if let Some(KeyValue::Int(begin)) = time.first() {
            row.push((*begin).into());
        }
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend([allocated.into(), freed.into(), (allocated - freed).into()]);
        table.rows.push(row);
    }
    let default = if by_time.is_some() { 0 } else { ROWS };
    context.finish(&mut table, context.limit(default));
    Ok(table)
}

struct Pages([ColumnRef; 2]);

impl Summing for Pages {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = [i64; 2];

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        let [allocated, freed] = self.0;
        Ok([allocated.ints(batch)?, freed.ints(batch)?])
    }

    fn add(&self, sum: &mut [i64; 2], [allocated, freed]: &[Ints<'_>; 2], row: u32) {
        sum[0] += allocated.at(row);
        sum[1] += freed.at(row);
    }

    fn merge(&self, sum: &mut [i64; 2], other: [i64; 2]) {
        sum[0] += other[0];
        sum[1] += other[1];
    }
}
