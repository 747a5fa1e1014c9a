use crate::columns::lake_table;

lake_table! {
    /// What `explain` says of each recording, one row a verdict.
    FindingRow = "finding", sorted by [mechanism, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Place among the verdicts of the recording, from 0: as `explain` tells them.
        nr: i32,
        /// Begin of what was slow.
        ts: i64 [Time],
        /// Its length.
        dur: i64 [Duration],
        /// What tells it: story (why something was slow), finding (somebody did something known by name), pattern (which kind of slowness it is).
        told_by: String,
        /// What was slow: operation, request, thread, window, device, lookup, …
        target: String,
        /// Its operation or name, with placeholders for what differs from one to the next.
        operation: String,
        /// Who was slow.
        victim: Option<String>,
        /// How that felt it: an id of `explain`; of findings their kind, of patterns their class.
        mechanism: String,
        /// What the culprit did, by the same ids.
        root: Option<String>,
        /// own, process, kernel, device, peer, timer, cgroup, interrupt, unknown; null if nobody is named.
        culprit_kind: Option<String>,
        /// Its name, with placeholders for numbers.
        culprit: Option<String>,
        /// file, device, lock, peer, …
        object_kind: Option<String>,
        /// What it was about, with placeholders for what differs from one to the next.
        object: Option<String>,
        /// Time of the window that went to the culprit.
        blamed_ns: Option<i64> [Duration],
        /// That, as a share of the window (0–1).
        share: Option<f64>,
        /// Slow operations that the verdict stands for.
        count: i64 [Count],
        /// A (identity proved), B (nothing else possible), C (overlap only); null if nobody is named.
        grade: Option<String>,
        /// high, medium, low, none.
        confidence: Option<String>,
        /// What was not recorded and could decide, with `; ` between.
        missing: Option<String>,
        /// The verdict in words.
        verdict: String,
        /// As commands take it: `explain -w ID`; null where it is no row.
        id: Option<String>,
        /// The command that says it again.
        reproduce: Option<String>,
    }
}
