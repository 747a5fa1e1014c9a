use crate::Sym;

crate::table! {
    /// Waits for contended locks: of the kernel, as far as they lasted for long enough to be recorded, and of programs, as profiles show them.
    LockWaitRow = "lock_wait", Interval by id {
        /// Id, in order of end.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length.
        dur: Option<i64> [Duration],
        /// End.
        ts_end: Option<i64> [Time],
        /// Of the kernel: mutex, rwsem, percpu_rwsem, rt_mutex, semaphore, spin, rwlock (a spin lock for readers and writers). Of programs: monitor (of an object of a runtime), library_lock (of a runtime's library), pthread.
        kind: Sym,
        /// read, write; null for locks that do not tell them apart.
        mode: Option<Sym>,
        /// Whether the thread gave up the CPU in the end, rather than spinning all the time.
        slept: bool,
        /// Address of the lock, in hexadecimal digits; of a program's lock whose address nobody tells, the class of the code that wanted it.
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
        /// Its stack; of locks of the kernel, that in the kernel.
        callsite_id: Option<i64> [Id],
        /// By what the wait for a program's lock is known: event (the runtime told), samples (begin and end are as exact as the interval between them), dump (thread dumps showed it; it lasted at least from the first to the last of them); null for locks of the kernel.
        told_by: Option<Sym>,
        /// Class of a program's lock, else that of the code which wanted it.
        object: Option<Sym>,
        /// Thread that held a program's lock for most of the wait (recording-unique id); null if that is not known.
        holder_utid: Option<i32> [Id],
        /// Its kernel thread id.
        holder_tid: Option<i32>,
        /// Its name.
        holder_comm: Option<Sym>,
        /// How much of the wait it held the lock.
        held: Option<i64> [Duration],
        /// How sure the holder is: high (a dump told it, or the runtime told which lock it is and who had got it, and samples agree), medium (samples show it in the same method, or nearly all the time), low (they show it in the same class).
        confidence: Option<Sym>,
        /// What the holder was doing for most of that time.
        holder_function: Option<Sym>,
        /// Its stack then.
        holder_callsite_id: Option<i64> [Id],
        /// Time without samples of the holder meanwhile (sample_gap).
        holder_gap_id: Option<i64> [Id],
    }
}
