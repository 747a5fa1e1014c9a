use crate::Sym;

crate::table! {
    /// Pages allocated and freed by a thread in one second.
    PageCountRow = "page_count", Point by id {
        /// Id.
        id: i64 [Id],
        /// Begin of the second.
        ts: i64 [Time],
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
        /// Pages allocated (2^order each event).
        allocated: i64 [Count],
        /// Pages freed.
        freed: i64 [Count],
    }
}
