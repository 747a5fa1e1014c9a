use crate::Sym;

crate::table! {
    /// Functions that the kernel queued to be called by its own threads (workqueues), from there to their end.
    WorkItemRow = "work_item", Interval by id {
        /// Id, in order of `ts`.
        id: i64 [Id],
        /// When it was queued last; where that was not recorded when it began.
        ts: i64 [Time],
        /// From there to its end; null if it did not end in the recording, or was taken back for good.
        dur: Option<i64> [Duration],
        /// End.
        ts_end: Option<i64> [Time],
        /// The function, or its address in hexadecimal digits where it has no name.
        function: Option<Sym>,
        /// Name of the workqueue; null where the queueing was not recorded.
        workqueue: Option<Sym>,
        /// When the function was called.
        ts_begin: Option<i64> [Time],
        /// From queueing to the call.
        queue_ns: Option<i64> [Duration],
        /// How often it was queued before, and taken back to be queued anew; null where the queueing was not recorded.
        requeued: Option<i64> [Count],
        /// Of `queue_ns`, until the workqueue had room for it; null if it had at once.
        held_ns: Option<i64> [Duration],
        /// From the call to its end.
        run_ns: Option<i64> [Duration],
        /// Thread that queued it (recording-unique id); null if an interrupt did or nothing tells.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Its kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Its name at that time.
        comm: Option<Sym>,
        /// Thread of the kernel that called the function (recording-unique id); null if a softirq did.
        worker_utid: Option<i32> [Id],
        /// Its kernel thread id.
        worker_tid: Option<i32>,
        /// Its name at that time.
        worker_comm: Option<Sym>,
        /// CPU of the call.
        cpu: Option<i32>,
    }
}
