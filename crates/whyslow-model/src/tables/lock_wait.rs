use crate::Sym;

crate::table! {
    /// Waits for contended locks: kernel locks, if the wait reached the recording threshold, and
    /// user-space locks seen in profiles.
    LockWaitRow = "lock_wait", Interval by id {
        /// Id, in order of end.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration.
        dur: Option<i64> [Duration],
        /// End time.
        ts_end: Option<i64> [Time],
        /// Kernel locks: mutex, rwsem, percpu_rwsem, rt_mutex, semaphore, spin, rwlock (a
        /// reader-writer spin lock). User-space locks: monitor (of an object of a runtime),
        /// library_lock (of a runtime's library), pthread.
        kind: Sym,
        /// read, write; null for locks without these modes.
        mode: Option<Sym>,
        /// Whether the thread blocked rather than spinning until it got the lock.
        slept: bool,
        /// Address of the lock in hexadecimal; for a user-space lock of unknown address, the class
        /// of the waiting code.
        lock: Sym,
        /// Error number if the wait failed, else 0.
        ret: i32,
        /// Thread that waited (recording-unique id); a spin-lock wait in an interrupt counts for
        /// the interrupted thread.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// CPU at the end.
        cpu: Option<i32>,
        /// Innermost function outside of the lock implementation; null if no stack was recorded
        /// (short waits), or it has no symbols.
        function: Option<Sym>,
        /// Stack of the wait; for kernel locks, its kernel part.
        callsite_id: Option<i64> [Id],
        /// Evidence for a user-space lock wait: event (reported by the runtime), samples (start and
        /// end are as precise as the sampling interval), dump (seen in thread dumps; it lasted at
        /// least from the first to the last of them); null for kernel locks.
        reported_by: Option<Sym>,
        /// Class of a user-space lock, otherwise of the waiting code.
        object: Option<Sym>,
        /// Thread that held a user-space lock for most of the wait (recording-unique id); null if
        /// unknown.
        holder_utid: Option<i32> [Id],
        /// Kernel thread id of the holder.
        holder_tid: Option<i32>,
        /// Name of the holder.
        holder_comm: Option<Sym>,
        /// Part of the wait during which the holder had the lock.
        held: Option<i64> [Duration],
        /// Confidence in the holder: high (a dump shows it, or the runtime reported the lock and
        /// its new owner, and samples agree), medium (samples show it in the same method, or nearly
        /// all of the time), low (samples show it in the same class).
        confidence: Option<Sym>,
        /// Function that the holder spent most of that time in.
        holder_function: Option<Sym>,
        /// Stack of the holder in that function.
        holder_callsite_id: Option<i64> [Id],
        /// Sampling gap of the holder during the wait (`sample_gap.id`).
        holder_gap_id: Option<i64> [Id],
    }
}
