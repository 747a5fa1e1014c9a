use crate::Sym;

crate::table! {
    /// How the clocks of the sources relate to `ts`.
    ClockSnapshotRow = "clock_snapshot", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Source it belongs to.
        source: Sym,
        /// Name of the clock: monotonic, boottime, realtime, or the trace's own.
        clock: Sym,
        /// Frequency in Hz.
        frequency: i64,
        /// Value of the clock at that moment, in its cycles.
        value: i64,
        /// The same moment in ns since the Unix epoch.
        ts: i64 [Time],
        /// Correction applied to this source, ns.
        shift_ns: i64 [Duration],
    }
}
