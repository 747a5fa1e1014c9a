//! `top`: the longest rows of each group, exactly as many as requested.
//!
//! A row without a recorded end has no duration to compare: such rows follow in a separate table,
//! by their known duration. A system call only counts as still in progress at the end of the
//! recording if its thread made no later call, and its result is unknown; otherwise merely its
//! return time was lost or not recorded. If events were lost later, the end may be among them: the
//! row is only known to have lasted until then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_array::RecordBatch;
use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};

use super::slug;
use crate::AnalysisError;
use crate::context::{Context, Included};
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, in_order, label};
use crate::lost_ends::LostEnds;
use crate::pass::{Pass, Summing};
use crate::query::{Filter, Sort};
use crate::rows::{self, Place, Shown};
use crate::scan::{ColumnRef, Ints};
use crate::spec::{Cell, Field, Spec};

const ROWS: usize = 10;

pub(crate) fn tables(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let limit = context.limit(ROWS);
    let mut pass = context.pass_with_cut(spec, keys, &context.query.filter)?;
    let order = Order::of(spec, context.query.sort.as_ref())?;
    let last = last_calls(context, spec)?;
    let top = Top::new(context, (spec, order), (limit, last), &mut pass);
    let groups = pass.run(context.tables, &top)?;

    let mut ranked = Vec::new();
    let mut running = Vec::new();
    for (group, sum) in in_order(spec, keys, groups) {
        ranked.push((
            label(keys, &group, &context.names),
            sum.ranked.into_places(),
        ));
        running.extend(sum.running.0.into_iter().map(|Reverse(item)| item));
    }
    running.sort_unstable_by(|a, b| b.cmp(a));
    running.truncate(limit);
    let running: Vec<Place> = running.into_iter().map(Rank::place).collect();

    let all: Vec<Place> = ranked
        .iter()
        .flat_map(|(_, places)| places)
        .chain(&running)
        .copied()
        .collect();
    let rows = rows::fetch(context, spec, &all)?;
    let mut tables = Vec::new();
    for (label, places) in ranked.iter().filter(|(_, places)| !places.is_empty()) {
        let mut table = row_table(spec, &format!("top_{}", slug(label)), label);
        for shown in places.iter().filter_map(|place| rows.get(&place.spot)) {
            push(&mut table, shown.clone());
        }
        tables.push(table);
    }
    if !running.is_empty() {
        tables.push(running_table(context, spec, &running, &rows));
    }
    Ok(tables)
}

/// A table of whole rows.
pub(crate) fn row_table(spec: &Spec, name: &str, title: &str) -> AnswerTable {
    let columns = spec.fields.iter().map(Field::answer_column);
    AnswerTable::new(name, title, columns.collect())
}

pub(crate) fn push(table: &mut AnswerTable, shown: Shown) {
    if let Some(edge) = shown.cut {
        table.cut.push((table.rows.len(), edge));
    }
    table.rows.push(shown.cells);
}

fn running_table(
    context: &Context<'_>,
    spec: &Spec,
    places: &[Place],
    rows: &FxHashMap<Spot, Shown>,
) -> AnswerTable {
    let mut table = row_table(spec, "unfinished", "unfinished");
    table.columns.insert(
        0,
        AnswerColumn::new("dur_min_ns", "at least", Measure::Duration),
    );
    for place in places {
        let Some(shown) = rows.get(&place.spot) else {
            continue;
        };
        push(&mut table, shown.clone());
        if let Some(row) = table.rows.last_mut() {
            let until = known_until(&context.lost_ends, spec, place.ts);
            row.insert(0, (until - place.ts).into());
        }
    }
    table
}

/// Until when a row without an end is known to have lasted. Kinds without a column for it mark what a
/// loss made unknown by rows of their own.
fn known_until(ends: &LostEnds, spec: &Spec, ts: Ns) -> Ns {
    match spec.table.column("cut") {
        Some(_) => ends.known_until(ts),
        None => ends.recording_end(),
    }
}

/// The sort order of the top rows.
struct Order {
    column: &'static str,
    ascending: bool,
}

impl Order {
    fn of(spec: &Spec, sort: Option<&Sort>) -> Result<Self, AnalysisError> {
        let Some(sort) = sort else {
            return Ok(Self {
                column: "dur",
                ascending: false,
            });
        };
        let ranks: Vec<(&str, &'static str)> = spec
            .fields
            .iter()
            .filter(|field| {
                matches!(
                    field.measure,
                    Measure::Duration | Measure::Bytes | Measure::Time
                )
            })
            .filter_map(|field| match field.cell {
                Cell::Int(column) => Some((field.name, column)),
                _ => None,
            })
            .collect();
        let found = ranks
            .iter()
            .find(|(name, column)| *name == sort.column || *column == sort.column);
        let (_, column) = found.ok_or_else(|| {
            let names: Vec<&str> = ranks.iter().map(|(name, _)| *name).collect();
            AnalysisError::query(
                format!("cannot sort by `{}`", sort.column),
                format!("use one of {}", names.join(", ")),
            )
        })?;
        Ok(Self {
            column,
            ascending: sort.ascending,
        })
    }
}

/// Greater ranks are shown first: by value, then the earlier row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(i64, Reverse<Place>);

impl Rank {
    fn place(self) -> Place {
        self.1.0
    }
}

/// The greatest ranks so far, the smallest of them on top.
#[derive(Default)]
struct Best(BinaryHeap<Reverse<Rank>>);

impl Best {
    /// Whether a row with this value can be among the greatest: a cheap test that rejects most
    /// rows.
    #[inline]
    fn may_take(&self, value: i64, limit: usize) -> bool {
        let least = self.0.peek();
        self.0.len() < limit || least.is_some_and(|least| value >= least.0.0)
    }

    #[inline]
    fn offer(&mut self, rank: Rank, limit: usize) {
        if self.0.len() < limit {
            self.0.push(Reverse(rank));
        } else if let Some(mut least) = self.0.peek_mut()
            && least.0 < rank
        {
            *least = Reverse(rank);
        }
    }

    fn into_places(self) -> Vec<Place> {
        let sorted = self.0.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse(rank)| rank.place())
            .collect()
    }
}

/// By `ts` and id.
type LastCalls = FxHashSet<(Ns, i64)>;

/// The last row of each thread, for kinds of which a thread has one row at a time, if the recording
/// has rows without an end; `None` for other kinds.
fn last_calls(context: &Context<'_>, spec: &Spec) -> Result<Option<LastCalls>, AnalysisError> {
    let Some(all) = spec.hooks.one_at_a_time else {
        return Ok(None);
    };
    let info = context.tables.info().tables.get(spec.table.name);
    if info.is_none_or(|info| info.unfinished == 0) {
        return Ok(Some(FxHashSet::default()));
    }
    let mut pass = context.pass_including(
        Included::WAITS,
        all,
        &[Key::Thread],
        &Filter::default(),
        None,
    )?;
    let last = Last(["ts", "id"].map(|name| pass.projection.need(name)));
    let threads = pass.run(context.tables, &last)?.into_iter();
    let known = threads.filter(|(thread, _)| *thread != [KeyValue::Null]);
    Ok(Some(known.map(|(_, place)| place).collect()))
}

/// The last row of a group.
struct Last([ColumnRef; 2]);

impl Summing for Last {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = (Ns, i64);

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        let [ts, id] = self.0;
        Ok([ts.ints(batch)?, id.ints(batch)?])
    }

    fn start(&self, _: usize, _: &dyn Fn() -> Vec<KeyValue>) -> (Ns, i64) {
        (Ns::MIN, i64::MIN)
    }

    #[inline]
    fn add(&self, last: &mut (Ns, i64), [ts, id]: &[Ints<'_>; 2], row: u32) {
        *last = (*last).max((ts.at(row), id.at(row)));
    }

    fn merge(&self, last: &mut (Ns, i64), other: (Ns, i64)) {
        *last = (*last).max(other);
    }
}

struct Top<'c> {
    limit: usize,
    ascending: bool,
    counts_ended: bool,
    spec: &'static Spec,
    ends: &'c LostEnds,
    /// Calls that may have been in progress at the end; `None` if this holds for every row without
    /// an end.
    last: Option<LastCalls>,
    value: ColumnRef,
    ts: ColumnRef,
    ts_end: ColumnRef,
    id: ColumnRef,
    /// Return value of calls.
    ret: Option<ColumnRef>,
}

#[derive(Default)]
struct TopSum {
    ranked: Best,
    running: Best,
}

impl<'c> Top<'c> {
    fn new(
        context: &'c Context<'_>,
        (spec, order): (&'static Spec, Order),
        (limit, last): (usize, Option<LastCalls>),
        pass: &mut Pass,
    ) -> Self {
        let projection = &mut pass.projection;
        Self {
            limit,
            ascending: order.ascending,
            counts_ended: context.query.counts_ended,
            spec,
            ends: &context.lost_ends,
            ret: last.as_ref().map(|_| projection.need("ret")),
            last,
            value: projection.need(order.column),
            ts: projection.need("ts"),
            ts_end: projection.need("ts_end"),
            id: projection.need("id"),
        }
    }
}

impl Summing for Top<'_> {
    type Columns<'b> = ([Ints<'b>; 4], Option<Ints<'b>>, Spot);
    type Sum = TopSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let columns = [
            self.value.ints(batch)?,
            self.ts.ints(batch)?,
            self.ts_end.ints(batch)?,
            self.id.ints(batch)?,
        ];
        let ret = self.ret.map(|column| column.ints(batch)).transpose()?;
        Ok((columns, ret, first))
    }

    #[inline]
    fn add(&self, sum: &mut TopSum, (columns, ret, first): &Self::Columns<'_>, row: u32) {
        let [value, ts, ts_end, id] = columns;
        let place = || Place {
            ts: ts.at(row),
            id: id.at(row),
            spot: first.row(row),
        };
        let is_counted = !self.counts_ended || ts_end.get(row).is_some();
        if let Some(value) = value.get(row).filter(|_| is_counted) {
            let value = if self.ascending {
                value.saturating_neg()
            } else {
                value
            };
            if sum.ranked.may_take(value, self.limit) {
                sum.ranked.offer(Rank(value, Reverse(place())), self.limit);
            }
        } else if ts_end.get(row).is_none() {
            let may_run = |last: &LastCalls| last.contains(&(ts.at(row), id.at(row)));
            let has_returned = ret.as_ref().is_some_and(|ret| ret.get(row).is_some());
            if !has_returned && self.last.as_ref().is_none_or(may_run) {
                let ts = ts.at(row);
                let known = known_until(self.ends, self.spec, ts) - ts;
                sum.running.offer(Rank(known, Reverse(place())), self.limit);
            }
        }
    }

    fn merge(&self, sum: &mut TopSum, other: TopSum) {
        for Reverse(rank) in other.ranked.0 {
            sum.ranked.offer(rank, self.limit);
        }
        for Reverse(rank) in other.running.0 {
            sum.running.offer(rank, self.limit);
        }
    }
}
