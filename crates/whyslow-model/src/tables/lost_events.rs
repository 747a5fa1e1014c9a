use crate::Sym;

crate::table! {
    /// Ranges of time in which the source lost events.
    LostEventsRow = "lost_events", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Nothing was lost before this.
        ts: i64 [Time],
        /// Length of the range; null if its end is unknown.
        dur: Option<i64> [Duration],
        /// Nothing was lost after this.
        ts_end: Option<i64> [Time],
        /// CPU whose events were lost; null if several or unknown.
        cpu: Option<i32>,
        /// Stream or buffer.
        stream: Sym,
        /// events (discarded), packets (missing), bytes (unreadable).
        kind: Sym,
        /// How many; null if unknown.
        count: Option<i64> [Count],
    }
}
