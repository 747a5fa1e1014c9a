use crate::columns::lake_table;

lake_table! {
    /// Operations per second, by kind, operation and one more dimension at a time.
    RollupRow = "rollup", sorted by [kind, dimension, op, key, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Start of the second in which they started.
        ts: i64 [Time],
        /// Kind of operation: io, block, sched (waits for a CPU), cpu (time slices), locks, mem
        /// (reclaim), dns, requests.
        kind: String,
        /// all; process, file (pattern), device, name, endpoint, outcome. The totals of each
        /// dimension equal those of all.
        dimension: String,
        /// Value of the dimension: empty for all; `(others)` beyond the 16 with the most time,
        /// `(none)` without a value.
        key: String,
        /// Class of operation: read, write, …; client or server for requests; empty for kinds with
        /// one class.
        op: String,
        /// Number of operations.
        count: i64 [Count],
        /// Those with a known duration.
        finished: i64 [Count],
        /// Those that failed; null if unknown.
        errors: Option<i64> [Count],
        /// Bytes transferred; null for kinds without.
        bytes: Option<i64> [Bytes],
        /// Sum of their durations.
        dur_total_ns: i64 [Duration],
        /// Minimum duration.
        dur_min_ns: Option<i64> [Duration],
        /// Maximum duration.
        dur_max_ns: Option<i64> [Duration],
    }
}
