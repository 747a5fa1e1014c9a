use crate::Sym;

crate::table! {
    /// Kernel work that threads wait for, and waits that the kernel imposes on threads.
    KernelWorkRow = "kernel_work", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// journal_commit (jbd2 commits a transaction), writeback (dirty pages of a device are
        /// written), dirty_throttle (a thread that dirties pages is throttled), log_wait (for space
        /// in an XFS log), reclaim_throttle (a thread in reclaim is throttled), buffer_stall (for a
        /// buffer that the journal is writing).
        kind: Sym,
        /// Device of the file system (kernel `dev_t`, 20 minor bits); null if the source does not
        /// report it.
        dev: Option<i64>,
        /// Device name, or `major:minor`.
        dev_name: Option<Sym>,
        /// Reason: for writeback background, vmscan, sync, periodic, …; for reclaim_throttle
        /// writeback, isolated, noprogress, congested.
        reason: Option<Sym>,
        /// Transaction number.
        transaction: Option<i64>,
        /// Pages written.
        pages: Option<i64> [Count],
        /// For a commit: time until no handle modified the transaction any more.
        locking_ns: Option<i64> [Duration],
        /// For a commit: time to write the data that has to precede it.
        flushing_ns: Option<i64> [Duration],
        /// For a commit: time to write the journal.
        logging_ns: Option<i64> [Duration],
        /// Thread that worked or waited (recording-unique id); null if the source does not identify
        /// it.
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
    }
}
