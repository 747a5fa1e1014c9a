use crate::Sym;

crate::table! {
    /// What a request spent its time with, as its source tells.
    RequestPhaseRow = "request_phase", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin; where the source tells lengths only, as if one phase came after another.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Its request.
        request: i64 [Id],
        /// resolve, connect, tls, send, wait, receive; request_queue, local, remote, response_queue, response_send, … of brokers; names of others as they are.
        phase: Sym,
        /// What was asked for.
        endpoint: Option<Sym>,
        /// Who asked.
        client: Option<Sym>,
    }
}
