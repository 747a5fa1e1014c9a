use crate::columns::lake_table;

lake_table! {
    /// Latency histograms of the operations of `rollup`: a row for each non-empty bucket. Add up
    /// `count` to merge.
    HistogramRow = "histogram", sorted by [kind, dimension, op, key, host, ts, bucket] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Start of the second in which they started.
        ts: i64 [Time],
        /// As in `rollup`.
        kind: String,
        /// As in `rollup`.
        dimension: String,
        /// As in `rollup`.
        key: String,
        /// As in `rollup`.
        op: String,
        /// Number of the bucket: one per ns below 64, then 32 equal ones per octave.
        bucket: i32,
        /// Their duration, where the recording has at most 64 of the kind, dimension, key and
        /// operation; else null, and the middle of the bucket represents them.
        value_ns: Option<i64> [Duration],
        /// Number of operations.
        count: i64 [Count],
    }
}
