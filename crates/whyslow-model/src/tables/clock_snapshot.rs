use crate::Sym;

crate::table! {
    /// Relation between the clocks of each source and `ts`.
    ClockSnapshotRow = "clock_snapshot", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Source that the clock belongs to.
        source: Sym,
        /// Clock: monotonic, boottime, realtime, or the trace's own.
        clock: Sym,
        /// Frequency in Hz.
        frequency: i64,
        /// Value of the clock at the time of the snapshot, in clock cycles.
        value: i64,
        /// Time of the snapshot in ns since the Unix epoch.
        ts: i64 [Time],
        /// Correction applied to the source, in ns.
        shift_ns: i64 [Duration],
    }
}
