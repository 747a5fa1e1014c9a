//! CPU time of the recorder itself, which is reported but never blamed.

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::Window;
use whyslow_model::row::Row;
use whyslow_model::tables::SchedSliceRow;
use whyslow_store::Tables;

use crate::window_slice::ThreadTable;

/// Share of the recorder's threads in the time of all CPUs on which anything ran, 0–1. Its BPF
/// programs are accounted to the threads that they trace and are not included. `None` without
/// scheduling events.
pub(crate) fn share(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<Option<f64>, AnalysisError> {
    let thread_table = ThreadTable::load(tables)?;
    let info = tables.info();
    let all = Window::new(info.begin_ns, info.end_ns);
    let span = window.map_or(all, |window| {
        Window::new(window.begin.max(all.begin), window.end.min(all.end))
    });
    let mut projection = Projection::new(SchedSliceRow::TABLE);
    let [ts, dur, utid, cpu] = ["ts", "dur", "utid", "cpu"].map(|name| projection.need(name));
    let (mut taken, mut cpus) = (0_i64, 0);
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, dur) = (ts.ints(batch)?, dur.ints(batch)?);
        let (utid, cpu) = (utid.ints(batch)?, cpu.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            cpus = cpus.max(cpu.or_zero(row) + 1);
            let is_tracer = utid
                .get(row)
                .and_then(|utid| thread_table.get(utid as i32))
                .is_some_and(|thread_info| thread_info.is_tracer);
            // A slice that extends beyond the recording is not counted.
            if let (true, Some(dur)) = (is_tracer, dur.get(row)) {
                let (begin, end) = (ts.at(row), ts.at(row) + dur);
                taken += (end.min(span.end) - begin.max(span.begin)).max(0);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let time = cpus * (span.end - span.begin).max(1);
    Ok((cpus > 0).then(|| taken as f64 / time as f64))
}
