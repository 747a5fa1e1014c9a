//! Times without samples, of single threads and of whole processes.

use std::ops::ControlFlow;

use whyslow_analysis::{Filter, Kind, LogRow, Question, Verb, each_row};
use whyslow_model::Ns;
use whyslow_store::Tables;

use super::stops::Stops;
use super::{Counting, Mark, Sample, Weight};
use crate::ExportError;

/// Class of a time in which no thread of a process was sampled.
const STOPPED: &str = "process_stopped";
const GAP_COLUMNS: [&str; 7] = [
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "callsite_id",
    "class",
];

/// Time without samples.
pub(super) struct GapSample {
    pub(super) begin: Ns,
    pub(super) dur: Ns,
    pub(super) comm: Option<String>,
    pub(super) pid: Option<i64>,
    pub(super) tid: Option<i64>,
    pub(super) callsite: Option<i64>,
    pub(super) mark: Mark,
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
            mark: Some(self.mark),
        }
    }
}

impl Counting<'_> {
    /// When the threads of a process were stopped, and times without samples of single ones.
    pub(super) fn stops_and_gaps(
        &self,
        tables: &dyn Tables,
    ) -> Result<(Stops, Vec<GapSample>), ExportError> {
        let question = self.question;
        let has_gaps = tables.info().tables.get("sample_gap");
        let has_gaps = has_gaps.is_some_and(|table| table.rows > 0);
        if !has_gaps || question.weight == Weight::Samples || !question.states.is_empty() {
            return Ok((Stops::of(&[]), Vec::new()));
        }
        let mut gaps = self.gaps(tables, &self.asked(Kind::Gaps, &[]))?;
        gaps.retain(|gap| gap.mark != Mark::Stopped);
        // A stop is of no thread and has no stack, but it is one for all threads of its process.
        let of_stops = Question {
            window: question.window,
            filter: Filter {
                ops: vec![STOPPED.to_owned()],
                ..Filter::default()
            },
            ..Question::new(Kind::Gaps, Verb::Log)
        };
        let stops = self.gaps(tables, &of_stops)?.into_iter();
        let stops: Vec<_> = stops
            .map(|stop| (stop.pid, stop.begin, stop.end()))
            .collect();
        Ok((Stops::of(&stops), gaps))
    }

    /// Those that count, in order of begin.
    fn gaps(&self, tables: &dyn Tables, asked: &Question) -> Result<Vec<GapSample>, ExportError> {
        let mut gaps = Vec::new();
        each_row(tables, asked, &GAP_COLUMNS, &mut |row| {
            gaps.extend(self.gap(row));
            ControlFlow::Continue(())
        })?;
        gaps.sort_by_key(|gap| gap.begin);
        Ok(gaps)
    }

    fn gap(&self, row: &LogRow<'_>) -> Option<GapSample> {
        let mark = match row.text("class").unwrap_or_default() {
            "kernel_wait" | "page_fault" => Mark::Blocked,
            STOPPED => Mark::Stopped,
            _ => Mark::NotSampled,
        };
        if self.question.weight == Weight::OffCpu && mark != Mark::Blocked {
            return None;
        }
        let (begin, dur) = self.inside(row.int("ts_ns")?, row.int("dur_ns").unwrap_or(0));
        Some(GapSample {
            begin,
            dur,
            comm: row.text("comm").map(str::to_owned),
            pid: row.int("pid"),
            tid: row.int("tid"),
            callsite: row.int("callsite_id"),
            mark,
        })
    }
}
