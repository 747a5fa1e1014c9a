use crate::Sym;

crate::table! {
    /// Page reclaim. Except in kswapd, the thread waits for it.
    ReclaimRow = "reclaim", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// direct (allocation by a thread), cgroup (the cgroup is at its limit), cgroup_soft (above
        /// the soft limit, within another kind of reclaim), node (memory of one node), kswapd
        /// (background).
        kind: Sym,
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
        /// CPU at the start.
        cpu: Option<i32>,
        /// Allocation order: log2 of the contiguous pages requested.
        alloc_order: Option<i32>,
        /// NUMA node, if the source reports it.
        node: Option<i32>,
        /// Pages freed.
        pages: Option<i64> [Count],
    }
}
