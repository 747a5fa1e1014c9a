use crate::Sym;

crate::table! {
    /// TCP connections, from the request to the end.
    TcpConnectionRow = "tcp_connection", Interval by id {
        /// Id, in order of `ts`.
        id: i64 [Id],
        /// When it was asked for, or accepted by the kernel; when something was first seen of those that are older than the recording.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End: from then on no more data can come or go; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// connect (from here), accept (from there), unknown (older than the recording, or not told).
        kind: Sym,
        /// How it ended: closed (by both; `closed_by` tells who began), reset (by the peer), aborted (by this side, without waiting for the other), refused, timeout, unreachable, failed (with `error`), unknown (not told); open if it did not.
        outcome: Sym,
        /// local or peer: who said first that nothing more would come.
        closed_by: Option<Sym>,
        /// Address and port of this side.
        local: Option<Sym>,
        /// Address and port of the other side.
        peer: Option<Sym>,
        /// From the request for a connection to its answer; null for those accepted, and without an answer.
        connect_ns: Option<i64> [Duration],
        /// Last known state: established, fin_wait1, …
        state: Sym,
        /// Bytes that the peer has acknowledged; null where the source does not tell.
        bytes_sent: Option<i64> [Bytes],
        /// Bytes received.
        bytes_received: Option<i64> [Bytes],
        /// Segments sent again.
        retransmits: Option<i64> [Count],
        /// Round-trip time, smoothed, at the last change of state.
        rtt_ns: Option<i64> [Duration],
        /// Number of the error that the socket had at the end; null for none.
        error: Option<i32>,
        /// Thread (recording-unique id) that asked for the connection; of others the one that closed it; null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
    }
}
