//! One way over a table: select rows, number their groups, and let a verb sum them up.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::filter::{Selector, Verdicts};
use crate::grouping::{Coder, Grouping, TimeKey};
use crate::keys::KeyValue;
use crate::scan::{Projection, fold};

/// What a verb adds up per group. Sums must not depend on the order of rows.
pub(crate) trait Summing: Sync {
    type Columns<'b>;
    type Sum: Default + Send;

    fn columns<'b>(&self, batch: &'b RecordBatch) -> Result<Self::Columns<'b>, AnalysisError>;
    /// What a group starts with.
    fn start(&self, _group: &[KeyValue]) -> Self::Sum {
        Self::Sum::default()
    }
    fn add(&self, sum: &mut Self::Sum, columns: &Self::Columns<'_>, row: u32);
    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum);
}

/// Groups in the order of their keys.
pub(crate) type Groups<S> = BTreeMap<Vec<KeyValue>, S>;

/// Which rows of which table, in which groups. The verb adds the columns it needs itself to the
/// projection before it runs.
pub(crate) struct Pass {
    pub(crate) projection: Projection,
    pub(crate) selector: Selector,
    pub(crate) grouping: Grouping,
    pub(crate) selected: Option<Window>,
}

struct Worker<S> {
    verdicts: Verdicts,
    coder: Coder,
    rows: Vec<u32>,
    codes: Vec<u32>,
    sums: Vec<S>,
}

impl Pass {
    /// Groups by the interval in which a row begins, as the last key.
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
        let init = || {
            vec![Worker {
                verdicts: self.selector.verdicts(),
                coder: self.grouping.coder(),
                rows: Vec::new(),
                codes: Vec::new(),
                sums: Vec::new(),
            }]
        };
        let each = |workers: &mut Vec<Worker<V::Sum>>, batch: &RecordBatch| {
            workers
                .iter_mut()
                .try_for_each(|worker| self.add_batch(worker, batch, verb))
        };
        let scan = self.projection.scan(self.selected);
        let workers = fold(tables, &scan, init, each, |workers, mut more| {
            workers.append(&mut more);
        })?;
        let mut groups: Groups<V::Sum> = BTreeMap::new();
        for worker in workers {
            let coder = worker.coder;
            for (code, sum) in worker.sums.into_iter().enumerate() {
                match groups.entry(coder.values(code as u32)) {
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert(sum);
                    }
                    std::collections::btree_map::Entry::Occupied(mut entry) => {
                        verb.merge(entry.get_mut(), sum);
                    }
                }
            }
        }
        Ok(groups)
    }

    fn add_batch<V: Summing>(
        &self,
        worker: &mut Worker<V::Sum>,
        batch: &RecordBatch,
        verb: &V,
    ) -> Result<(), AnalysisError> {
        self.selector
            .select(&mut worker.verdicts, batch, &mut worker.rows)?;
        if worker.rows.is_empty() {
            return Ok(());
        }
        worker.coder.codes(batch, &worker.rows, &mut worker.codes)?;
        let columns = verb.columns(batch)?;
        for (row, code) in worker.rows.iter().zip(&worker.codes) {
            let code = *code as usize;
            // Codes are given in the order of first sight.
            while code >= worker.sums.len() {
                let group = worker.coder.values(worker.sums.len() as u32);
                worker.sums.push(verb.start(&group));
            }
            verb.add(&mut worker.sums[code], &columns, *row);
        }
        Ok(())
    }
}
