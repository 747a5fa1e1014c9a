crate::table! {
    /// CPUs of the recorded machine.
    CpuRow = "cpu", Entity by cpu {
        /// CPU number.
        cpu: i32 [Id],
        /// First event on the CPU.
        ts_first: i64 [Time],
        /// Last event on the CPU.
        ts_last: i64 [Time],
        /// Events read.
        events: i64 [Count],
        /// Events lost on the CPU.
        lost: i64 [Count],
        /// Time in threads other than idle; null if no context switch was recorded.
        busy_ns: Option<i64> [Duration],
    }
}
