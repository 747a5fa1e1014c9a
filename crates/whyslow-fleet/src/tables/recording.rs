use crate::columns::lake_table;

lake_table! {
    /// Recordings, one row each.
    RecordingRow = "recording", sorted by [host, ts] {
        /// Its id: 26 characters that sort by `ts`; the same whenever it is pushed.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// Start of the recording.
        ts: i64 [Time],
        /// Duration of the recording.
        dur: i64 [Duration],
        /// End of the recording.
        ts_end: i64 [Time],
        /// Kernel release of the host.
        kernel: Option<String>,
        /// Architecture of the host.
        machine: Option<String>,
        /// Number of CPUs of the host.
        cpus: Option<i32> [Count],
        /// Time zone of the host: IANA name or offset.
        zone: Option<String>,
        /// What was imported: recorder, lttng, perf, strace, …; several separated by `+`.
        source: String,
        /// Rows of all its tables.
        rows: i64 [Count],
        /// Time ranges in which events were lost.
        losses: i64 [Count],
        /// Number of lost events, as far as it is known.
        lost_events: i64 [Count],
        /// Kinds that were not recorded, separated by commas: no statement about them is possible.
        missing: String,
        /// What was redacted: `texts` or `names`; null if nothing was.
        redacted: Option<String>,
        /// Whether its tables are in the lake, too (`--raw`).
        raw: bool,
        /// Digest of its content: BLAKE3 of its manifest and checksums.
        digest: String,
        /// Where it was when it was pushed, as `HOST:PATH`.
        origin: Option<String>,
        /// Program and version that pushed it.
        written_by: String,
    }
}
