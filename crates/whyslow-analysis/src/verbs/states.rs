//! `states usage`: time of each thread in each state, inside the window.
//!
//! A state that was still in progress at the end of the recording counts up to there. By interval,
//! a state counts in each interval with the time spent there, and as a change where it starts.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::STATES;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;

/// States with a column of their own; the others are combined.
const STATES_SHOWN: [&str; 4] = ["running", "runnable", "uninterruptible", "sleeping"];

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let mut pass = context.pass_with_cut(&STATES, keys, &context.query.filter)?;
    let parts = Parts::of_query(context);
    let times = StateTimes {
        parts,
        recording_end: context.recording_end(),
        counts_ended: context.query.counts_ended,
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
        state: pass.projection.need("state"),
    };
    let mut groups: Vec<(usize, Vec<KeyValue>, StateSum)> = Vec::new();
    for (group, sums) in pass.run(context.tables, &times)? {
        let of_group = sums.into_iter();
        groups.extend(of_group.map(|(part, sum)| (part, group.clone(), sum)));
    }
    groups.index_sort_by(|(part_a, group_a, a), (part_b, group_b, b)| {
        let by_part = part_a.cmp(part_b);
        by_part
            .then_with(|| b.times.cmp(&a.times))
            .then_with(|| group_a.cmp(group_b))
    });
    let by_time = context.interval.is_some();
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    for state in STATES_SHOWN {
        columns.push(column(&format!("{state}_ns"), state, Measure::Duration));
    }
    columns.extend([
        column("other_ns", "other", Measure::Duration).priority(4),
        column("running_ratio", "% running", Measure::Ratio).priority(2),
        column("changes", "states", Measure::Count).priority(3),
    ]);
    let mut table = AnswerTable::new("states", "time in each state", columns);
    for (part, group, sum) in groups {
        let length = parts.length(part) as f64;
        let mut row = Vec::with_capacity(table.columns.len());
        if by_time {
            row.push(parts.begin(part).into());
        }
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend(sum.times.map(Value::from));
        row.push((length > 0.0).then(|| sum.times[0] as f64 / length).into());
        row.push(sum.count.into());
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, context.limit(ROWS));
    Ok(table)
}

struct StateTimes {
    parts: Parts,
    recording_end: Ns,
    counts_ended: bool,
    ts: ColumnRef,
    ts_end: ColumnRef,
    state: ColumnRef,
}

#[derive(Default)]
struct StateSum {
    /// In the order of [`STATES_SHOWN`], then all others.
    times: [Ns; 5],
    count: i64,
}

impl Summing for StateTimes {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>, Vec<usize>);
    type Sum = BTreeMap<usize, StateSum>;

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
    fn add(&self, sums: &mut Self::Sum, (ts, ts_end, state, places): &Self::Columns<'_>, row: u32) {
        let end = ts_end.get(row);
        let counts = end.is_some() || !self.counts_ended;
        let end = end.unwrap_or(self.recording_end);
        let place = state.key(row).map_or(STATES_SHOWN.len(), |key| places[key]);
        for (number, piece) in self.parts.pieces(ts.at(row), end).enumerate() {
            let sum = sums.entry(piece.part).or_default();
            sum.times[place] += piece.length;
            sum.count += i64::from(counts && number == 0);
        }
    }

    fn merge(&self, sums: &mut Self::Sum, other: Self::Sum) {
        for (part, more) in other {
            let sum = sums.entry(part).or_default();
            for (time, more) in sum.times.iter_mut().zip(more.times) {
                *time += more;
            }
            sum.count += more.count;
        }
    }
}
