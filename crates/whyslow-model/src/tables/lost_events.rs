use crate::Sym;

crate::table! {
    /// Time ranges in which the source lost events.
    LostEventsRow = "lost_events", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Start of the range: no event was lost before this time.
        ts: i64 [Time],
        /// Length of the range; null if its end is unknown.
        dur: Option<i64> [Duration],
        /// End of the range: no event was lost after this time.
        ts_end: Option<i64> [Time],
        /// CPU whose events were lost; null if several or unknown.
        cpu: Option<i32>,
        /// Name of the stream or buffer.
        stream: Sym,
        /// events (discarded), packets (missing), bytes (unreadable).
        kind: Sym,
        /// Number lost; null if unknown.
        count: Option<i64> [Count],
    }
}
