use crate::Sym;

crate::table! {
    /// Requests from one program to another, as seen by the client, the server or a proxy.
    RequestRow = "request", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time: for a client the start of the request, for a server the time at which it had
        /// received the first byte.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded, or if events were lost in between and no
        /// certain request to that server had taken as long. Until the client closed its connection
        /// if there was no reply, where earlier requests had one.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Intended start time, for load with a schedule; null without one.
        ts_intended: Option<i64> [Time],
        /// Role of the observer: client, server; proxy if it answers a request by sending another
        /// one.
        role: Sym,
        /// Source of the data: load, socket (observed on a server's or client's sockets), or the
        /// format of a log.
        source: Sym,
        /// HTTP/1.1, HTTP/2, kafka, …
        protocol: Option<Sym>,
        /// GET, POST, …
        method: Option<Sym>,
        /// Host that received the request, with the port unless it is the default.
        host: Option<Sym>,
        /// Operation, of low cardinality: the path without its query, or the name of the operation.
        /// For requests seen on a server's sockets it comes from the client's record, as do method,
        /// host, target, status and outcome; null if unknown.
        endpoint: Option<Sym>,
        /// Complete request target: path and query.
        target: Option<Sym>,
        /// Response status; null without a response.
        status: Option<i32>,
        /// ok, error (according to the response), unresolved, refused, unreachable, reset, closed,
        /// timeout, tls, protocol, failed, cut (the client was stopped); unknown if the source does
        /// not report it.
        outcome: Sym,
        /// Error message.
        error: Option<Sym>,
        /// Client: its address, or the name that it reports.
        client: Option<Sym>,
        /// Connection number, unique in its source; null if unknown.
        connection: Option<i64>,
        /// Whether an earlier request used the same connection.
        is_reused: Option<bool>,
        /// Address and port of this side.
        local: Option<Sym>,
        /// Address and port of the other side.
        peer: Option<Sym>,
        /// Worker of the load generator.
        worker: Option<i32>,
        /// Number given by the source.
        seq: Option<i64>,
        /// Bytes sent by this side, including headers if the source counts them.
        bytes_sent: Option<i64> [Bytes],
        /// Bytes received by this side, including headers if the source counts them.
        bytes_received: Option<i64> [Bytes],
        /// Queue time: on a server, in the socket or in a queue; on a client, for a connection.
        queue_ns: Option<i64> [Duration],
        /// DNS lookup time; null if no lookup was made.
        resolve_ns: Option<i64> [Duration],
        /// Time from the connection request to the reply.
        connect_ns: Option<i64> [Duration],
        /// Time of the TLS handshake.
        tls_ns: Option<i64> [Duration],
        /// Time to send the request.
        send_ns: Option<i64> [Duration],
        /// Time from the end of sending to the first byte of the response.
        wait_ns: Option<i64> [Duration],
        /// Time from the first to the last byte of the response.
        receive_ns: Option<i64> [Duration],
        /// Upper 64 bits of the trace id.
        trace_high: Option<i64>,
        /// Lower 64 bits of the trace id.
        trace_low: Option<i64>,
        /// Span id within the trace.
        span: Option<i64>,
        /// Span id of the parent span.
        parent_span: Option<i64>,
        /// For a client request: `id` of the server request that caused it; null if unknown.
        parent_request: Option<i64> [Id],
        /// For a client request: `id` of the same request as seen by the server; null if none was
        /// found.
        server_request: Option<i64> [Id],
        /// How `server_request` was found: connection (addresses and ports), trace.
        joined_by: Option<Sym>,
        /// For a request seen on a client's sockets: `id` of the same request as reported by load
        /// or a log. Queries count only the latter, unless they select by source; null if unknown.
        same_as: Option<i64> [Id],
        /// Thread that started the request (recording-unique id): on a server the thread that read
        /// it; null if the source does not identify it.
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
