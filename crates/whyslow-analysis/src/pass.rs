//! A pass over a table: selects rows, numbers their groups, and lets a verb aggregate them.

use arrow_array::RecordBatch;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::filter::{Selector, Verdicts};
use crate::fold::{Spot, fold};
use crate::grouping::{Coder, Grouping, TimeKey};
use crate::keys::KeyValue;
use crate::scan::{ColumnRef, Ints, Projection};

/// What a verb aggregates per group. The result must not depend on the order of rows.
pub(crate) trait Summing: Sync {
    type Columns<'b>;
    type Sum: Default + Send;

    /// Columns of a batch whose first row is at `first`.
    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError>;
    /// Initial value of a group of one of the groupings.
    fn start(&self, _grouping: usize, _group: &dyn Fn() -> Vec<KeyValue>) -> Self::Sum {
        Self::Sum::default()
    }
    fn add(&self, sum: &mut Self::Sum, columns: &Self::Columns<'_>, row: u32);
    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum);
}

/// Number of groups from which another thread pays off when results are merged.
const GROUPS_PER_THREAD: usize = 1_000;

/// Unsorted groups, each once: an answer that shows ten of fifty thousand need not sort them.
pub(crate) type Unordered<S> = Vec<(Vec<KeyValue>, S)>;

/// Groups sorted by key, each once.
pub(crate) struct Groups<S>(Unordered<S>);

impl<S> Groups<S> {
    fn new(mut groups: Unordered<S>) -> Self {
        groups.index_sort_by(|(a, _), (b, _)| a.cmp(b));
        Self(groups)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (Vec<KeyValue>, S)> {
        self.0.iter()
    }

    pub(crate) fn get(&self, group: &[KeyValue]) -> Option<&S> {
        Some(&self.0[self.place(group)?].1)
    }

    /// Takes the sum of a group out.
    pub(crate) fn take(&mut self, group: &[KeyValue]) -> Option<S>
    where
        S: Default,
    {
        let place = self.place(group)?;
        Some(std::mem::take(&mut self.0[place].1))
    }

    fn place(&self, group: &[KeyValue]) -> Option<usize> {
        let compare = |(known, _): &(Vec<KeyValue>, S)| known.as_slice().cmp(group);
        self.0.binary_search_by(compare).ok()
    }

    pub(crate) fn retain(&mut self, mut is_wanted: impl FnMut(&S) -> bool) {
        self.0.retain(|(_, sum)| is_wanted(sum));
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<KeyValue>> {
        self.0.iter().map(|(group, _)| group)
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = S> {
        self.0.into_iter().map(|(_, sum)| sum)
    }
}

impl<S> IntoIterator for Groups<S> {
    type Item = (Vec<KeyValue>, S);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Sums by group number, and the decoder of these numbers.
pub(crate) type Coded<S> = (Coder, Vec<S>);

/// The rows of a table and their groups. The verb adds the columns that it needs to the projection
/// before running it.
pub(crate) struct Pass {
    pub(crate) projection: Projection,
    pub(crate) selector: Selector,
    pub(crate) grouping: Grouping,
    pub(crate) selected: Option<Window>,
}

/// The results of a thread so far.
struct Worker<S> {
    verdicts: Verdicts,
    rows: Vec<u32>,
    grouped: Vec<Grouped<S>>,
}

/// Sums of one grouping, indexed by group number.
struct Grouped<S> {
    coder: Coder,
    codes: Vec<u32>,
    sums: Vec<S>,
}

impl Pass {
    /// Groups rows by the interval in which they start, as the last key.
    pub(crate) fn group_by_time(&mut self, span: Window, width: Ns) {
        let column = self.projection.need("ts");
        self.grouping.push_time(TimeKey {
            column,
            span,
            width,
        });
    }

    pub(crate) fn run<V: Summing>(
        &self,
        tables: &dyn Tables,
        verb: &V,
    ) -> Result<Groups<V::Sum>, AnalysisError> {
        let groupings = std::slice::from_ref(&self.grouping);
        let groups = self.run_by(tables, verb, groupings)?.pop();
        Ok(Groups::new(groups.unwrap_or_default()))
    }

    /// Aggregates by each of several groupings, in one scan.
    pub(crate) fn run_by<V: Summing>(
        &self,
        tables: &dyn Tables,
        verb: &V,
        groupings: &[Grouping],
    ) -> Result<Vec<Unordered<V::Sum>>, AnalysisError> {
        let grouped = self.run_grouped(tables, verb, groupings)?;
        Ok(grouped.into_iter().map(Grouped::groups).collect())
    }

    /// Aggregates by group number, with the decoder: there may be many more groups than values.
    pub(crate) fn run_coded<V: Summing>(
        &self,
        tables: &dyn Tables,
        verb: &V,
    ) -> Result<Option<Coded<V::Sum>>, AnalysisError> {
        let groupings = std::slice::from_ref(&self.grouping);
        let grouped = self.run_grouped(tables, verb, groupings)?.pop();
        Ok(grouped.map(|grouped| (grouped.coder, grouped.sums)))
    }

    fn run_grouped<V: Summing>(
        &self,
        tables: &dyn Tables,
        verb: &V,
        groupings: &[Grouping],
    ) -> Result<Vec<Grouped<V::Sum>>, AnalysisError> {
        let grouped = |grouping: &Grouping| Grouped {
            coder: grouping.coder(self.selected.is_some()),
            codes: Vec::new(),
            sums: Vec::new(),
        };
        let init = || {
            vec![Worker {
                verdicts: self.selector.verdicts(),
                rows: Vec::new(),
                grouped: groupings.iter().map(grouped).collect(),
            }]
        };
        let each = |workers: &mut Vec<Worker<V::Sum>>, batch: &RecordBatch, first: Spot| {
            workers
                .iter_mut()
                .try_for_each(|worker| self.add_batch(worker, (batch, first), verb))
        };
        let scan = self.projection.scan(self.selected);
        let workers = fold(tables, &scan, init, each, |workers, mut more| {
            workers.append(&mut more);
        })?;
        let mut workers = workers.into_iter();
        let Some(mut first) = workers.next() else {
            return Ok(Vec::new());
        };
        for worker in workers {
            for (grouped, more) in first.grouped.iter_mut().zip(worker.grouped) {
                grouped.merge(more, verb);
            }
        }
        Ok(first.grouped)
    }

    fn add_batch<V: Summing>(
        &self,
        worker: &mut Worker<V::Sum>,
        (batch, first): (&RecordBatch, Spot),
        verb: &V,
    ) -> Result<(), AnalysisError> {
        let rows = &mut worker.rows;
        self.selector.select(&mut worker.verdicts, batch, rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        let columns = verb.columns(batch, first)?;
        for (number, grouped) in worker.grouped.iter_mut().enumerate() {
            let Grouped { coder, codes, sums } = grouped;
            coder.codes(batch, rows, codes)?;
            // Codes are assigned in order of first occurrence.
            for code in sums.len()..coder.count() {
                sums.push(verb.start(number, &|| coder.values(code as u32)));
            }
            for (row, code) in rows.iter().zip(&*codes) {
                verb.add(&mut sums[*code as usize], &columns, *row);
            }
        }
        Ok(())
    }
}

impl<S: Send> Grouped<S> {
    fn merge<V: Summing<Sum = S>>(&mut self, other: Self, verb: &V) {
        let codes = self.coder.adopt(&other.coder);
        let mut more: Vec<Option<S>> = Vec::new();
        more.resize_with(self.sums.len(), || None);
        for (code, sum) in codes.into_iter().zip(other.sums) {
            match more.get_mut(code as usize) {
                Some(place) => *place = Some(sum),
                None => self.sums.push(sum),
            }
        }
        let ours = self.sums.par_iter_mut().with_min_len(GROUPS_PER_THREAD);
        ours.zip(more).for_each(|(ours, more)| {
            if let Some(more) = more {
                verb.merge(ours, more);
            }
        });
    }

    fn groups(self) -> Unordered<S> {
        let sums = (0..).zip(self.sums);
        sums.map(|(code, sum)| (self.coder.values(code), sum))
            .collect()
    }
}

/// Counts rows.
pub(crate) struct Count;

impl Summing for Count {
    type Columns<'b> = ();
    type Sum = u64;

    fn columns(&self, _: &RecordBatch, _: Spot) -> Result<(), AnalysisError> {
        Ok(())
    }

    fn add(&self, sum: &mut u64, (): &(), _: u32) {
        *sum += 1;
    }

    fn merge(&self, sum: &mut u64, other: u64) {
        *sum += other;
    }
}

/// Collects the values of a non-null column.
pub(crate) struct Ids(pub(crate) ColumnRef);

impl Summing for Ids {
    type Columns<'b> = Ints<'b>;
    type Sum = Vec<i64>;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut Vec<i64>, ids: &Ints<'_>, row: u32) {
        sum.push(ids.at(row));
    }

    fn merge(&self, sum: &mut Vec<i64>, other: Vec<i64>) {
        sum.extend(other);
    }
}
