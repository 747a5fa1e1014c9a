use crate::Sym;

crate::table! {
    /// Workqueue items, from queueing to the end of their function.
    WorkItemRow = "work_item", Interval by id {
        /// Id, in order of `ts`.
        id: i64 [Id],
        /// Time of the last queueing; if it was not recorded, the start of the function.
        ts: i64 [Time],
        /// From queueing to the end; null if the item did not end in the recording or was cancelled
        /// for good.
        dur: Option<i64> [Duration],
        /// End time.
        ts_end: Option<i64> [Time],
        /// Function, or its address in hexadecimal if it has no symbol.
        function: Option<Sym>,
        /// Workqueue name; null if the queueing was not recorded.
        workqueue: Option<Sym>,
        /// Start of the function.
        ts_begin: Option<i64> [Time],
        /// From queueing to the start of the function.
        queue_ns: Option<i64> [Duration],
        /// Times that the item was queued before and cancelled in order to be queued again; null if
        /// the queueing was not recorded.
        requeued: Option<i64> [Count],
        /// Part of `queue_ns` until the workqueue had a free slot; null if it had one at once.
        held_ns: Option<i64> [Duration],
        /// From the start of the function to its end.
        run_ns: Option<i64> [Duration],
        /// Thread that queued the item (recording-unique id); null if an interrupt did or it is
        /// unknown.
        utid: Option<i32> [Id],
        /// Process of that thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel id of that thread.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of that thread at that time.
        comm: Option<Sym>,
        /// Kernel thread that ran the function (recording-unique id); null if a softirq did.
        worker_utid: Option<i32> [Id],
        /// Kernel id of the worker.
        worker_tid: Option<i32>,
        /// Name of the worker at that time.
        worker_comm: Option<Sym>,
        /// CPU that ran the function.
        cpu: Option<i32>,
    }
}
