//! Logs written faster than a disk can take, loops of sync calls, metadata storms.

use super::calls::{Counted, Sum, What};
use super::{actor, mebibytes};
use crate::report::{Observation, Thing};

/// Bytes per second of small writes to one log, over at least a second: journals and builds write
/// in bursts, and any disk can take a slower log.
const LOG_RATE_MIN: f64 = 20.0 * (1 << 20) as f64;
const LOG_BYTES_MIN: i64 = 32 << 20;
/// Logs are written in lines; larger writes are copies and databases.
const LOG_WRITE_MAX: i64 = 64 << 10;
/// Sync calls per second of one process, and the minimum share of time in them.
const SYNC_RATE_MIN: f64 = 5.0;
const SYNC_BUSY_MIN: f64 = 0.5;
const SYNCS_MIN: u64 = 10;
/// Metadata calls per second on paths of one pattern, and their minimum number.
const METADATA_RATE_MIN: f64 = 20_000.0;
const METADATA_MIN: u64 = 50_000;

pub(super) fn find(counted: &Counted, recording: &str) -> Vec<Observation> {
    let mut found = logs(counted, recording);
    found.extend(syncs(counted, recording));
    found.extend(metadata(counted, recording));
    found
}

/// Logs that are written faster than a disk can take for long.
fn logs(counted: &Counted, recording: &str) -> Vec<Observation> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Write) {
        let rate = sum.bytes as f64 / sum.seconds().max(1.0);
        let pattern = counted.pattern(pattern);
        let is_log =
            pattern.contains("log") || pattern.contains("/trace") || pattern.contains("out");
        let is_small = sum.bytes / (sum.calls.max(1) as i64) <= LOG_WRITE_MAX;
        if is_log && is_small && rate >= LOG_RATE_MIN && sum.bytes >= LOG_BYTES_MIN {
            let summary = format!(
                "wrote {} to {pattern} in {} writes, {}/s",
                mebibytes(sum.bytes),
                sum.calls,
                mebibytes(rate as i64)
            );
            let numbers = [("bytes_per_second", rate), ("bytes", sum.bytes as f64)];
            let advice = "log less verbosely; move the log to another disk; limit its rate";
            found.push(observation(
                counted,
                ("log_flood", upid),
                (pattern, sum),
                (&summary, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

/// Processes that call sync or fsync in a loop.
fn syncs(counted: &Counted, recording: &str) -> Vec<Observation> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Sync) {
        let rate = sum.calls as f64 / sum.seconds();
        let busy = sum.time as f64 / 1e9 / sum.seconds();
        if sum.calls >= SYNCS_MIN && rate >= SYNC_RATE_MIN && busy >= SYNC_BUSY_MIN {
            let pattern = counted.pattern(pattern);
            let on = if pattern.is_empty() {
                "all file systems"
            } else {
                pattern
            };
            let summary = format!(
                "synced {on} {} times ({rate:.0}/s) and spent {:.0} % of that time in sync calls; threads that need the same journal wait for each of them",
                sum.calls,
                busy * 100.0
            );
            let numbers = [("syncs_per_second", rate), ("busy_ratio", busy)];
            let advice = "sync less often (group commits), or use a separate file system";
            found.push(observation(
                counted,
                ("fsync_neighbour", upid),
                (pattern, sum),
                (&summary, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

/// Processes with metadata storms.
fn metadata(counted: &Counted, recording: &str) -> Vec<Observation> {
    let mut found = Vec::new();
    for (upid, pattern, sum) in counted.of(What::Metadata) {
        let rate = sum.calls as f64 / sum.seconds();
        if sum.calls >= METADATA_MIN && rate >= METADATA_RATE_MIN {
            let pattern = counted.pattern(pattern);
            let failed = sum.failed as f64 / sum.calls as f64;
            let summary = format!(
                "looked up, opened or removed {pattern} {} times ({rate:.0}/s); {:.0} % failed",
                sum.calls,
                failed * 100.0
            );
            let numbers = [("calls_per_second", rate), ("failed_ratio", failed)];
            let advice = "cache both found and missing paths";
            found.push(observation(
                counted,
                ("metadata_storm", upid),
                (pattern, sum),
                (&summary, advice),
                (&numbers, recording),
            ));
        }
    }
    found
}

fn observation(
    counted: &Counted,
    (kind, upid): (&str, i32),
    (pattern, sum): (&str, &Sum),
    (summary, advice): (&str, &str),
    (numbers, recording): (&[(&str, f64)], &str),
) -> Observation {
    let process = counted.process(upid);
    let pid = process
        .pid
        .map_or_else(String::new, |pid| format!("[{pid}]"));
    Observation {
        kind: kind.into(),
        culprit: actor(&process.comm, process.pid, sum.thread()),
        object: (!pattern.is_empty()).then(|| Thing {
            kind: "file".into(),
            name: pattern.to_owned(),
        }),
        begin_ns: sum.first,
        end_ns: sum.last,
        summary: format!("{}{pid} {summary}", process.comm),
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
