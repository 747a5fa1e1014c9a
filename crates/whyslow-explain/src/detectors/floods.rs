//! Logs that are written faster than a disk takes them, loops of syncs, storms of names.

use super::calls::{Counted, Sum, What};
use super::{actor, mebibytes};
use crate::report::{Finding, Thing};

/// Bytes a second of small writes to one log, over at least a second: journals and builds write in
/// bursts, and slower logs are no flood for any disk.
const LOG_RATE_MIN: f64 = 20.0 * (1 << 20) as f64;
const LOG_BYTES_MIN: i64 = 32 << 20;
/// A log is written in lines: larger writes are copies and databases.
const LOG_WRITE_MAX: i64 = 64 << 10;
/// Syncs a second of one process, and in how much of the time it was in one.
const SYNC_RATE_MIN: f64 = 5.0;
const SYNC_BUSY_MIN: f64 = 0.5;
const SYNCS_MIN: u64 = 10;
/// Calls about names a second at paths of one pattern, and how many altogether.
const NAMES_RATE_MIN: f64 = 20_000.0;
const NAMES_MIN: u64 = 50_000;

pub(super) fn find(counted: &Counted, recording: &str) -> Vec<Finding> {
    let mut found = logs(counted, recording);
    found.extend(syncs(counted, recording));
    found.extend(names(counted, recording));
    found
}

/// Logs that get more than a disk takes for long.
fn logs(counted: &Counted, recording: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Write) {
        let rate = sum.bytes as f64 / sum.seconds().max(1.0);
        let pattern = counted.pattern(pattern);
        let is_log =
            pattern.contains("log") || pattern.contains("/trace") || pattern.contains("out");
        let is_small = sum.bytes / (sum.calls.max(1) as i64) <= LOG_WRITE_MAX;
        if is_log && is_small && rate >= LOG_RATE_MIN && sum.bytes >= LOG_BYTES_MIN {
            let says = format!(
                "wrote {} to {pattern} in {} writes, {}/s",
                mebibytes(sum.bytes),
                sum.calls,
                mebibytes(rate as i64)
            );
            let numbers = [("bytes_per_second", rate), ("bytes", sum.bytes as f64)];
            let advice = "log less, or at a lower level; rotate to another disk; limit the rate";
            found.push(told(
                counted,
                ("log_flood", upid),
                (pattern, sum),
                (&says, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

/// Who synchronises in a loop.
fn syncs(counted: &Counted, recording: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Sync) {
        let rate = sum.calls as f64 / sum.seconds();
        let busy = sum.time as f64 / 1e9 / sum.seconds();
        if sum.calls >= SYNCS_MIN && rate >= SYNC_RATE_MIN && busy >= SYNC_BUSY_MIN {
            let pattern = counted.pattern(pattern);
            let on = if pattern.is_empty() {
                "everything"
            } else {
                pattern
            };
            let says = format!(
                "synchronised {on} {} times ({rate:.0} a second) and spent {:.0} % of that time in it; who needs the same journal waits for each",
                sum.calls,
                busy * 100.0
            );
            let numbers = [("syncs_per_second", rate), ("busy_ratio", busy)];
            let advice = "sync less often (group commits), or on a file system of its own";
            found.push(told(
                counted,
                ("fsync_neighbour", upid),
                (pattern, sum),
                (&says, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

/// Who asks for names all the time.
fn names(counted: &Counted, recording: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Metadata) {
        let rate = sum.calls as f64 / sum.seconds();
        if sum.calls >= NAMES_MIN && rate >= NAMES_RATE_MIN {
            let pattern = counted.pattern(pattern);
            let failed = sum.failed as f64 / sum.calls as f64;
            let says = format!(
                "looked up, opened or removed {pattern} {} times, {rate:.0} a second; {:.0} % failed",
                sum.calls,
                failed * 100.0
            );
            let numbers = [("calls_per_second", rate), ("failed_ratio", failed)];
            let advice = "remember what was found, and what was not";
            found.push(told(
                counted,
                ("metadata_storm", upid),
                (pattern, sum),
                (&says, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

fn told(
    counted: &Counted,
    (kind, upid): (&str, i32),
    (pattern, sum): (&str, &Sum),
    (says, advice): (&str, &str),
    (numbers, recording): (&[(&str, f64)], &str),
) -> Finding {
    let process = counted.process(upid);
    let pid = process
        .pid
        .map_or_else(String::new, |pid| format!("[{pid}]"));
    Finding {
        kind: kind.into(),
        culprit: actor(&process.comm, process.pid, sum.thread()),
        object: (!pattern.is_empty()).then(|| Thing {
            kind: "file".into(),
            name: pattern.to_owned(),
        }),
        begin_ns: sum.first,
        end_ns: sum.last,
        says: format!("{}{pid} {says}", process.comm),
        numbers: numbers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        evidence: vec![format!("op:{}", sum.longest.1)],
        shown_by: process
            .pid
            .map(|pid| format!("whyslow files top {recording} --pid {pid}")),
        suggestions: vec![advice.to_owned()],
    }
}
