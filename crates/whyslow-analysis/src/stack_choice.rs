//! Selects stacks by their functions: `--match` and `--reject`.

use std::ops::ControlFlow;

use whyslow_model::row::Row;
use whyslow_model::tables::{CallsiteRow, FrameRow};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::globs::regexes;
use crate::query::Filter;
use crate::scan::Projection;

/// Whether each stack of a recording is selected, by its number.
#[derive(Debug)]
pub(crate) struct StackChoice {
    wanted: Vec<bool>,
    /// Rows without a stack never match a pattern.
    takes_none: bool,
}

/// Result of the patterns for a stack: some frame is wanted, some frame is rejected.
#[derive(Debug, Clone, Copy, Default)]
struct Hit {
    wanted: bool,
    rejected: bool,
}

impl StackChoice {
    /// `None` if the filter has no conditions on stacks.
    pub(crate) fn of(tables: &dyn Tables, filter: &Filter) -> Result<Option<Self>, AnalysisError> {
        if !filter.is_of_stacks() {
            return Ok(None);
        }
        let frames = frames(tables, filter)?;
        let mut projection = Projection::new(CallsiteRow::TABLE);
        let [id, parent, frame] = ["id", "parent_id", "frame_id"].map(|name| projection.need(name));
        let mut hits: Vec<Hit> = Vec::new();
        let place = |id: i64| usize::try_from(id).ok();
        in_order(tables, &projection.scan(None), |batch| {
            let (id, parent) = (id.ints(batch)?, parent.ints(batch)?);
            let frame = frame.ints(batch)?;
            for row in 0..batch.num_rows() as u32 {
                // Ids are consecutive, and callers come first.
                if place(id.at(row)) != Some(hits.len()) {
                    continue;
                }
                let own = place(frame.at(row)).and_then(|frame| frames.get(frame));
                let own = own.copied().unwrap_or_default();
                let callers = parent.get(row).and_then(place);
                let callers = callers.and_then(|parent| hits.get(parent));
                let callers = callers.copied().unwrap_or_default();
                hits.push(Hit {
                    wanted: own.wanted || callers.wanted,
                    rejected: own.rejected || callers.rejected,
                });
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let takes_all = filter.frames.is_empty();
        let wanted = hits
            .iter()
            .map(|hit| (takes_all || hit.wanted) && !hit.rejected);
        Ok(Some(Self {
            wanted: wanted.collect(),
            takes_none: takes_all,
        }))
    }

    pub(crate) fn takes(&self, callsite: Option<i64>) -> bool {
        let place = callsite.and_then(|id| usize::try_from(id).ok());
        place
            .and_then(|place| self.wanted.get(place))
            .copied()
            .unwrap_or(self.takes_none)
    }
}

/// The result of the patterns for each frame.
fn frames(tables: &dyn Tables, filter: &Filter) -> Result<Vec<Hit>, AnalysisError> {
    let (wanted, rejected) = (regexes(&filter.frames)?, regexes(&filter.frames_not)?);
    let mut projection = Projection::new(FrameRow::TABLE);
    let function = projection.need("function");
    let mut frames = Vec::new();
    in_order(tables, &projection.scan(None), |batch| {
        let function = function.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let name = function.get(row).unwrap_or_default();
            frames.push(Hit {
                wanted: wanted.is_match(name),
                rejected: rejected.is_match(name),
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(frames)
}
