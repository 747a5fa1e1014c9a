//! The recorder's samples of threads that another source covers, too: they would count twice.

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::StackSampleRow;
use whyslow_store::Tables;

use super::{RECORDER, Weight, interval};
use crate::ExportError;

/// Threads of which another source covers the recorder's samples.
pub(super) enum CoveredThreads {
    /// All waits of all threads were recorded.
    All,
    /// Threads with samples of a profile, by thread id.
    Profiled(FxHashSet<i64>),
}

impl CoveredThreads {
    pub(super) fn of(tables: &dyn Tables, weight: Weight) -> Result<Self, ExportError> {
        let has_waits = tables.info().tables.get("thread_state");
        let has_waits = has_waits.is_some_and(|table| table.rows > 0);
        if weight == Weight::OffCpu && has_waits {
            return Ok(Self::All);
        }
        let mut profiled = FxHashSet::default();
        let samplers = tables.words(StackSampleRow::TABLE, "sampler")?;
        let has_own = samplers.is_none_or(|words| words.contains(RECORDER));
        if !has_own || interval(tables).is_none() {
            return Ok(Self::Profiled(profiled));
        }
        let mut projection = Projection::new(StackSampleRow::TABLE);
        let [tid, kind, sampler] = ["tid", "kind", "sampler"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(None), |batch| {
            let (tid, kind) = (tid.ints(batch)?, kind.texts(batch)?);
            let sampler = sampler.texts(batch)?;
            for row in 0..batch.num_rows() as u32 {
                if kind.get(row) == Some("wall") && sampler.get(row) != Some(RECORDER) {
                    profiled.extend(tid.get(row));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self::Profiled(profiled))
    }

    pub(super) fn has(&self, tid: Option<i64>) -> bool {
        match self {
            Self::All => true,
            Self::Profiled(profiled) => tid.is_some_and(|tid| profiled.contains(&tid)),
        }
    }
}
