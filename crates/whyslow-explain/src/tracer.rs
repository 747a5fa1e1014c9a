//! CPU time of the recorder itself, which is reported but never blamed; and which processes trace,
//! whose own system calls are no finding.

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_analysis::{AnalysisError, Recorder};
use whyslow_model::Window;
use whyslow_model::row::Row;
use whyslow_model::tables::{ProcessRow, SchedSliceRow};
use whyslow_store::Tables;

use crate::window_slice::ThreadTable;

/// CPU time of the recorder or tracer per elapsed time: 1 is one CPU. For the whole recording it is
/// what the recorder itself reported, if it did; otherwise the time of its threads on CPUs. Its BPF
/// programs are accounted to the threads that they trace and are not included. `None` without either.
pub(crate) fn share(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<Option<f64>, AnalysisError> {
    if window.is_none()
        && let Some(share) = Recorder::of(tables)?.cpu_share
    {
        return Ok(Some(share));
    }
    let thread_table = ThreadTable::load(tables)?;
    let info = tables.info();
    let all = Window::new(info.begin_ns, info.end_ns);
    let span = window.map_or(all, |window| {
        Window::new(window.begin.max(all.begin), window.end.min(all.end))
    });
    let mut projection = Projection::new(SchedSliceRow::TABLE);
    let [ts, dur, utid] = ["ts", "dur", "utid"].map(|name| projection.need(name));
    let (mut taken, mut is_recorded) = (0_i64, false);
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, dur, utid) = (ts.ints(batch)?, dur.ints(batch)?, utid.ints(batch)?);
        is_recorded |= batch.num_rows() > 0;
        for row in 0..batch.num_rows() as u32 {
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
    let time = (span.end - span.begin).max(1);
    Ok(is_recorded.then(|| taken as f64 / time as f64))
}

/// Programs that trace a machine. They may run beside the recorder, and what they do is slow because
/// of all that they observe.
const TRACERS: [&str; 7] = [
    "whyslow",
    "perf",
    "bpftrace",
    "strace",
    "trace-cmd",
    "lttng-consumerd",
    "lttng-sessiond",
];

/// Recording-unique ids of the processes that trace: the recorder, and other tracers by name.
pub(crate) fn processes(tables: &dyn Tables) -> Result<FxHashSet<i64>, AnalysisError> {
    let mut projection = Projection::new(ProcessRow::TABLE);
    let upid = projection.need("upid");
    let (comm, tracer) = (projection.need("comm"), projection.need("is_tracer"));
    let mut found = FxHashSet::default();
    in_order(tables, &projection.scan(None), |batch| {
        let (upid, comm) = (upid.ints(batch)?, comm.texts(batch)?);
        for (row, is_tracer) in tracer.bools(batch)?.iter().enumerate() {
            let row = row as u32;
            let is_named = comm.get(row).is_some_and(|comm| TRACERS.contains(&comm));
            if is_named || is_tracer == Some(true) {
                found.insert(upid.at(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use whyslow_model::Symbols;
    use whyslow_model::tables::{Collected, MetadataRow, ProcessRow, ThreadRow};
    use whyslow_store::{MemoryTables, RecordingInfo};

    use super::*;

    const MS: i64 = 1_000_000;

    /// Two processes named whyslow on two CPUs, of which the first is the recorder: it ran for 30 ms,
    /// the other one for 400 ms of 1 s.
    fn recording(facts: &[(&str, &str)], is_marked: bool) -> MemoryTables {
        let mut symbols = Symbols::new();
        let mut rows = Collected::default();
        let comm = Some(symbols.intern("whyslow"));
        for (upid, length) in [(1, 30 * MS), (2, 400 * MS)] {
            let is_tracer = is_marked && upid == 1;
            rows.process.push(ProcessRow {
                upid,
                pid: upid * 10,
                comm,
                is_tracer,
                ..ProcessRow::default()
            });
            rows.thread.push(ThreadRow {
                utid: upid,
                upid: Some(upid),
                tid: upid * 10,
                pid: Some(upid * 10),
                comm,
                is_main: Some(true),
                is_tracer,
                ..ThreadRow::default()
            });
            rows.sched_slice.push(SchedSliceRow {
                id: i64::from(upid),
                ts: 100 * MS,
                dur: Some(length),
                ts_end: Some(100 * MS + length),
                utid: Some(upid),
                cpu: upid - 1,
                ..SchedSliceRow::default()
            });
        }
        for (id, (key, value)) in facts.iter().enumerate() {
            rows.metadata.push(MetadataRow {
                id: id as i64,
                source: None,
                key: symbols.intern(key),
                value: symbols.intern(value),
            });
        }
        let info = RecordingInfo {
            begin_ns: 0,
            end_ns: 1_000 * MS,
            ..RecordingInfo::default()
        };
        MemoryTables::new(&rows, &symbols, info)
    }

    #[test]
    fn only_the_recorder_of_this_recording_counts() {
        let facts = [("tracer_name", "whyslow 1"), ("recorder_pid", "10")];
        let share =
            |tables: &MemoryTables, window| share(tables, window).expect("tables in memory");
        let tables = recording(&facts, true);
        assert_eq!(share(&tables, None), Some(0.03));
        let half = Window::new(0, 115 * MS);
        assert_eq!(share(&tables, Some(half)), Some(15.0 / 115.0));
        // Older recordings do not identify it.
        let tables = recording(&facts[..1], false);
        assert_eq!(share(&tables, None), Some(0.43));
        // Another tool's recording of a whyslow that does something else.
        let tables = recording(&[("tracer_name", "lttng-modules")], false);
        assert_eq!(share(&tables, None), Some(0.0));
    }

    #[test]
    fn processes_that_trace_are_the_recorder_and_tracers_by_name() {
        let of = |comm: &str, is_tracer| {
            let mut symbols = Symbols::new();
            let mut rows = Collected::default();
            rows.process.push(ProcessRow {
                upid: 1,
                pid: 10,
                comm: Some(symbols.intern(comm)),
                is_tracer,
                ..ProcessRow::default()
            });
            let tables = MemoryTables::new(&rows, &symbols, RecordingInfo::default());
            processes(&tables).expect("tables in memory").contains(&1)
        };
        assert!(of("perf", false));
        assert!(of("renamed", true));
        assert!(!of("performer", false));
    }

    #[test]
    fn the_figure_is_the_one_that_the_recorder_printed() {
        let facts = [
            ("tracer_name", "whyslow 1"),
            ("recorder_pid", "10"),
            ("recorder_cpu_ns", "48000000"),
            ("recorder_elapsed_ns", "1000000000"),
        ];
        let tables = recording(&facts, true);
        assert_eq!(share(&tables, None).expect("tables"), Some(0.048));
        let part = share(&tables, Some(Window::new(0, 1_000 * MS)));
        assert_eq!(part.expect("tables"), Some(0.03));
    }
}
