use crate::columns::lake_table;

lake_table! {
    /// Operations of each second, by kind, operation, and one more dimension at a time.
    RollupRow = "rollup", sorted by [kind, dimension, op, key, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Begin of the second in which they began.
        ts: i64 [Time],
        /// What they are: io, block, sched (waits for a CPU), cpu (time slices), locks, mem (reclaim), dns, requests.
        kind: String,
        /// all; process, file (pattern), device, name, endpoint, outcome. Sums of each dimension are those of all.
        dimension: String,
        /// Value of the dimension: empty for all; `(others)` beyond the 16 with most time, `(none)` where there is none.
        key: String,
        /// Class of operation: read, write, …; of requests client or server; empty where there is one class.
        op: String,
        /// How many.
        count: i64 [Count],
        /// Those of which the length is known.
        finished: i64 [Count],
        /// Those that failed; null where nothing tells.
        errors: Option<i64> [Count],
        /// Bytes that they moved; null for kinds without.
        bytes: Option<i64> [Bytes],
        /// Sum of their lengths.
        dur_total_ns: i64 [Duration],
        /// Least length.
        dur_min_ns: Option<i64> [Duration],
        /// Greatest length.
        dur_max_ns: Option<i64> [Duration],
    }
}
