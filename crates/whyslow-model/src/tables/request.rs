use crate::Sym;

crate::table! {
    /// Requests from one program to another, as one of the two saw them, or somebody between them.
    RequestRow = "request", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin: of a client when it began to do it, of a server when it had its first byte in hand.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// When it should have begun, of load with a schedule; null without one.
        ts_intended: Option<i64> [Time],
        /// client, server: whose view this is; proxy for what answers one by asking another.
        role: Sym,
        /// What told of it: load, socket (seen at a server's sockets), or the format of a log.
        source: Sym,
        /// HTTP/1.1, HTTP/2, kafka, …
        protocol: Option<Sym>,
        /// GET, POST, …
        method: Option<Sym>,
        /// Host that was asked, with its port where it is not the usual one.
        host: Option<Sym>,
        /// What was asked for, of which there are few: the path without its query, or the name of the operation. Of a server's sockets
        /// as its client told, like method, host, target, status and outcome; null where that is not known.
        endpoint: Option<Sym>,
        /// What was asked for, whole: path and query.
        target: Option<Sym>,
        /// Status of the answer; null without an answer.
        status: Option<i32>,
        /// ok, error (the answer says so), unresolved, refused, unreachable, reset, closed, timeout, tls, protocol, failed, cut (the client was stopped); unknown where the source does not tell.
        outcome: Sym,
        /// What went wrong, in words.
        error: Option<Sym>,
        /// Who asked: an address, or what it calls itself.
        client: Option<Sym>,
        /// Number of the connection, unique in its source; null where it is not known.
        connection: Option<i64>,
        /// Whether an earlier request had used the connection.
        is_reused: Option<bool>,
        /// Address and port of this side.
        local: Option<Sym>,
        /// Address and port of the other side.
        peer: Option<Sym>,
        /// Worker of the load that did it.
        worker: Option<i32>,
        /// Number that the source gave it.
        seq: Option<i64>,
        /// Bytes that this side sent, with headers where the source counts them.
        bytes_sent: Option<i64> [Bytes],
        /// Bytes that this side received, with headers where the source counts them.
        bytes_received: Option<i64> [Bytes],
        /// It waited before somebody took it: of a server in the socket or in a queue, of a client for a connection.
        queue_ns: Option<i64> [Duration],
        /// Lookup of the host's name; null where none was made.
        resolve_ns: Option<i64> [Duration],
        /// From the request for a connection to its answer.
        connect_ns: Option<i64> [Duration],
        /// Handshake of TLS.
        tls_ns: Option<i64> [Duration],
        /// Until the request was written.
        send_ns: Option<i64> [Duration],
        /// From then to the first byte of the answer.
        wait_ns: Option<i64> [Duration],
        /// From then to the last one.
        receive_ns: Option<i64> [Duration],
        /// First half of the number of its trace.
        trace_high: Option<i64>,
        /// Second half.
        trace_low: Option<i64>,
        /// Number of its span in the trace.
        span: Option<i64>,
        /// Number of the span that caused it.
        parent_span: Option<i64>,
        /// Of a client's: `id` of the request in whose course it was asked for; null where none is known.
        parent_request: Option<i64> [Id],
        /// Of a client's: `id` of the same request as the server saw it; null where none was found.
        server_request: Option<i64> [Id],
        /// How that was found: connection (addresses and ports), trace.
        joined_by: Option<Sym>,
        /// Of what a client's sockets show: `id` of the same request as its load or log tells it, which questions count
        /// instead unless they ask by source; null where none is known.
        same_as: Option<i64> [Id],
        /// Thread (recording-unique id) that began it: of a server the one that read it; null where the source cannot tell.
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
