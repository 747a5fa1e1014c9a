use crate::Sym;

crate::table! {
    /// Phases of requests, as reported by their source.
    RequestPhaseRow = "request_phase", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time; if the source reports only durations, the phases are placed one after the
        /// other.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Request (`request.id`).
        request: i64 [Id],
        /// resolve, connect, tls, send, wait, receive; for brokers request_queue, local, remote,
        /// response_queue, response_send, …; phases of other sources keep their names.
        phase: Sym,
        /// Endpoint of the request.
        endpoint: Option<Sym>,
        /// Client of the request.
        client: Option<Sym>,
    }
}
