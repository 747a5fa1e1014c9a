//! A summary of a recording in kilobytes: operations per second and their durations, in histograms
//! that can be merged with those of other recordings.
//!
//! Each kind has several dimensions: all of it, and by process, device, file pattern and the like.
//! The [`KEYS_MAX`] keys of a dimension with the most time are listed by name; the rest are
//! combined as [`OTHERS`], so that the totals of each dimension are those of all rows.
//!
//! Rows count in the second in which they start. Those of the recorder are included, as in answers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::context::Context;
use crate::failures::{Failed, Failures};
use crate::fold::Spot;
use crate::grouping::{Grouping, Object};
use crate::keys::{Key, KeyValue};
use crate::kinds;
use crate::pass::Summing;
use crate::query::{Query, Verb};
use crate::scan::{ColumnRef, Ints};
use crate::spec::Spec;
use whyslow_model::histogram::{EXACT_MAX, Histogram, bucket_of};

/// Maximum number of keys of a dimension that are listed by name.
pub const KEYS_MAX: usize = 16;
/// All other keys together.
pub const OTHERS: &str = "(others)";
/// Rows without such a key: it is unknown, or there is none.
pub const NONE: &str = "(none)";
/// The dimension of all rows, with an empty key.
pub const ALL: &str = "all";

const SECOND: Ns = 1_000_000_000;

/// Rollup of a kind.
struct RollupEntry {
    spec: &'static Spec,
    /// Key of the operation class; `None` for kinds with a single class.
    op: Option<Key>,
    dimensions: &'static [(&'static str, Key)],
}

fn entries() -> [RollupEntry; 8] {
    const PROCESS: (&str, Key) = ("process", Key::Pool);
    let entry = |spec, op, dimensions| RollupEntry {
        spec,
        op,
        dimensions,
    };
    [
        entry(
            &kinds::IO,
            Some(Key::Op),
            &[PROCESS, ("file", Key::Pattern)],
        ),
        entry(
            &kinds::BLOCK,
            Some(Key::Op),
            &[PROCESS, ("device", Key::Dev)],
        ),
        entry(&kinds::SCHED, None, &[PROCESS]),
        entry(&kinds::SLICES, None, &[PROCESS]),
        entry(&kinds::LOCKS, Some(Key::Kind), &[PROCESS]),
        entry(&kinds::RECLAIM, Some(Key::Kind), &[PROCESS]),
        entry(&kinds::LOOKUPS, None, &[PROCESS, ("name", Key::Host)]),
        entry(
            &kinds::REQUESTS,
            Some(Key::Role),
            &[("endpoint", Key::Endpoint), ("outcome", Key::Outcome)],
        ),
    ]
}

/// A kind with rollups.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The kind of query that shows the rows themselves.
    pub kind: crate::query::Kind,
    /// Name in column `kind` of the lake tables.
    pub name: &'static str,
    /// The table that it reads.
    pub table: &'static str,
    /// The key of its operation class.
    pub op: Option<&'static str>,
}

/// Every kind, in the order of [`rollup`].
pub fn kinds() -> Vec<Kind> {
    let kind = |entry: &RollupEntry| Kind {
        kind: entry.spec.kind,
        name: entry.spec.name,
        table: entry.spec.table.name,
        op: entry.op.map(Key::name),
    };
    entries().iter().map(kind).collect()
}

/// Operations of one second with the same key of a dimension.
#[derive(Debug, Clone)]
pub struct Cell {
    /// [`Kind::name`] of its kind.
    pub kind: &'static str,
    /// Name of the dimension; [`ALL`] has every row.
    pub dimension: &'static str,
    /// Value of the dimension; [`OTHERS`] and [`NONE`] for those without a key of their own.
    pub key: String,
    /// Class of the operation; empty if the kind has none.
    pub op: String,
    /// Start of the second, ns since the epoch.
    pub ts: Ns,
    /// Number of operations that started in that second, including those with unknown end.
    pub count: u64,
    /// Number of failed ones; `None` if unknown.
    pub errors: Option<u64>,
    /// Bytes transferred; `None` for kinds without.
    pub bytes: Option<i64>,
    durations: Histogram,
    /// Whether exact values are reported: the key has few of them in the whole recording.
    is_exact: bool,
}

/// Operations of a cell with similar durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Number of the bucket: one per ns below 64, then 32 equal ones per octave.
    pub bucket: i32,
    /// Duration in ns if the recording has at most 64 such operations; otherwise the middle of the
    /// bucket represents it.
    pub value_ns: Option<Ns>,
    /// Number of operations.
    pub count: u64,
}

impl Cell {
    /// Number of operations with a known duration.
    pub fn finished(&self) -> u64 {
        self.durations.count()
    }

    /// Sum of the durations, ns.
    pub fn total_ns(&self) -> Ns {
        self.durations.sums().sum()
    }

    /// Minimum duration in ns; `None` without known durations.
    pub fn min_ns(&self) -> Option<Ns> {
        self.durations.sums().min()
    }

    /// Maximum duration in ns; `None` without known durations.
    pub fn max_ns(&self) -> Option<Ns> {
        self.durations.sums().max()
    }

    /// In order of duration.
    pub fn buckets(&self) -> Vec<Bucket> {
        if let Some(values) = self.durations.values().filter(|_| self.is_exact) {
            let mut values = values.to_vec();
            values.sort_unstable();
            let same = values.chunk_by(|a, b| a == b);
            let bucket = |values: &[Ns]| Bucket {
                bucket: bucket_of(values[0]) as i32,
                value_ns: Some(values[0]),
                count: values.len() as u64,
            };
            return same.map(bucket).collect();
        }
        let buckets = self.durations.buckets().into_iter();
        let bucket = |(bucket, count)| Bucket {
            bucket: bucket as i32,
            value_ns: None,
            count,
        };
        buckets.map(bucket).collect()
    }
}

/// The duration in the middle of a bucket, ns.
pub fn middle_of(bucket: i32) -> Ns {
    whyslow_model::histogram::middle(bucket.max(0) as usize)
}

/// All cells of a recording, sorted by kind, dimension, key, operation and time. Kinds that were
/// not recorded have none.
pub fn rollup(tables: &dyn Tables) -> Result<Vec<Cell>, AnalysisError> {
    let mut cells = Vec::new();
    for entry in &entries() {
        let query = Query {
            // Summaries of former versions include them.
            waits: true,
            ..Query::new(entry.spec.kind, Verb::Stats)
        };
        let context = Context::new(tables, &query)?;
        if context.has(entry.spec.table.name) {
            of_kind(&context, entry, &mut cells)?;
        }
    }
    Ok(cells)
}

fn of_kind(
    context: &Context<'_>,
    entry: &RollupEntry,
    cells: &mut Vec<Cell>,
) -> Result<(), AnalysisError> {
    let spec = entry.spec;
    let keys_of = |dimension: Option<Key>| -> Vec<Key> {
        let keys = dimension.into_iter().chain(entry.op);
        keys.collect()
    };
    let mut pass = context.pass(spec, &keys_of(None))?;
    let (first, last) = (context.span.begin, context.span.end);
    let seconds = Window::new(first - first.rem_euclid(SECOND), last.saturating_add(1));
    pass.group_by_time(seconds, SECOND);
    let mut groupings = vec![pass.grouping.clone()];
    for (_, key) in entry.dimensions {
        let keys = (&*keys_of(Some(*key)), Object::First);
        let mut grouping = Grouping::new(spec, keys, &context.names, &mut pass.projection);
        grouping.push_time(crate::grouping::TimeKey {
            column: pass.projection.need("ts"),
            span: seconds,
            width: SECOND,
        });
        groupings.push(grouping);
    }
    let projection = &mut pass.projection;
    let sums = Sums {
        dur: projection.need("dur"),
        size: spec.size.map(|name| projection.need(name)),
        errno: spec.errno.map(|name| projection.need(name)),
        failures: spec
            .hooks
            .failure
            .map(|failure| Failures::new(failure, projection)),
    };
    let grouped = pass.run_by(context.tables, &sums, &groupings)?;
    let dimensions = entry.dimensions.iter().map(|(name, _)| *name);
    let dimensions = std::iter::once(ALL).chain(dimensions);
    for (dimension, groups) in dimensions.zip(grouped) {
        let parts = groups.into_iter().map(|(values, sum)| {
            let mut values = values.into_iter().map(text);
            let key = if dimension == ALL {
                None
            } else {
                values.next()
            };
            let op = entry.op.and_then(|_| values.next());
            let second = values.next().and_then(|second| second.parse().ok());
            let place = (
                key.unwrap_or_default(),
                op.unwrap_or_default(),
                second.unwrap_or(seconds.begin),
            );
            (place, sum)
        });
        of_dimension(entry, dimension, parts.collect(), cells);
    }
    Ok(())
}

fn text(value: KeyValue) -> String {
    match value {
        KeyValue::Null => NONE.to_owned(),
        KeyValue::Int(number) => number.to_string(),
        KeyValue::Text(text) => text.into(),
    }
}

/// Key, operation and second.
type Place = (String, String, Ns);

fn of_dimension(
    entry: &RollupEntry,
    dimension: &'static str,
    parts: Vec<(Place, Sum)>,
    cells: &mut Vec<Cell>,
) {
    let mut by_key: BTreeMap<&str, (i128, u64)> = BTreeMap::new();
    for ((key, ..), sum) in &parts {
        let all = by_key.entry(key).or_default();
        all.0 += i128::from(sum.durations.sums().sum());
        all.1 += sum.count;
    }
    let mut ranked: Vec<_> = by_key.into_iter().collect();
    ranked.index_sort_by_key(|(key, sums)| (Reverse(*sums), *key));
    // A single remaining key keeps its name.
    let named = if ranked.len() > KEYS_MAX + 1 {
        KEYS_MAX
    } else {
        ranked.len()
    };
    let named: BTreeSet<String> = ranked[..named]
        .iter()
        .map(|(key, _)| (*key).to_owned())
        .collect();
    let mut merged: BTreeMap<Place, Sum> = BTreeMap::new();
    for ((key, op, ts), sum) in parts {
        let key = if named.contains(&key) {
            key
        } else {
            OTHERS.to_owned()
        };
        match merged.entry((key, op, ts)) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(sum);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => place.get_mut().merge(sum),
        }
    }
    let mut finished: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ((key, op, _), sum) in &merged {
        *finished.entry((key.clone(), op.clone())).or_default() += sum.durations.count();
    }
    let knows_errors = entry.spec.errno.is_some() || entry.spec.hooks.failure.is_some();
    for ((key, op, ts), sum) in merged {
        let is_exact = finished
            .get(&(key.clone(), op.clone()))
            .is_some_and(|count| *count <= EXACT_MAX as u64);
        cells.push(Cell {
            kind: entry.spec.name,
            dimension,
            key,
            op,
            ts,
            count: sum.count,
            errors: knows_errors.then_some(sum.errors),
            bytes: entry.spec.size.map(|_| sum.bytes),
            durations: sum.durations,
            is_exact,
        });
    }
}

struct Sums {
    dur: ColumnRef,
    size: Option<ColumnRef>,
    errno: Option<ColumnRef>,
    failures: Option<Failures>,
}

#[derive(Default)]
struct Sum {
    durations: Histogram,
    count: u64,
    errors: u64,
    bytes: i64,
}

impl Sum {
    fn merge(&mut self, other: Sum) {
        self.durations.merge(&other.durations);
        self.count += other.count;
        self.errors += other.errors;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

struct Columns<'b> {
    dur: Ints<'b>,
    size: Option<Ints<'b>>,
    errno: Option<Ints<'b>>,
    failed: Option<Failed<'b>>,
}

impl Summing for Sums {
    type Columns<'b> = Columns<'b>;
    type Sum = Sum;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Columns<'b>, AnalysisError> {
        let ints = |column: Option<ColumnRef>| column.map(|column| column.ints(batch)).transpose();
        Ok(Columns {
            dur: self.dur.ints(batch)?,
            size: ints(self.size)?,
            errno: ints(self.errno)?,
            failed: self
                .failures
                .map(|failures| failures.of(batch))
                .transpose()?,
        })
    }

    fn add(&self, sum: &mut Sum, columns: &Columns<'_>, row: u32) {
        sum.count += 1;
        if let Some(size) = columns.size {
            sum.bytes = sum.bytes.saturating_add(size.or_zero(row));
        }
        if let Some(errno) = columns.errno {
            sum.errors += u64::from(errno.or_zero(row) > 0);
        }
        if let Some(failed) = &columns.failed {
            sum.errors += u64::from(failed.has(row));
        }
        if let Some(dur) = columns.dur.get(row) {
            sum.durations.add(dur);
        }
    }

    fn merge(&self, sum: &mut Sum, other: Sum) {
        sum.merge(other);
    }
}
