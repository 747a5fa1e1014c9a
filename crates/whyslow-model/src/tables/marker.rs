use crate::Sym;

crate::table! {
    /// Markers added by users, and events of user-space tracepoints.
    MarkerRow = "marker", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// Time of the event.
        ts: i64 [Time],
        /// CPU.
        cpu: Option<i32>,
        /// Thread (recording-unique id); null if the source does not identify it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// Event name.
        name: Sym,
        /// Fields of the event as text.
        text: Sym,
    }
}
