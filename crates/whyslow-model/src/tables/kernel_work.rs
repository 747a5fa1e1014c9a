use crate::Sym;

crate::table! {
    /// Work of the kernel that others wait for, and waits that it imposes on threads.
    KernelWorkRow = "kernel_work", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if the end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// journal_commit (jbd2 makes a transaction permanent), writeback (dirty pages of a device are written), dirty_throttle (a thread that dirties pages is held back), log_wait (for room in the log of an XFS), reclaim_throttle (a thread that reclaims memory is held back), buffer_stall (for a buffer that the journal writes).
        kind: Sym,
        /// Device of the file system (kernel `dev_t`, 20 minor bits); null where the source does not tell.
        dev: Option<i64>,
        /// Its name, or `major:minor`.
        dev_name: Option<Sym>,
        /// Why: of writeback background, vmscan, sync, periodic, …; of reclaim_throttle writeback, isolated, noprogress, congested.
        reason: Option<Sym>,
        /// Number of the transaction.
        transaction: Option<i64>,
        /// Pages written.
        pages: Option<i64> [Count],
        /// Of a commit: until nobody changed the transaction any more.
        locking_ns: Option<i64> [Duration],
        /// Of a commit: writing of the data that has to come before it.
        flushing_ns: Option<i64> [Duration],
        /// Of a commit: writing of the journal.
        logging_ns: Option<i64> [Duration],
        /// Thread (recording-unique id) that worked or waited; null where the source cannot tell.
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
    }
}
