use crate::Sym;

crate::table! {
    /// Marks of users and events of user-space tracepoints.
    MarkerRow = "marker", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// CPU.
        cpu: Option<i32>,
        /// Thread (recording-unique id); null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// Name of the event.
        name: Sym,
        /// Its fields as text.
        text: Sym,
    }
}
