use crate::columns::lake_table;

lake_table! {
    /// The slowest operations of each kind and class, and their ids in the recording.
    SlowestRow = "slowest", sorted by [kind, op, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Start.
        ts: i64 [Time],
        /// Duration.
        dur: i64 [Duration],
        /// As in `rollup`.
        kind: String,
        /// As in `rollup`.
        op: String,
        /// Name of the thread.
        process: Option<String>,
        /// Kernel id of the thread.
        tid: Option<i64>,
        /// What it accessed: path, device, endpoint, host.
        object: Option<String>,
        /// Id for commands: `explain -w ID`.
        id: String,
    }
}
