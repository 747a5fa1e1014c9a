use crate::Sym;

crate::table! {
    /// Waits for contended locks of the kernel, as far as they lasted for long enough to be recorded.
    LockWaitRow = "lock_wait", Interval by id {
        /// Id, in order of end.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length.
        dur: Option<i64> [Duration],
        /// End.
        ts_end: Option<i64> [Time],
        /// mutex, rwsem, percpu_rwsem, rt_mutex, semaphore, spin, rwlock (a spin lock for readers and writers).
        kind: Sym,
        /// read, write; null for locks that do not tell them apart.
        mode: Option<Sym>,
        /// Whether the thread gave up the CPU in the end, rather than spinning all the time.
        slept: bool,
        /// Address of the lock, in hexadecimal digits.
        lock: Sym,
        /// Error number if the wait was given up, else 0.
        ret: i32,
        /// Thread (recording-unique id); an interrupt's wait for a spin lock counts for the thread it hit.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// CPU of the end.
        cpu: Option<i32>,
        /// Innermost function outside of the code of locks; null if no stack was taken (short waits) or it has no names.
        function: Option<Sym>,
        /// Its stack in the kernel.
        callsite_id: Option<i64> [Id],
    }
}
