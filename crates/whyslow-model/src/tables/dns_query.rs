use crate::Sym;

crate::table! {
    /// DNS queries that threads sent to name servers (port 53), until each was answered or given
    /// up. Replies are not matched to queries by content: the queries of a socket are assumed to be
    /// answered in order.
    DnsQueryRow = "dns_query", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Time of sending: the start of the call.
        ts: i64 [Time],
        /// Time until the reply was read, the query was sent again, or the socket was closed; null
        /// if the recording ended before.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Address and port of the name server.
        server: Sym,
        /// answered, asked_again (retried without a reply), given_up (the socket was closed); null
        /// if the end was not recorded.
        outcome: Option<Sym>,
        /// 1 for queries of the first round of a lookup, 2 for the round after one without a reply,
        /// and so on; null without a lookup.
        attempt: Option<i32>,
        /// DNS lookup that the query belongs to (`dns_lookup.id`); null for programs that do not
        /// resolve names through the C library (Go).
        lookup: Option<i64> [Id],
        /// Host name; null if no lookup reports it.
        host: Option<Sym>,
        /// Thread that sent the query (recording-unique id); null if the source does not identify
        /// it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// CPU at the start.
        cpu: Option<i32>,
    }
}
