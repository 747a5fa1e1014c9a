use crate::Sym;

crate::table! {
    /// Threads that served a request, from receiving it to passing it on.
    RequestThreadRow = "request_thread", Interval by id {
        /// Id, in order of the ends of requests.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Request (`request.id`).
        request: i64 [Id],
        /// How the thread received the request: read (from the connection), write (unknown: it
        /// wrote the response), futex, eventfd, pipe, unix, socket (from a local process), clone
        /// (the thread was created while another one served the request).
        received_by: Sym,
        /// Thread that passed on the request (recording-unique id); null for the thread that read
        /// it.
        from_utid: Option<i32> [Id],
        /// Whether the time includes other activity of the thread, as in an event loop that serves
        /// many connections.
        is_shared: bool,
        /// Thread (recording-unique id).
        utid: i32 [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
    }
}
