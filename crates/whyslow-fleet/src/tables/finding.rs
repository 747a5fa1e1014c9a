use crate::columns::lake_table;

lake_table! {
    /// Findings of `explain` for each recording, one row per verdict.
    FindingRow = "finding", sorted by [mechanism, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Rank among the verdicts of the recording, from 0, in the order of `explain`.
        nr: i32,
        /// Start of what was slow.
        ts: i64 [Time],
        /// Duration of what was slow.
        dur: i64 [Duration],
        /// Kind of verdict: finding (why one operation was slow), observation (a known pattern of
        /// behaviour), pattern (the class of slowness).
        source: String,
        /// What was slow: operation, request, thread, window, device, lookup, …
        target: String,
        /// Its operation or name, with placeholders for the parts that vary.
        operation: String,
        /// The thread or process that was slow.
        victim: Option<String>,
        /// Mechanism by which the victim was delayed: an id of `explain`; for
        /// observations their kind, for patterns their class.
        mechanism: String,
        /// What the culprit did: an id of `explain`.
        root: Option<String>,
        /// own, process, kernel, device, peer, timer, cgroup, interrupt, cpu, unknown; null without
        /// a culprit.
        culprit_kind: Option<String>,
        /// Its name, with placeholders for numbers.
        culprit: Option<String>,
        /// file, device, lock, peer, …
        object_kind: Option<String>,
        /// The object involved, with placeholders for the parts that vary.
        object: Option<String>,
        /// Time in the window that is attributed to the culprit.
        blamed_ns: Option<i64> [Duration],
        /// The same as a share of the window (0–1).
        share: Option<f64>,
        /// Slow operations that the verdict covers.
        count: i64 [Count],
        /// A (identity proved), B (nothing else possible), C (overlap only); null without a
        /// culprit.
        grade: Option<String>,
        /// high, medium, low, none.
        confidence: Option<String>,
        /// What was not recorded and could change the verdict, separated by `; `.
        missing: Option<String>,
        /// The verdict as text.
        verdict: String,
        /// Id for commands: `explain -w ID`; null if it is not a row.
        id: Option<String>,
        /// The command that reproduces the verdict.
        reproduce: Option<String>,
    }
}
