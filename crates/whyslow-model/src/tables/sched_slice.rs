use crate::Sym;

crate::table! {
    /// CPU time slices of threads, one row per time slice (idle is not stored).
    SchedSliceRow = "sched_slice", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// CPU.
        cpu: i32,
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
        /// Kernel priority (100–139 normal, below is real-time).
        prio: Option<i32>,
        /// Time in system calls during the slice (kernel threads: all of it), without interrupts.
        /// The rest was spent in user mode and in exceptions such as page faults.
        system_ns: i64 [Duration],
        /// Time in handlers of hard interrupts and high-resolution timers during the slice.
        hardirq_ns: i64 [Duration],
        /// Time in softirqs during the slice.
        softirq_ns: i64 [Duration],
        /// Migrations of the thread to another CPU since its previous slice: as recorded by the
        /// kernel, otherwise one if the two slices were on different CPUs.
        migrations: i32 [Count],
        /// Thread state at the end of the slice: R, R+ (preempted), S, D, T, t, X, Z, I, …; null if
        /// unknown.
        end_state: Option<Sym>,
    }
}
