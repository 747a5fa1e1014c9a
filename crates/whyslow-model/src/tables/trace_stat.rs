use crate::Sym;

crate::table! {
    /// Counts of everything notable: events by name and anomalies by kind.
    TraceStatRow = "trace_stat", Entity by id {
        /// Id.
        id: i64 [Id],
        /// event (records by event name), anomaly, total.
        kind: Sym,
        /// Event name, anomaly, or records_read, records_accepted, records_skipped.
        name: Sym,
        /// info, warning, error.
        severity: Sym,
        /// Source it was counted in.
        source: Option<Sym>,
        /// How many.
        count: i64 [Count],
    }
}
