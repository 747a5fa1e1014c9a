use crate::columns::lake_table;

lake_table! {
    /// Recordings, one row each.
    RecordingRow = "recording", sorted by [host, ts] {
        /// Its id: 26 characters, in order of `ts`; the same whenever it is pushed.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// First moment.
        ts: i64 [Time],
        /// Length.
        dur: i64 [Duration],
        /// Last moment.
        ts_end: i64 [Time],
        /// Release of its kernel.
        kernel: Option<String>,
        /// Architecture.
        machine: Option<String>,
        /// CPUs that it had.
        cpus: Option<i32> [Count],
        /// Its zone: IANA name or offset.
        zone: Option<String>,
        /// What was imported: recorder, lttng, perf, strace, …; several with `+` between.
        source: String,
        /// Rows of all its tables.
        rows: i64 [Count],
        /// Ranges of time in which events were lost.
        losses: i64 [Count],
        /// Events that were lost, as far as that is known.
        lost_events: i64 [Count],
        /// Kinds of which nothing was recorded, with commas between: of these nothing can be said.
        missing: String,
        /// Texts that were hidden: `texts` or `names`; null if none were.
        redacted: Option<String>,
        /// Whether its tables are in the lake, too (`--raw`).
        raw: bool,
        /// Number of what is in the recording: BLAKE3 of its manifest and checksums.
        digest: String,
        /// Where it was when it was pushed, as `HOST:PATH`.
        origin: Option<String>,
        /// Program and version that pushed it.
        written_by: String,
    }
}
