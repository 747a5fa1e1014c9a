//! Which threads a query selects: by id, by process, by name.

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order, thread_names};
use whyslow_model::row::Row;
use whyslow_model::tables::ThreadRow;

use super::Explainer;

impl Explainer<'_> {
    fn list_threads(&self) -> String {
        format!(
            "list the threads: whyslow threads list {}",
            self.query.recording
        )
        .trim_end()
        .to_owned()
    }

    /// Threads with a name that matches a glob of the query.
    fn named(&self) -> Result<Vec<i32>, AnalysisError> {
        let is_wanted = thread_names(&self.query.comms)?;
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utids, comms] = ["utid", "comm"].map(|name| projection.need(name));
        let mut found = Vec::new();
        in_order(self.tables, &projection.scan(None), |batch| {
            let (utids, comms) = (utids.ints(batch)?, comms.texts(batch)?);
            let rows = 0..batch.num_rows() as u32;
            let named = rows.filter(|row| comms.get(*row).is_some_and(&is_wanted));
            found.extend(named.map(|row| utids.at(row) as i32));
            Ok(ControlFlow::Continue(()))
        })?;
        if found.is_empty() {
            return Err(AnalysisError::Query {
                message: format!(
                    "no thread of this recording has a name that matches `{}`",
                    self.query.comms.join(",")
                ),
                hint: Some(self.list_threads()),
            });
        }
        Ok(found)
    }

    /// The threads that the query selects; all if none.
    pub(super) fn selected(&self) -> Result<Vec<i32>, AnalysisError> {
        let query = self.query;
        let mut utids = Vec::new();
        for tid in &query.tids {
            utids.extend(self.utids(Some(*tid), None)?);
        }
        for pid in &query.pids {
            utids.extend(self.utids(None, Some(*pid))?);
        }
        if query.comms.is_empty() {
            return Ok(utids);
        }
        let named = self.named()?;
        if utids.is_empty() {
            return Ok(named);
        }
        utids.retain(|utid| named.contains(utid));
        if utids.is_empty() {
            return Err(AnalysisError::Query {
                message: format!(
                    "no selected thread has a name that matches `{}`",
                    query.comms.join(",")
                ),
                hint: Some(self.list_threads()),
            });
        }
        Ok(utids)
    }
}
