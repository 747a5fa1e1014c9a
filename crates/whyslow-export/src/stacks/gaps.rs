//! Sampling gaps of single threads and of whole processes.

use std::ops::ControlFlow;

use whyslow_analysis::{Filter, Kind, LogRow, Query, Verb, each_row};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::stops::Stops;
use super::{Counting, Mark, Sample, Weight};
use crate::ExportError;

/// Class of a gap of all threads of a process.
const STOPPED: &str = "process_stopped";
const GAP_COLUMNS: [&str; 8] = [
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "callsite_id",
    "before_callsite_id",
    "class",
];

/// A sampling gap, or the lead time before it.
pub(super) struct GapSample {
    pub(super) begin: Ns,
    pub(super) dur: Ns,
    pub(super) comm: Option<String>,
    pub(super) pid: Option<i64>,
    pub(super) tid: Option<i64>,
    pub(super) callsite: Option<i64>,
    pub(super) mark: Option<Mark>,
}

impl GapSample {
    pub(super) fn end(&self) -> Ns {
        self.begin.saturating_add(self.dur)
    }

    pub(super) fn sample(&self) -> Sample<'_> {
        Sample {
            begin: self.begin,
            dur: self.dur,
            comm: self.comm.as_deref(),
            pid: self.pid,
            tid: self.tid,
            state: None,
            callsite: self.callsite,
            mark: self.mark,
        }
    }
}

impl Counting<'_> {
    /// The stops of whole processes, and the gaps of single threads.
    pub(super) fn stops_and_gaps(
        &self,
        tables: &dyn Tables,
    ) -> Result<(Stops, Vec<GapSample>), ExportError> {
        let query = self.query;
        let has_gaps = tables.info().tables.get("sample_gap");
        let has_gaps = has_gaps.is_some_and(|table| table.rows > 0);
        if !has_gaps || query.weight == Weight::Samples || !query.states.is_empty() {
            return Ok((Stops::of(&[]), Vec::new()));
        }
        let mut gaps = self.gaps(tables, &self.log_query(Kind::Gaps, &[]))?;
        gaps.retain(|gap| gap.mark != Some(Mark::Stopped));
        // A stop has no thread and no stack, but it applies to all threads of its process.
        let of_stops = Query {
            window: query.window,
            filter: Filter {
                ops: vec![STOPPED.to_owned()],
                ..Filter::default()
            },
            ..Query::new(Kind::Gaps, Verb::Log)
        };
        let stops = self.gaps(tables, &of_stops)?.into_iter();
        let stops: Vec<_> = stops
            .map(|stop| (stop.pid, stop.begin, stop.end()))
            .collect();
        Ok((Stops::of(&stops), gaps))
    }

    /// The gaps that count, in start order.
    fn gaps(&self, tables: &dyn Tables, query: &Query) -> Result<Vec<GapSample>, ExportError> {
        let mut gaps = Vec::new();
        each_row(tables, query, &GAP_COLUMNS, &mut |row| {
            self.gap(row, &mut gaps);
            ControlFlow::Continue(())
        })?;
        gaps.index_sort_by_ints(|gap| [gap.begin, 0, 0]);
        Ok(gaps)
    }

    /// A wait starts between the previous sample and the next one that was due, on average halfway:
    /// half an interval still belongs to the previous stack.
    fn gap(&self, row: &LogRow<'_>, gaps: &mut Vec<GapSample>) {
        let mark = match row.text("class").unwrap_or_default() {
            "kernel_wait" | "page_fault" => Mark::Blocked,
            STOPPED => Mark::Stopped,
            _ => Mark::NotSampled,
        };
        if self.query.weight == Weight::OffCpu && mark != Mark::Blocked {
            return;
        }
        let Some(ts) = row.int("ts_ns") else { return };
        let length = row.int("dur_ns").unwrap_or(0);
        let before = row.int("before_callsite_id");
        let lead = match before {
            Some(_) if mark == Mark::Blocked => (self.interval / 2).min(length / 2),
            _ => 0,
        };
        let mut put = |(ts, length), callsite, mark| {
            let (begin, dur) = self.inside(ts, length);
            if dur > 0 {
                gaps.push(GapSample {
                    begin,
                    dur,
                    comm: row.text("comm").map(str::to_owned),
                    pid: row.int("pid"),
                    tid: row.int("tid"),
                    callsite,
                    mark,
                });
            }
        };
        // Filters by stack and state were evaluated for the wait, not for the lead time.
        let is_any = !self.query.filter.is_of_stacks() && self.query.weight == Weight::Time;
        if lead > 0 && is_any {
            put((ts, lead), before, None);
        }
        let rest = (ts.saturating_add(lead), length - lead);
        put(rest, row.int("callsite_id"), Some(mark));
    }
}
