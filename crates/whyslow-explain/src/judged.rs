//! Whether the recording could show what was slow.
//!
//! "No operation took much longer than similar ones" is a statement about system calls. Requests of
//! a log and waits of a profile allow a statement about these only. Without any of them, or with
//! most events lost, nothing can be concluded, and that is the answer.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::event::Hidden;
use whyslow_model::row::{Row, Table};
use whyslow_model::tables::{
    CpuRow, LockWaitRow, LostEventsRow, MetadataRow, RequestRow, SampleGapRow, StackSampleRow,
    SyscallRow,
};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, rows};

use crate::detectors::counters::has;
use crate::report::{Confidence, Finding, Judged, Reason, Report};

/// With more of the window lost, the absence of slow operations means nothing.
const LOST_MAX: f64 = 0.2;
/// Kinds of locks that only a profile of a program reports.
const LOCKS_OF_PROGRAMS: [&str; 3] = ["monitor", "library_lock", "pthread"];
/// Samples that show threads while they wait, too.
const SAMPLES_OF_WAITS: [&str; 2] = ["wall", "native"];
/// Tables of other events.
const OTHER_TABLES: [&str; 14] = [
    "thread_state",
    "block_io",
    "stack_sample",
    "runtime_event",
    "function_call",
    "net_packet",
    "irq",
    "lock_wait",
    "reclaim",
    "kernel_work",
    "work_item",
    "tcp_connection",
    "usdt_event",
    "dns_lookup",
];
/// Statement if nothing was slow and the recording would have shown it …
const NOTHING_SLOW: &str = "no operation took much longer than similar ones";
/// … if brief ones were left out.
const NOTHING_BUT_BRIEF: &str =
    "no operation took much longer than similar ones, except for brief ones";
/// … and if it shows requests, or waits that a profile samples, but no system calls.
const NO_SLOW_REQUEST: &str =
    "no request took much longer than similar ones; other operations were not recorded";
const NO_LONG_WAIT: &str =
    "no long wait in the samples; system calls were not recorded, so shorter waits are not shown";

/// What the recording can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Operations,
    Requests,
    Waits,
}

impl Shown {
    fn all_clear(self) -> &'static str {
        match self {
            Self::Operations => NOTHING_SLOW,
            Self::Requests => NO_SLOW_REQUEST,
            Self::Waits => NO_LONG_WAIT,
        }
    }
}

/// States that brief operations were left out, if nothing else was slow.
pub(crate) fn except_brief(report: &mut Report) {
    let mut caveats = report.caveats.iter_mut();
    if let Some(clear) = caveats.find(|caveat| *caveat == NOTHING_SLOW) {
        NOTHING_BUT_BRIEF.clone_into(clear);
    }
}

/// Removes findings without a culprit that mostly show that events were lost: an operation that
/// cannot be explained is none. Returns whether there were any.
pub(crate) fn leave_lost_out(findings: &mut Vec<Finding>) -> bool {
    let is_lost = |finding: &Finding| {
        let lost = finding.parts.iter().filter(|part| part.root == "lost");
        let lost: Ns = lost.map(|part| part.dur_ns).sum();
        let length = finding.target.end_ns - finding.target.begin_ns;
        finding.culprit.is_none() && 2 * lost >= length.max(1)
    };
    let before = findings.len();
    findings.retain(|finding| !is_lost(finding));
    findings.len() < before
}

/// Sets whether something was found, nothing was slow, or neither can be said.
pub(crate) fn judge(
    tables: &dyn Tables,
    window: Option<Window>,
    has_lost: bool,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let is_device = |kind: &str| kind == "device";
    let devices = report.observations.iter();
    let stands_out = devices.clone().any(|one| !is_device(&one.kind));
    let patterns = report.patterns.iter();
    let has_pattern = patterns.clone().any(|one| one.class != "insufficient");
    if !report.findings.is_empty() || stands_out || has_pattern {
        report.judged = Judged::Findings;
        return Ok(());
    }
    // Requested devices that do not stand out are an answer of their own.
    if report.observations.iter().any(|one| is_device(&one.kind)) {
        report.judged = Judged::NothingSlow;
        return Ok(());
    }
    let shown = shown(tables, window)?;
    let mut reasons = Vec::new();
    if shown.is_none() {
        reasons.push(without_operations(tables)?);
    }
    reasons.extend(losses(tables, window, has_lost)?);
    match shown.filter(|_| reasons.is_empty()) {
        Some(shown) => {
            report.judged = Judged::NothingSlow;
            report.caveats.push(shown.all_clear().into());
        }
        None => report.judged = Judged::CannotTell,
    }
    report.reasons.extend(reasons);
    Ok(())
}

/// Limits what is claimed if events were lost in much of the time: the thread that seems to be the
/// culprit may have been held up by another one, whose events are among those lost.
pub(crate) fn doubt(
    tables: &dyn Tables,
    window: Option<Window>,
    findings: &mut [Finding],
) -> Result<(), AnalysisError> {
    let is_sure = |finding: &Finding| finding.confidence > Confidence::Low;
    if findings.iter().any(is_sure) && lost_share(tables, window)? > LOST_MAX {
        for finding in findings {
            finding.confidence = finding.confidence.min(Confidence::Low);
        }
    }
    Ok(())
}

/// Why losses of events forbid a judgement; nothing if they do not.
fn losses(
    tables: &dyn Tables,
    window: Option<Window>,
    has_lost: bool,
) -> Result<Option<Reason>, AnalysisError> {
    let lost = lost_share(tables, window)?;
    let summary = if lost > LOST_MAX {
        Some(format!(
            "events were lost in {:.0} % of the time",
            100.0 * lost
        ))
    } else {
        has_lost.then(|| "events were lost during the slow operations".to_owned())
    };
    Ok(summary.map(|summary| {
        reason(
            "events_lost",
            summary,
            "record again with a larger buffer: sudo whyslow record --buffer 256MiB",
        )
    }))
}

fn reason(id: &'static str, summary: impl Into<String>, next: &str) -> Reason {
    Reason {
        id,
        summary: summary.into(),
        next: next.to_owned(),
    }
}

/// What the recording shows of the window: DNS lookups alone show only these.
fn shown(tables: &dyn Tables, window: Option<Window>) -> Result<Option<Shown>, AnalysisError> {
    for (table, shown) in [
        (SyscallRow::TABLE, Shown::Operations),
        (RequestRow::TABLE, Shown::Requests),
        (SampleGapRow::TABLE, Shown::Waits),
    ] {
        let is_there = has(tables, table.name)
            && match window {
                Some(window) => any(tables, table, window)?,
                None => true,
            };
        if is_there {
            return Ok(Some(shown));
        }
    }
    let has_word = |table: &'static Table, column: &str, wanted: &[&str]| {
        let words = tables.words(table, column)?;
        let words = words.unwrap_or_default();
        Ok::<_, AnalysisError>(wanted.iter().any(|word| words.contains(*word)))
    };
    let is_profile = has_word(LockWaitRow::TABLE, "kind", &LOCKS_OF_PROGRAMS)?
        || has_word(StackSampleRow::TABLE, "kind", &SAMPLES_OF_WAITS)?;
    Ok(is_profile.then_some(Shown::Waits))
}

/// Why the recording shows no operations.
fn without_operations(tables: &dyn Tables) -> Result<Reason, AnalysisError> {
    let of_operations = [SyscallRow::TABLE, RequestRow::TABLE, SampleGapRow::TABLE];
    let are_recorded = of_operations.iter().any(|table| has(tables, table.name));
    let by_default = "record the default topics: sudo whyslow record";
    let topics = topics(tables)?;
    let is_topic = topics
        .as_ref()
        .is_some_and(|topics| topics.contains("syscalls"));
    Ok(if are_recorded {
        reason(
            "no_operations",
            "no system call or request happened in this window",
            "choose another window with -w",
        )
    } else if is_topic {
        reason(
            "no_operations",
            "system calls were recorded, but none happened",
            "record for longer, or without -p, --comm and --cgroup",
        )
    } else if topics.is_none() && has(tables, "counter") && !has(tables, "thread_state") {
        reason(
            "averages_only",
            "slow operations unavailable: the recording contains only averages of another tool",
            "record waits and their causes: sudo whyslow record",
        )
    } else if topics.is_none() && !OTHER_TABLES.iter().any(|name| has(tables, name)) {
        reason(
            "nothing_recorded",
            "slow operations unavailable: no operations recorded",
            "list the contents of the recording: whyslow info",
        )
    } else {
        reason(
            "calls_not_recorded",
            "slow operations unavailable: system calls not recorded",
            by_default,
        )
    })
}

/// Whether a table has a row in the window.
fn any(tables: &dyn Tables, table: &'static Table, window: Window) -> Result<bool, AnalysisError> {
    let mut projection = Projection::new(table);
    let [ts, ts_end] = ["ts", "ts_end"].map(|name| projection.need(name));
    let mut found = false;
    in_order(tables, &projection.scan(Some(window)), |batch| {
        let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
        found =
            (0..batch.num_rows() as u32).any(|row| window.overlaps(ts.at(row), ts_end.get(row)));
        Ok(if found {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(found)
}

/// Topics that the recorder recorded completely; `None` for other sources.
fn topics(tables: &dyn Tables) -> Result<Option<String>, AnalysisError> {
    let mut symbols = Symbols::new();
    let facts = rows::<MetadataRow>(tables, &mut symbols)?;
    let topics = facts.iter().find(|fact| symbols.get(fact.key) == "topics");
    Ok(topics.map(|fact| symbols.get(fact.value).to_owned()))
}

/// Share of the window in which events were lost: of all CPUs, or on average over the CPUs.
pub(crate) fn lost_share(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<f64, AnalysisError> {
    if !has(tables, LostEventsRow::TABLE.name) {
        return Ok(0.0);
    }
    let info = tables.info();
    let window = window.unwrap_or(Window::new(info.begin_ns, info.end_ns));
    let (begin, end) = (window.begin.max(info.begin_ns), window.end.min(info.end_ns));
    let mut symbols = Symbols::new();
    let cpus = rows::<CpuRow>(tables, &mut symbols)?.len().max(1);
    let mut ranges: FxHashMap<Option<i32>, Vec<(Ns, Ns)>> = FxHashMap::default();
    for loss in rows::<LostEventsRow>(tables, &mut symbols)? {
        let range = (loss.ts.max(begin), loss.ts_end.unwrap_or(end).min(end));
        // A skipped run of a program for lock waits is not a time without events.
        let hides_little = Hidden::of_stream(symbols.get(loss.stream)) == Hidden::Others;
        if range.1 > range.0 && !hides_little {
            ranges.entry(loss.cpu).or_default().push(range);
        }
    }
    let length = (end - begin).max(1) as f64;
    let of_all = ranges.remove(&None).map_or(0, covered);
    let of_each: Ns = ranges.into_values().map(covered).sum();
    Ok((of_all as f64 / length).max(of_each as f64 / (length * cpus as f64)))
}

/// Length of the union.
fn covered(mut ranges: Vec<(Ns, Ns)>) -> Ns {
    ranges.sort_unstable();
    let (mut sum, mut at) = (0, Ns::MIN);
    for (begin, end) in ranges {
        let begin = begin.max(at);
        if end > begin {
            sum += end - begin;
            at = end;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn overlapping_ranges_count_once() {
        assert_eq!(covered(vec![(5, 9), (0, 3), (2, 6), (20, 21)]), 10);
        assert_eq!(covered(Vec::new()), 0);
    }
}
