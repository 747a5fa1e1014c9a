//! `hist`: distribution of durations, per group, by powers of two or in equal parts.
//!
//! Only known durations are counted. Every table has facts about what was measured: filters, time,
//! count, percentiles.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Form, Measure, Value};

use super::slug;
use super::stats::is_outlier;
use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, in_order, label};
use crate::pass::{Groups, Summing};
use crate::query::{Bins, DeviceRef, Filter};
use crate::scan::{ColumnRef, Ints};
use crate::spec::Spec;
use crate::statistics::hypergeometric_tail;
use whyslow_model::histogram::Histogram;

/// Maximum number of equal buckets: more are unreadable, and each costs memory.
const BINS_MAX: usize = 10_000;
/// One of two series has far more rows from a bucket on if their share is this many times that of
/// the other …
const BEYOND_TIMES: i64 = 10;
/// … and the difference has at most this chance over all buckets (Fisher's exact test).
const BEYOND_LEVEL: f64 = 0.01;

/// One distribution: a group, or one of two devices.
struct Series {
    name: String,
    filter: Filter,
    group: Vec<KeyValue>,
    histogram: Histogram,
}

pub(crate) fn tables(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    if let Bins::Linear { count, .. } = context.query.bins
        && !(1..=BINS_MAX).contains(&count)
    {
        let message = format!("invalid number of buckets: {count}");
        let hint = format!("use 1 to {BINS_MAX}");
        return Err(AnalysisError::query(message, hint));
    }
    let filter = &context.query.filter;
    let Some(versus) = &context.query.versus else {
        let series = measure(context, spec, keys, filter)?;
        let edges = edges(context.query.bins, &series);
        let counts = count(context, spec, (keys, filter), &series, &edges)?;
        let columns = series.iter().zip(edges).zip(counts);
        return Ok(columns
            .map(|((series, edges), counts)| {
                let name = format!("hist_{}", slug(&series.name));
                table(context, (&name, &series.name), &edges, &[(series, counts)])
            })
            .collect());
    };
    side_by_side(context, spec, versus)
}

/// The same query for two devices, in two columns of one table.
fn side_by_side(
    context: &Context<'_>,
    spec: &'static Spec,
    versus: &DeviceRef,
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let first = context.query.filter.clone();
    let second = Filter {
        devices: vec![versus.clone()],
        ..first.clone()
    };
    let mut both = Vec::new();
    for filter in [first, second] {
        let names: Vec<String> = filter.devices.iter().map(ToString::to_string).collect();
        let mut series = measure(context, spec, &[], &filter)?
            .pop()
            .unwrap_or(Series {
                name: String::new(),
                filter,
                group: Vec::new(),
                histogram: Histogram::default(),
            });
        series.name = if names.is_empty() {
            "all devices".into()
        } else {
            names.join(" ")
        };
        both.push(series);
    }
    let shared = match context.query.bins {
        Bins::Log => Bins::Log,
        Bins::Linear { count, .. } => Bins::Linear {
            count,
            uniform: true,
        },
    };
    let edges = common_edges(shared, &both);
    let mut columns = Vec::new();
    for series in &both {
        let one = std::slice::from_ref(series);
        let edges = std::slice::from_ref(&edges);
        let counts = count(context, spec, (&[], &series.filter), one, edges)?.pop();
        columns.push((series, counts.unwrap_or_default()));
    }
    let title = format!("{} against {}", both[0].name, both[1].name);
    Ok(vec![table(
        context,
        ("hist_versus", &title),
        &edges,
        &columns,
    )])
}

fn measure(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
    filter: &Filter,
) -> Result<Vec<Series>, AnalysisError> {
    let mut pass = context.pass_of(spec, keys, filter)?;
    let durations = Durations(pass.projection.need(context.latency(spec)?));
    let groups = pass.run(context.tables, &durations)?;
    let groups = in_order(spec, keys, groups).into_iter();
    let series = groups.map(|(group, histogram)| Series {
        name: label(keys, &group, &context.names),
        filter: filter.clone(),
        group,
        histogram: histogram.0,
    });
    Ok(series
        .filter(|series| series.histogram.count() > 0)
        .collect())
}

/// Buckets `[edge, next edge)`; the last one of equal parts includes its upper edge.
type Edges = Vec<Ns>;

fn edges(bins: Bins, series: &[Series]) -> Vec<Edges> {
    match bins {
        Bins::Linear { uniform: true, .. } => vec![common_edges(bins, series); series.len()],
        _ => series
            .iter()
            .map(|one| common_edges(bins, std::slice::from_ref(one)))
            .collect(),
    }
}

fn common_edges(bins: Bins, series: &[Series]) -> Edges {
    let min = series
        .iter()
        .filter_map(|series| series.histogram.sums().min())
        .min();
    let max = series
        .iter()
        .filter_map(|series| series.histogram.sums().max())
        .max();
    let (Some(min), Some(max)) = (min, max) else {
        return Edges::new();
    };
    match bins {
        Bins::Log => {
            let octave = |value: Ns| {
                if value > 0 {
                    i64::from(value.ilog2())
                } else {
                    -1
                }
            };
            let edge = |octave: i64| match octave {
                -1 => 0,
                63 => Ns::MAX,
                octave => 1 << octave,
            };
            (octave(min)..=octave(max) + 1).map(edge).collect()
        }
        Bins::Linear { .. } if min == max => vec![min, max],
        Bins::Linear { count, .. } => {
            let width = i128::from(max) - i128::from(min);
            // The first duration of each part: a boundary between two ns belongs to the lower part.
            let up = count as i128 - 1;
            let edge = |place: usize| min + ((width * place as i128 + up) / count as i128) as i64;
            let mut edges: Edges = (0..=count).map(edge).collect();
            // More buckets than ns between minimum and maximum: empty ones are removed.
            edges.dedup();
            edges
        }
    }
}

/// Counts of the series in their buckets.
fn count(
    context: &Context<'_>,
    spec: &'static Spec,
    (keys, filter): (&[Key], &Filter),
    series: &[Series],
    edges: &[Edges],
) -> Result<Vec<Vec<i64>>, AnalysisError> {
    if context.query.bins == Bins::Log {
        let by_octave = |(series, edges): (&Series, &Edges)| {
            let mut counts = vec![0; edges.len().saturating_sub(1)];
            for (octave, count) in series.histogram.octaves() {
                let low = octave.map_or(0, |octave| 1 << octave);
                if let Some(place) = edges.iter().position(|edge| *edge == low) {
                    counts[place] += count as i64;
                }
            }
            counts
        };
        return Ok(series.iter().zip(edges).map(by_octave).collect());
    }
    let of_group = series.iter().map(|series| series.group.clone());
    let mut pass = context.pass_of(spec, keys, filter)?;
    let linear = LinearCounts {
        dur: pass.projection.need(context.latency(spec)?),
        edges: of_group.zip(edges.iter().cloned()).collect(),
    };
    let mut groups: Groups<LinearSum> = pass.run(context.tables, &linear)?;
    let counts = |series: &Series| groups.take(&series.group).unwrap_or_default().counts;
    Ok(series.iter().map(counts).collect())
}

fn table(
    context: &Context<'_>,
    (name, title): (&str, &str),
    edges: &[Ns],
    series: &[(&Series, Vec<i64>)],
) -> AnswerTable {
    let mut columns = vec![
        AnswerColumn::new("from_ns", "from", Measure::Duration),
        AnswerColumn::new("to_ns", "to", Measure::Duration),
    ];
    for (one, _) in series {
        let name = if series.len() == 1 {
            "count"
        } else {
            &one.name
        };
        columns.push(AnswerColumn::new(name, name, Measure::Count));
    }
    let mut table = AnswerTable::new(name, title, columns);
    table.form = Form::Histogram;
    let beyond = match series {
        [(_, first), (_, second)] => beyond([first, second]),
        _ => None,
    };
    for (place, pair) in edges.windows(2).enumerate() {
        let mut row = vec![Value::Int(pair[0]), Value::Int(pair[1])];
        let mut outlier = false;
        for (number, (one, counts)) in series.iter().enumerate() {
            let count = counts.get(place).copied().unwrap_or(0);
            let is_beyond = beyond.is_some_and(|(side, from)| side == number && place >= from);
            let stands_out = is_beyond || is_outlier(pair[0], one.histogram.percentile(500));
            outlier |= count > 0 && stands_out;
            row.push(count.into());
        }
        if outlier {
            table.outliers.push(place);
        }
        table.rows.push(row);
    }
    for (one, _) in series {
        let prefix = if series.len() == 1 { "" } else { &one.name };
        facts::measured(context, &one.filter, prefix, &mut table);
        facts::distribution(&one.histogram, prefix, &mut table);
    }
    table
}

/// The series of two that has far more rows from some bucket on, and that bucket: such buckets
/// stand out, even if they are near the median of the series itself.
fn beyond(series: [&[i64]; 2]) -> Option<(usize, usize)> {
    let totals = series.map(|counts| counts.iter().sum::<i64>());
    let buckets = series[0].len().min(series[1].len());
    let level = BEYOND_LEVEL / buckets.max(1) as f64;
    (1..buckets).find_map(|place| {
        let tails = series.map(|counts| counts[place..].iter().sum::<i64>());
        let is_upper = [0, 1].iter().all(|side| 2 * tails[*side] <= totals[*side]);
        let side = [0, 1].into_iter().find(|side| {
            let [(k, n), (other, rest)] =
                [*side, 1 - *side].map(|side| (tails[side], totals[side]));
            let times = i128::from(BEYOND_TIMES);
            let is_much =
                i128::from(k) * i128::from(rest) > times * i128::from(other) * i128::from(n);
            let [k, n, marked, all] = [k, n, k + other, n + rest].map(i64::cast_unsigned);
            is_much && hypergeometric_tail(k, n, marked, all) <= level
        });
        side.filter(|_| is_upper).map(|side| (side, place))
    })
}

struct Durations(ColumnRef);

#[derive(Default)]
struct DurationSum(Histogram);

impl Summing for Durations {
    type Columns<'b> = Ints<'b>;
    type Sum = DurationSum;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    #[inline]
    fn add(&self, sum: &mut DurationSum, dur: &Ints<'_>, row: u32) {
        if let Some(dur) = dur.get(row) {
            sum.0.add(dur);
        }
    }

    fn merge(&self, sum: &mut DurationSum, other: DurationSum) {
        sum.0.merge(&other.0);
    }
}

struct LinearCounts {
    dur: ColumnRef,
    edges: BTreeMap<Vec<KeyValue>, Edges>,
}

#[derive(Default)]
struct LinearSum {
    edges: Edges,
    counts: Vec<i64>,
}

impl Summing for LinearCounts {
    type Columns<'b> = Ints<'b>;
    type Sum = LinearSum;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.dur.ints(batch)
    }

    fn start(&self, _: usize, group: &dyn Fn() -> Vec<KeyValue>) -> LinearSum {
        let edges = self.edges.get(&group()).cloned().unwrap_or_default();
        LinearSum {
            counts: vec![0; edges.len().saturating_sub(1).max(1)],
            edges,
        }
    }

    #[inline]
    fn add(&self, sum: &mut LinearSum, dur: &Ints<'_>, row: u32) {
        if let Some(dur) = dur.get(row) {
            let above = sum.edges.partition_point(|edge| *edge <= dur);
            let place = above.saturating_sub(1).min(sum.counts.len() - 1);
            sum.counts[place] += 1;
        }
    }

    fn merge(&self, sum: &mut LinearSum, other: LinearSum) {
        for (count, more) in sum.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::beyond;

    /// Two disks of the same workload, as in the article about latency outliers of devices: buckets
    /// from 16 us to 1 s.
    #[test]
    fn every_bucket_of_the_slow_disk_beyond_the_other_stands_out() {
        let slow = [0, 0, 2, 14, 4, 2, 7, 19, 37, 59, 14, 0, 10, 11, 10, 6, 4];
        let usual = [0, 0, 0, 19, 16, 1, 9, 28, 56, 49, 18, 0, 0, 0, 0, 0, 0];
        // 32 ms is empty, so marks begin at 65 ms.
        assert_eq!(beyond([&slow, &usual]), Some((0, 11)));
        assert_eq!(beyond([&usual, &slow]), Some((1, 11)));
        assert_eq!(beyond([&usual, &usual]), None);
        // Two long requests may be chance.
        let mut two = usual;
        two[14] = 2;
        assert_eq!(beyond([&two, &usual]), None);
        assert_eq!(beyond([&[], &[]]), None);
    }
}
