use crate::Sym;

crate::table! {
    /// Counts of events by name and of anomalies by kind.
    TraceStatRow = "trace_stat", Entity by id {
        /// Id.
        id: i64 [Id],
        /// event (records by event name), anomaly, total.
        kind: Sym,
        /// Event name, anomaly, or records_read, records_accepted, records_skipped.
        name: Sym,
        /// info, warning, error.
        severity: Sym,
        /// Source of the count.
        source: Option<Sym>,
        /// Count.
        count: i64 [Count],
    }
}
