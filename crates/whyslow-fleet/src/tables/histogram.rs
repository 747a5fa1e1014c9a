use crate::columns::lake_table;

lake_table! {
    /// How long the operations of `rollup` took: a row for each bucket that holds some. Add up `count` to merge.
    HistogramRow = "histogram", sorted by [kind, dimension, op, key, host, ts, bucket] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Begin of the second in which they began.
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
        /// How long they took, where the recording has at most 64 of the kind, dimension, key and operation; null else: the middle of the bucket stands for it.
        value_ns: Option<i64> [Duration],
        /// How many.
        count: i64 [Count],
    }
}
