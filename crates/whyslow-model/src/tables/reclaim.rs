use crate::Sym;

crate::table! {
    /// Times in which pages were freed because memory was short; except in kswapd, the thread waited for it.
    ReclaimRow = "reclaim", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// direct (a thread wanted memory), cgroup (its cgroup is at its limit), cgroup_soft (above the soft limit, within one of the others), node (memory of one node), kswapd (awake in the background).
        kind: Sym,
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
        /// CPU of the begin.
        cpu: Option<i32>,
        /// Pages wanted together, as a power of two.
        alloc_order: Option<i32>,
        /// NUMA node, where the source tells.
        node: Option<i32>,
        /// Pages freed.
        pages: Option<i64> [Count],
    }
}
