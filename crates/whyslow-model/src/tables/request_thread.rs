use crate::Sym;

crate::table! {
    /// Threads that worked for a request, from when they had it to when they gave it away.
    RequestThreadRow = "request_thread", Interval by id {
        /// Id, in order of the ends of requests.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Its request.
        request: i64 [Id],
        /// How the thread got it: read (from the connection), write (nothing tells how: it wrote the answer), futex, eventfd, pipe, unix, socket (a process of this machine), clone (it was made while another one worked for it).
        got_by: Sym,
        /// Thread (recording-unique id) that it came from; null for the one that read it.
        from_utid: Option<i32> [Id],
        /// Whether what else the thread did meanwhile is part of it, as of a loop that serves many connections.
        is_shared: bool,
        /// Thread (recording-unique id).
        utid: i32 [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
    }
}
