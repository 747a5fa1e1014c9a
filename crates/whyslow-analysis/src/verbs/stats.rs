//! `stats`: count, rate, bytes and distribution of durations per group.
//!
//! Durations are total ones, even for operations that the window cuts; the share of the window only
//! counts the part inside. An operation whose start or end was not recorded is counted, but has no
//! duration.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::failures::{Failed, Failures};
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::pass::{Pass, Summing, Unordered};
use crate::rows::{self, Place};
use crate::scan::{ColumnRef, Ints};
use crate::spec::{Field, Spec};
use crate::sweep::Parts;
use whyslow_model::histogram::Histogram;

/// A maximum this far above the median stands out …
const OUTLIER_FACTOR: i64 = 100;
/// … if it is noticeable.
const OUTLIER_MIN: Ns = 10_000_000;
/// Below this, a second thread costs more than it saves.
const GROUPS_PER_THREAD: usize = 1_000;

pub(crate) fn is_outlier(duration: Ns, median: Option<Ns>) -> bool {
    duration >= OUTLIER_MIN
        && median.is_some_and(|median| duration / OUTLIER_FACTOR >= median.max(1))
}

/// One table of statistics, by `keys`.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    name: &str,
    title: &str,
    keys: &[Key],
) -> Result<AnswerTable, AnalysisError> {
    let (_, groups) = groups(context, spec, keys)?;
    shown(context, spec, (name, title, keys), groups)
}

/// Two tables of statistics from one scan: by the first key, and by all keys.
pub(crate) fn tables(
    context: &Context<'_>,
    spec: &'static Spec,
    [(name, title), all]: [(&str, &str); 2],
    keys: &[Key],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let (stats, by_all) = groups(context, spec, keys)?;
    let mut by_first: BTreeMap<Vec<KeyValue>, StatsSum> = BTreeMap::new();
    for (group, sum) in &by_all {
        let mut of_first = group[..1].to_vec();
        of_first.extend_from_slice(&group[keys.len()..]);
        let whole = by_first.entry(of_first).or_default();
        stats.merge(whole, sum.clone());
    }
    let by_first = by_first.into_iter().collect();
    Ok(vec![
        shown(context, spec, (name, title, &keys[..1]), by_first)?,
        shown(context, spec, (all.0, all.1, keys), by_all)?,
    ])
}

fn groups(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<(Stats, Unordered<StatsSum>), AnalysisError> {
    let mut pass = context.pass(spec, keys)?;
    let interval = context.interval;
    if let Some(width) = interval {
        pass.group_by_time(context.span, width);
    }
    let stats = Stats::new(spec, context.selected(), &mut pass);
    let grouping = std::slice::from_ref(&pass.grouping);
    let groups = pass.run_by(context.tables, &stats, grouping)?;
    Ok((stats, groups.into_iter().flatten().collect()))
}

fn shown(
    context: &Context<'_>,
    spec: &'static Spec,
    (name, title, keys): (&str, &str, &[Key]),
    groups: Unordered<StatsSum>,
) -> Result<AnswerTable, AnalysisError> {
    let interval = context.interval;
    let groups = ordered(groups, keys.len());
    let place = |(_, sum): &(_, StatsSum)| sum.slowest;
    let slowest: Vec<Place> = groups.iter().filter_map(place).collect();
    let details = Slowest::fetch(context, spec, &slowest)?;

    let mut table = AnswerTable::new(name, title, columns(spec, keys, interval.is_some()));
    let parts = Parts::of_query(context);
    let names = &context.names;
    let row = |(group, sum): &(Vec<KeyValue>, StatsSum)| {
        let mut row = Vec::with_capacity(table.columns.len());
        let (values, time) = group.split_at(keys.len());
        let begin = match time.first() {
            Some(KeyValue::Int(begin)) => Some(*begin),
            _ => None,
        };
        row.extend(begin.map(Value::Int));
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, names));
        }
        let is_outlier = sum.cells(spec, parts.seconds(begin), &mut row);
        row.extend(details.cells(sum.slowest));
        (row, is_outlier)
    };
    let rows: Vec<(Vec<Value>, bool)> = if groups.len() < GROUPS_PER_THREAD {
        groups.iter().map(row).collect()
    } else {
        groups.par_iter().map(row).collect()
    };
    for (row, is_outlier) in rows {
        if is_outlier {
            table.outliers.push(table.rows.len());
        }
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, context.limit(0));
    Ok(table)
}

fn columns(spec: &Spec, keys: &[Key], by_time: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("count", "count", Measure::Count),
        column("rate_per_s", "per s", Measure::Rate).priority(6),
    ]);
    if spec.size.is_some() {
        columns.extend([
            column("bytes", "bytes", Measure::Bytes).priority(4),
            column("bytes_per_s", "bytes per s", Measure::ByteRate).priority(8),
        ]);
    }
    let duration = |name: &str, title: &str, priority| {
        column(name, title, Measure::Duration).priority(priority)
    };
    columns.extend([
        duration("min_ns", "min", 5),
        duration("avg_ns", "avg", 3),
        duration("p50_ns", "p50", 0),
        duration("p90_ns", "p90", 4),
        duration("p99_ns", "p99", 0),
        duration("p999_ns", "p99.9", 7),
        duration("max_ns", "max", 0),
        duration("stdev_ns", "stdev", 6),
        duration("total_ns", "total", 1),
        column("window_ratio", "% of window", Measure::Ratio).priority(5),
    ]);
    // With many stages, most rows only have a few.
    let rank = if spec.stages.len() > STAGES_SHOWN {
        4
    } else {
        0
    };
    for (stage, _) in spec.stages {
        for (figure, priority) in STAGE_FIGURES {
            let name = format!("{stage}_{figure}_ns");
            let title = format!("{stage} {figure}");
            let column = duration(&name, &title, priority + rank).sparse(rank > 0);
            columns.push(column);
        }
        let (name, title) = (format!("{stage}_count"), format!("{stage} count"));
        columns.push(column(&name, &title, Measure::Count).priority(8 + rank));
    }
    if spec.errno.is_some() || spec.hooks.failure.is_some() {
        columns.push(column("errors", "errors", Measure::Count).priority(5));
    }
    columns.push(column("unfinished", "cut", Measure::Count).priority(8));
    columns.extend([
        column("slowest_comm", "slowest", Measure::Text).priority(2),
        column("slowest_tid", "tid", Measure::Count).priority(2),
    ]);
    if let Some(title) = object_title(spec) {
        columns.push(column("slowest_object", title, Measure::Path).priority(2));
    }
    columns.push(column("slowest_id", "id", Measure::Id).priority(7));
    columns
}

/// With more stages, their columns are only shown in wide output.
const STAGES_SHOWN: usize = 2;

/// Statistics of each stage, with their priorities.
const STAGE_FIGURES: [(&str, u8); 7] = [
    ("p50", 2),
    ("p99", 3),
    ("total", 4),
    ("min", 8),
    ("avg", 8),
    ("max", 8),
    ("stdev", 8),
];

fn object_title(spec: &Spec) -> Option<&'static str> {
    let has = |name| spec.table.column(name).is_some();
    has("path").then_some("path")
}

/// By time, then by total in descending order, then by key.
fn ordered(groups: Unordered<StatsSum>, keys: usize) -> Unordered<StatsSum> {
    let is_many = groups.len() >= GROUPS_PER_THREAD;
    let rank = |sum: &StatsSum| Reverse((sum.durations.sums().sum(), sum.count));
    // Ranks and indexes are sorted, not the wide groups themselves.
    let mut ranked: Vec<(Reverse<(i64, u64)>, usize)> = if is_many {
        let ranks = groups.par_iter().map(|(_, sum)| rank(sum));
        ranks.enumerate().map(|(at, rank)| (rank, at)).collect()
    } else {
        let ranks = groups.iter().map(|(_, sum)| rank(sum));
        ranks.enumerate().map(|(at, rank)| (rank, at)).collect()
    };
    let order = |(rank_a, a): &(Reverse<(i64, u64)>, usize),
                 (rank_b, b): &(Reverse<(i64, u64)>, usize)| {
        let (a, b) = (&groups[*a].0, &groups[*b].0);
        let by_time = a[keys..].cmp(&b[keys..]);
        by_time.then(rank_a.cmp(rank_b)).then_with(|| a.cmp(b))
    };
    if is_many {
        ranked.par_sort_unstable_by(order);
    } else {
        ranked.sort_unstable_by(order);
    }
    let mut groups: Vec<_> = groups.into_iter().map(Some).collect();
    let taken = ranked.iter().filter_map(|(_, at)| groups[*at].take());
    taken.collect()
}

struct Stats {
    window: Option<(Window, ColumnRef)>,
    ts: ColumnRef,
    dur: ColumnRef,
    id: ColumnRef,
    size: Option<ColumnRef>,
    errno: Option<ColumnRef>,
    failures: Option<Failures>,
    stages: Vec<ColumnRef>,
}

/// The fields that every row updates are in one cache line: with many groups, memory accesses
/// dominate.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct StatsSum {
    durations: Histogram,
    count: u64,
    bytes: i64,
    errors: u64,
    /// Time inside the window.
    inside: i64,
    /// The maximum duration, if there is a place.
    slowest_ns: Ns,
    slowest: Option<Place>,
    stages: Vec<Histogram>,
}

struct StatsColumns<'b> {
    first: Spot,
    ts: Ints<'b>,
    dur: Ints<'b>,
    ts_end: Option<Ints<'b>>,
    id: Ints<'b>,
    size: Option<Ints<'b>>,
    errno: Option<Ints<'b>>,
    /// For each row's word, whether it is a failure.
    failed: Option<Failed<'b>>,
    stages: Vec<Ints<'b>>,
}

impl Stats {
    fn new(spec: &Spec, window: Option<Window>, pass: &mut Pass) -> Self {
        let projection = &mut pass.projection;
        Self {
            window: window.map(|window| (window, projection.need("ts_end"))),
            ts: projection.need("ts"),
            dur: projection.need("dur"),
            id: projection.need("id"),
            size: spec.size.map(|name| projection.need(name)),
            errno: spec.errno.map(|name| projection.need(name)),
            failures: spec
                .hooks
                .failure
                .map(|failure| Failures::new(failure, projection)),
            stages: spec
                .stages
                .iter()
                .map(|(_, name)| projection.need(name))
                .collect(),
        }
    }
}

impl Summing for Stats {
    type Columns<'b> = StatsColumns<'b>;
    type Sum = StatsSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<StatsColumns<'b>, AnalysisError> {
        let optional = |column: Option<ColumnRef>| column.map(|c| c.ints(batch)).transpose();
        Ok(StatsColumns {
            first,
            ts: self.ts.ints(batch)?,
            dur: self.dur.ints(batch)?,
            ts_end: optional(self.window.map(|(_, column)| column))?,
            id: self.id.ints(batch)?,
            size: optional(self.size)?,
            errno: optional(self.errno)?,
            failed: self
                .failures
                .map(|failures| failures.of(batch))
                .transpose()?,
            stages: self
                .stages
                .iter()
                .map(|column| column.ints(batch))
                .collect::<Result<_, _>>()?,
        })
    }

    #[inline]
    fn add(&self, sum: &mut StatsSum, columns: &StatsColumns<'_>, row: u32) {
        sum.count += 1;
        if let Some(size) = columns.size {
            sum.bytes += size.or_zero(row);
        }
        if let Some(errno) = columns.errno {
            sum.errors += u64::from(errno.or_zero(row) > 0);
        }
        if let Some(failed) = &columns.failed {
            sum.errors += u64::from(failed.has(row));
        }
        if !columns.stages.is_empty() {
            if sum.stages.is_empty() {
                sum.stages
                    .resize_with(columns.stages.len(), Histogram::default);
            }
            for (stage, column) in sum.stages.iter_mut().zip(&columns.stages) {
                column.get(row).into_iter().for_each(|ns| stage.add(ns));
            }
        }
        let Some(dur) = columns.dur.get(row) else {
            return;
        };
        sum.durations.add(dur);
        sum.inside += match (&self.window, columns.ts_end) {
            (Some((window, _)), Some(ts_end)) => {
                let ts = columns.ts.at(row);
                let end = ts_end.get(row).unwrap_or(ts).min(window.end);
                (end - ts.max(window.begin)).max(0)
            }
            _ => dur,
        };
        if dur >= sum.slowest_ns || sum.slowest.is_none() {
            let place = Place {
                ts: columns.ts.at(row),
                id: columns.id.at(row),
                spot: columns.first.row(row),
            };
            sum.offer(dur, place);
        }
    }

    fn merge(&self, sum: &mut StatsSum, other: StatsSum) {
        sum.count += other.count;
        sum.bytes += other.bytes;
        sum.errors += other.errors;
        sum.durations.merge(&other.durations);
        let stages = sum.stages.len().max(other.stages.len());
        sum.stages.resize_with(stages, Histogram::default);
        for (stage, more) in sum.stages.iter_mut().zip(&other.stages) {
            stage.merge(more);
        }
        sum.inside += other.inside;
        if let Some(place) = other.slowest {
            sum.offer(other.slowest_ns, place);
        }
    }
}

impl StatsSum {
    /// Keeps the longer one; on a tie the earlier one.
    fn offer(&mut self, dur: Ns, place: Place) {
        let better = |at: Place| (dur, Reverse(place)) > (self.slowest_ns, Reverse(at));
        if self.slowest.is_none_or(better) {
            (self.slowest_ns, self.slowest) = (dur, Some(place));
        }
    }

    /// Adds the statistics of a group to its row; returns whether its maximum stands out.
    fn cells(&self, spec: &Spec, seconds: f64, row: &mut Vec<Value>) -> bool {
        let per_second = |amount: f64| (seconds > 0.0).then(|| amount / seconds);
        let durations = &self.durations;
        let sums = durations.sums();
        row.push((self.count as i64).into());
        row.push(per_second(self.count as f64).into());
        if spec.size.is_some() {
            row.push(self.bytes.into());
            row.push(per_second(self.bytes as f64).into());
        }
        row.push(sums.min().into());
        row.push(sums.mean().into());
        let percentiles = durations.percentiles([500, 900, 990, 999]);
        row.extend(percentiles.map(Value::from));
        row.push(sums.max().into());
        row.push(sums.stdev().into());
        row.push(sums.sum().into());
        row.push(per_second(self.inside as f64 / 1e9).into());
        let none = Histogram::default();
        for stage in 0..spec.stages.len() {
            let stage = self.stages.get(stage).unwrap_or(&none);
            let sums = stage.sums();
            row.extend(stage.percentiles([500, 990]).map(Value::from));
            row.push(sums.sum().into());
            row.push(sums.min().into());
            row.push(sums.mean().into());
            row.push(sums.max().into());
            row.push(sums.stdev().into());
            row.push((stage.count() as i64).into());
        }
        if spec.errno.is_some() || spec.hooks.failure.is_some() {
            row.push((self.errors as i64).into());
        }
        row.push(((self.count - durations.count()) as i64).into());
        sums.max()
            .is_some_and(|max| is_outlier(max, percentiles[0]))
    }
}

/// Data of the slowest row of each group.
struct Slowest {
    rows: rustc_hash::FxHashMap<Spot, Vec<Value>>,
    places: Vec<Option<usize>>,
}

impl Slowest {
    fn fetch(
        context: &Context<'_>,
        spec: &'static Spec,
        places: &[Place],
    ) -> Result<Self, AnalysisError> {
        let mut names = vec!["comm", "tid"];
        names.extend(object_title(spec));
        names.push("id");
        let is_shown = |field: &&Field| names.contains(&field.name);
        let fields: Vec<Field> = spec.fields.iter().filter(is_shown).copied().collect();
        let place = |name: &&str| fields.iter().position(|field| field.name == *name);
        Ok(Self {
            places: names.iter().map(place).collect(),
            rows: rows::fetch_fields(context, spec, &fields, places)?,
        })
    }

    fn cells(&self, place: Option<Place>) -> impl Iterator<Item = Value> {
        let shown = place.and_then(|place| self.rows.get(&place.spot));
        let cell = move |place: &Option<usize>| shown?.get((*place)?).cloned();
        self.places
            .iter()
            .map(move |place| cell(place).unwrap_or(Value::Null))
    }
}
