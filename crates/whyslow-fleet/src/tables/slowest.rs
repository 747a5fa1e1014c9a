use crate::columns::lake_table;

lake_table! {
    /// The longest operations of each kind and class, and where they are in the recording.
    SlowestRow = "slowest", sorted by [kind, op, host, ts] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Begin.
        ts: i64 [Time],
        /// Length.
        dur: i64 [Duration],
        /// As in `rollup`.
        kind: String,
        /// As in `rollup`.
        op: String,
        /// Name of the thread.
        process: Option<String>,
        /// Its kernel id.
        tid: Option<i64>,
        /// What it was about: path, device, endpoint, host.
        object: Option<String>,
        /// As commands take it: `explain -w ID`.
        id: String,
    }
}
