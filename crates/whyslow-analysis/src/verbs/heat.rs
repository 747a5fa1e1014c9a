//! `heat`: time × duration (powers of two), with the number of rows and the sum of their durations
//! in each cell. A row counts at its start, or at the start of the window if it started before.
//! Incomplete rows have no duration and are not in the map.

use std::cmp::Reverse;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::Spot;
use crate::grouping::TimeKey;
use crate::keys::{Key, KeyValue};
use crate::pass::Summing;
use crate::query::Weight;
use crate::scan::{ColumnRef, Ints};
use crate::spec::Spec;

/// Number of columns if the query has no interval.
const COLUMNS: i64 = 60;
/// Maximum number of maps that can be compared at a glance.
const GROUPS: usize = 6;

/// One table; with keys, it has the cells of one map per group, the groups with the most rows (or
/// the greatest sum of durations) first.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<AnswerTable, AnalysisError> {
    let span = context.span;
    let width = context.interval.unwrap_or_else(|| {
        let length = span.length().max(1);
        length / COLUMNS + i64::from(length % COLUMNS > 0)
    });
    let mut pass = context.pass(spec, keys)?;
    let ts = pass.projection.need("ts");
    let heat = Heat {
        time: TimeKey {
            column: ts,
            span,
            width,
        },
        dur: pass.projection.need(context.latency(spec)?),
    };
    let mut unknown = 0;
    let mut maps: Vec<Map> = Vec::new();
    for (group, sum) in pass.run(context.tables, &heat)? {
        unknown += sum.unknown;
        let map = Map::new(group, sum);
        maps.extend((!map.cells.is_empty()).then_some(map));
    }
    let weight = context.query.weight;
    // Stable: groups of equal weight are in the order of their keys.
    maps.index_sort_by_key(|map| Reverse(map.weight(weight)));
    let groups = maps.len();
    let left_out = maps.split_off(groups.min(context.limit(GROUPS)));
    let mut table = AnswerTable::new("heat", spec.rows, columns(keys));
    table.form = Form::HeatMap;
    for Map { group, cells, .. } in maps {
        let named = keys.iter().zip(&group);
        let name: Vec<Value> = named
            .flat_map(|(key, value)| key.cells(value, &context.names))
            .collect();
        for ((time, octave), cell) in cells {
            let (from, to) = bounds(octave);
            let mut row = name.clone();
            row.extend([
                time.into(),
                from,
                to,
                cell.count.into(),
                cell.intensity.into(),
            ]);
            table.rows.push(row);
        }
    }
    facts::measured(context, &context.query.filter, "", &mut table);
    push_scale(context, width, &mut table);
    if !keys.is_empty() {
        push_left_out(context, spec, (groups, &left_out), &mut table);
    }
    if unknown > 0 {
        context.note(format!(
            "{unknown} {} without a known start or end are not in the map",
            spec.rows
        ));
    }
    Ok(table)
}

fn push_scale(context: &Context<'_>, width: Ns, table: &mut AnswerTable) {
    let weight = match context.query.weight {
        Weight::Count => "count",
        Weight::Intensity => "intensity",
    };
    facts::push(table, "weight", "weight", Measure::Text, weight);
    let begin = context.span.begin;
    facts::push(table, "begin_ns", "start", Measure::Time, begin);
    facts::push(table, "width_ns", "column width", Measure::Duration, width);
}

/// The number of groups, and the totals of those that are not shown.
fn push_left_out(
    context: &Context<'_>,
    spec: &Spec,
    (groups, left_out): (usize, &[Map]),
    table: &mut AnswerTable,
) {
    let rows: i64 = left_out.iter().map(|map| map.count).sum();
    let more = left_out.len();
    let mut fact = |name, title: &str, count: i64| {
        facts::push(table, name, title, Measure::Count, count);
    };
    fact("groups", "groups", groups as i64);
    fact("groups_left_out", "groups not shown", more as i64);
    fact("rows_left_out", &format!("{} not shown", spec.rows), rows);
    if more > 0 {
        context.note(format!(
            "{more} more groups with {rows} {} not shown (-n 0 shows all)",
            spec.rows
        ));
    }
}

/// The part of a group in the answer.
struct Map {
    group: Vec<KeyValue>,
    cells: Vec<((Ns, u8), HeatCell)>,
    count: i64,
    intensity: Ns,
}

impl Map {
    fn new(group: Vec<KeyValue>, sum: HeatSum) -> Self {
        let cells = sum.into_cells();
        let all = || cells.iter().map(|(_, cell)| cell);
        Self {
            count: all().map(|cell| cell.count).sum(),
            intensity: all().fold(0, |sum, cell| sum.saturating_add(cell.intensity)),
            group,
            cells,
        }
    }

    fn weight(&self, weight: Weight) -> i64 {
        match weight {
            Weight::Count => self.count,
            Weight::Intensity => self.intensity,
        }
    }
}

fn columns(keys: &[Key]) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("time_ns", "time", Measure::Time),
        column("from_ns", "from", Measure::Duration),
        column("to_ns", "to", Measure::Duration),
        column("count", "count", Measure::Count),
        column("intensity_ns", "intensity", Measure::Duration),
    ]);
    columns
}

/// 0 for zero, otherwise 1 + the power of two.
fn octave_of(dur: Ns) -> u8 {
    if dur > 0 { dur.ilog2() as u8 + 1 } else { 0 }
}

fn bounds(octave: u8) -> (Value, Value) {
    let edge = |octave: u8| match octave {
        0 => 0,
        64 => Ns::MAX,
        octave => 1 << (octave - 1),
    };
    (edge(octave).into(), edge(octave + 1).into())
}

struct Heat {
    time: TimeKey,
    dur: ColumnRef,
}

#[derive(Default, Clone, Copy)]
struct HeatCell {
    count: i64,
    intensity: Ns,
}

/// Cells of each column, by octave. Rows come in time order, so the last column used is usually the
/// next one, too.
#[derive(Default)]
struct HeatSum {
    columns: FxHashMap<Ns, Vec<HeatCell>>,
    last: Option<Window>,
    cells: Vec<HeatCell>,
    /// Rows without a duration.
    unknown: i64,
}

impl HeatSum {
    /// Makes the column of this time the last one used.
    #[inline(never)]
    fn turn_to(&mut self, ts: Ns, time: &TimeKey) {
        self.put_back();
        let begin = time.begin(ts);
        // Times outside the span belong to its edges: they are looked up again each time.
        let end = begin.saturating_add(time.width).min(time.span.end);
        self.last = Some(Window::new(begin, end.max(begin)));
        self.cells = self.columns.remove(&begin).unwrap_or_default();
    }

    fn put_back(&mut self) {
        if let Some(column) = self.last.take() {
            self.columns
                .insert(column.begin, std::mem::take(&mut self.cells));
        }
    }

    fn into_cells(mut self) -> Vec<((Ns, u8), HeatCell)> {
        self.put_back();
        let mut all = Vec::new();
        for (begin, cells) in self.columns {
            let filled = (0..).zip(cells).filter(|(_, cell)| cell.count > 0);
            all.extend(filled.map(|(octave, cell)| ((begin, octave), cell)));
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        all
    }
}

impl Summing for Heat {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = HeatSum;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        Ok([self.time.column.ints(batch)?, self.dur.ints(batch)?])
    }

    #[inline]
    fn add(&self, sum: &mut HeatSum, [ts, dur]: &[Ints<'_>; 2], row: u32) {
        let Some(dur) = dur.get(row) else {
            sum.unknown += 1;
            return;
        };
        let ts = ts.at(row);
        if sum.last.is_none_or(|column| !column.contains(ts)) {
            sum.turn_to(ts, &self.time);
        }
        let octave = usize::from(octave_of(dur));
        if octave >= sum.cells.len() {
            sum.cells.resize(octave + 1, HeatCell::default());
        }
        let cell = &mut sum.cells[octave];
        cell.count += 1;
        cell.intensity = cell.intensity.saturating_add(dur);
    }

    fn merge(&self, sum: &mut HeatSum, mut other: HeatSum) {
        sum.put_back();
        other.put_back();
        sum.unknown += other.unknown;
        for (begin, more) in other.columns {
            let cells = sum.columns.entry(begin).or_default();
            let octaves = cells.len().max(more.len());
            cells.resize(octaves, HeatCell::default());
            for (cell, more) in cells.iter_mut().zip(more) {
                cell.count += more.count;
                cell.intensity = cell.intensity.saturating_add(more.intensity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, bounds, octave_of};

    #[test]
    fn a_duration_lies_in_its_power_of_two() {
        for dur in [0, 1, 2, 3, 4, 1023, 1024, i64::MAX] {
            let (Value::Int(from), Value::Int(to)) = bounds(octave_of(dur)) else {
                panic!("bounds are numbers");
            };
            assert!(
                from <= dur && (dur < to || to == i64::MAX),
                "{dur}: {from}..{to}"
            );
        }
    }
}
