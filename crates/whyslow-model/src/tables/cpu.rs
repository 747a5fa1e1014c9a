crate::table! {
    /// CPUs of the recorded machine.
    CpuRow = "cpu", Entity by cpu {
        /// Number.
        cpu: i32 [Id],
        /// First event on it.
        ts_first: i64 [Time],
        /// Last event on it.
        ts_last: i64 [Time],
        /// Events read.
        events: i64 [Count],
        /// Events lost on it.
        lost: i64 [Count],
        /// Time in threads other than idle; null without a recorded switch.
        busy_ns: Option<i64> [Duration],
    }
}
