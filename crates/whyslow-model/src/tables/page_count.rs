use crate::Sym;

crate::table! {
    /// Pages allocated and freed by a thread in one second, and its page faults.
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
        /// Page faults of the program itself.
        faults_user: i64 [Count],
        /// Page faults of the kernel on its behalf.
        faults_kernel: i64 [Count],
        /// Pages of files that came into the page cache.
        cache_added: i64 [Count],
        /// Pages of files that left it.
        cache_removed: i64 [Count],
        /// Pages that reclaim wrote out itself.
        reclaim_written: i64 [Count],
        /// Calls for kswapd by allocations that found memory short.
        kswapd_wakeups: i64 [Count],
    }
}
