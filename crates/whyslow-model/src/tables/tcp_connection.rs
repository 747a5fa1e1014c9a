use crate::Sym;

crate::table! {
    /// TCP connections, from the connection request to the end.
    TcpConnectionRow = "tcp_connection", Interval by id {
        /// Id, in order of `ts`.
        id: i64 [Id],
        /// Time of the connection request, or of acceptance by the kernel; for connections older
        /// than the recording, the time of the first event.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time: no data can be sent or received from then on; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// connect (initiated by this side), accept (initiated by the peer), unknown (older than
        /// the recording, or not reported).
        kind: Sym,
        /// How it ended: closed (by both sides, `closed_by` first), reset (by the peer), aborted
        /// (by this side, without waiting for the peer), refused, timeout, unreachable, failed
        /// (with `error`), unknown (not reported); open if it did not end.
        outcome: Sym,
        /// local or peer: the side that sent FIN first.
        closed_by: Option<Sym>,
        /// Address and port of this side.
        local: Option<Sym>,
        /// Address and port of the other side.
        peer: Option<Sym>,
        /// Time from the connection request to the reply; null for accepted connections, and without
        /// a reply.
        connect_ns: Option<i64> [Duration],
        /// Last known state: established, fin_wait1, …
        state: Sym,
        /// Bytes acknowledged by the peer; null if the source does not report them.
        bytes_sent: Option<i64> [Bytes],
        /// Bytes received.
        bytes_received: Option<i64> [Bytes],
        /// Retransmitted segments.
        retransmits: Option<i64> [Count],
        /// Smoothed round-trip time at the last state change.
        rtt_ns: Option<i64> [Duration],
        /// Error number of the socket at the end; null without an error.
        error: Option<i32>,
        /// Thread that requested the connection (recording-unique id); for other connections the
        /// thread that closed it; null if the source does not identify it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
    }
}
