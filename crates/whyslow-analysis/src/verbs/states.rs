//! `states usage`: how long each thread was in which state, inside the window.
//!
//! A state that had not ended when the recording did counts to the recording's end.

use arrow_array::RecordBatch;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::STATES;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Texts, per_word};

const ROWS: usize = 20;

/// States with a column of their own; the others are summed up.
const STATES_SHOWN: [&str; 4] = ["running", "runnable", "uninterruptible", "sleeping"];

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let mut pass = context.pass(&STATES, keys)?;
    let times = StateTimes {
        span: context.span,
        recording_end: context.recording_end(),
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
        state: pass.projection.need("state"),
    };
    let mut groups: Vec<(Vec<KeyValue>, StateSum)> =
        pass.run(context.tables, &times)?.into_iter().collect();
    groups.sort_by(|(group_a, a), (group_b, b)| {
        b.times.cmp(&a.times).then_with(|| group_a.cmp(group_b))
    });
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    for state in STATES_SHOWN {
        columns.push(column(&format!("{state}_ns"), state, Measure::Duration));
    }
    columns.extend([
        column("other_ns", "other", Measure::Duration).priority(4),
        column("running_ratio", "% running", Measure::Ratio).priority(2),
        column("changes", "states", Measure::Count).priority(3),
    ]);
    let mut table = AnswerTable::new("states", "time in each state", columns);
    let length = context.span.length() as f64;
    for (group, sum) in groups {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend(sum.times.map(Value::from));
        row.push((length > 0.0).then(|| sum.times[0] as f64 / length).into());
        row.push(sum.count.into());
        table.rows.push(row);
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

struct StateTimes {
    span: Window,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
    state: ColumnRef,
}

#[derive(Default)]
struct StateSum {
    /// As [`STATES_SHOWN`], then all others.
    times: [Ns; 5],
    count: i64,
}

impl Summing for StateTimes {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>, Vec<usize>);
    type Sum = StateSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let state = self.state.texts(batch)?;
        let places = per_word(&state, |state| {
            let shown = STATES_SHOWN.iter().position(|shown| *shown == state);
            shown.unwrap_or(STATES_SHOWN.len())
        });
        Ok((
            self.ts.ints(batch)?,
            self.ts_end.ints(batch)?,
            state,
            places,
        ))
    }

    #[inline]
    fn add(&self, sum: &mut StateSum, (ts, ts_end, state, places): &Self::Columns<'_>, row: u32) {
        let end = ts_end
            .get(row)
            .unwrap_or(self.recording_end)
            .min(self.span.end);
        let begin = ts.at(row).max(self.span.begin);
        let place = state.key(row).map_or(STATES_SHOWN.len(), |key| places[key]);
        sum.times[place] += (end - begin).max(0);
        sum.count += 1;
    }

    fn merge(&self, sum: &mut StateSum, other: StateSum) {
        for (time, more) in sum.times.iter_mut().zip(other.times) {
            *time += more;
        }
        sum.count += other.count;
    }
}
