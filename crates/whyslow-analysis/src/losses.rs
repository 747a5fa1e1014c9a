//! Events lost in the window: every answer reports them.

use std::ops::ControlFlow;

use whyslow_model::Window;
use whyslow_model::answer::LossNote;
use whyslow_model::row::Row;
use whyslow_model::tables::LostEventsRow;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::scan::Projection;

/// Ranges of lost events that overlap the window, in time order.
pub(crate) fn inside(context: &Context<'_>) -> Result<Vec<LossNote>, AnalysisError> {
    let mut projection = Projection::new(LostEventsRow::TABLE);
    let [ts, ts_end] = ["ts", "ts_end"].map(|name| projection.need(name));
    let [cpu, count] = ["cpu", "count"].map(|name| projection.need(name));
    let kind = projection.need("kind");
    // Extended by 1 ns to include the last event of the recording.
    let window = Window::new(context.span.begin, context.span.end.saturating_add(1));
    let mut losses = Vec::new();
    in_order(context.tables, &projection.scan(Some(window)), |batch| {
        let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
        let (cpu, count) = (cpu.ints(batch)?, count.ints(batch)?);
        let kind = kind.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            if window.overlaps(ts.at(row), ts_end.get(row)) {
                losses.push(LossNote {
                    begin: ts.at(row),
                    end: ts_end.get(row),
                    cpu: cpu.get(row).map(|cpu| cpu as i32),
                    kind: kind.get(row).unwrap_or("events").to_owned(),
                    count: count.get(row),
                });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(losses)
}
