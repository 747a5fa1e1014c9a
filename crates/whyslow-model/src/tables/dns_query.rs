use crate::Sym;

crate::table! {
    /// Questions that threads sent to name servers (port 53), until each was answered or given up.
    /// Which answer is to which question is not seen: those of a socket are taken to be answered in
    /// their order.
    DnsQueryRow = "dns_query", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// When it was sent: the begin of the call.
        ts: i64 [Time],
        /// Until the answer was read, it was asked again, or its socket was closed; null if the recording ended before.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Address and port of the server.
        server: Sym,
        /// answered, asked_again (no answer until then), given_up (its socket was closed); null if the end was not recorded.
        outcome: Option<Sym>,
        /// 1 for those of the first round of their lookup, 2 for those after a round without an answer, and so on; null without a lookup.
        attempt: Option<i32>,
        /// The lookup that it is of: id in `dns_lookup`; null for programs that ask without the C library (Go).
        lookup: Option<i64> [Id],
        /// Name that is looked up; null where no lookup tells it.
        host: Option<Sym>,
        /// Thread that sent it (recording-unique id); null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// CPU of the begin.
        cpu: Option<i32>,
    }
}
