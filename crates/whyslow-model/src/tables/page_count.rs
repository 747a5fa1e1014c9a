use crate::Sym;

crate::table! {
    /// Page allocations, frees and page faults of a thread in one second.
    PageCountRow = "page_count", Point by id {
        /// Id.
        id: i64 [Id],
        /// Start of the second.
        ts: i64 [Time],
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
        /// Pages allocated (2^order per event).
        allocated: i64 [Count],
        /// Pages freed.
        freed: i64 [Count],
        /// Page faults in user mode.
        faults_user: i64 [Count],
        /// Page faults in kernel mode.
        faults_kernel: i64 [Count],
        /// File pages added to the page cache.
        cache_added: i64 [Count],
        /// File pages removed from the page cache.
        cache_removed: i64 [Count],
        /// Pages written out by reclaim itself.
        reclaim_written: i64 [Count],
        /// kswapd wakeups by allocations that found too little free memory.
        kswapd_wakeups: i64 [Count],
    }
}
