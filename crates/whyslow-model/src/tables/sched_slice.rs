use crate::Sym;

crate::table! {
    /// Who ran on which CPU, one row a time slice (idle is not stored).
    SchedSliceRow = "sched_slice", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// CPU.
        cpu: i32,
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
        /// Kernel priority (100–139 normal, below is real-time).
        prio: Option<i32>,
        /// Time in it inside system calls (kernel threads: all), without interrupts. What is left
        /// was spent outside of the kernel and in its exceptions, such as page faults.
        system_ns: i64 [Duration],
        /// Time in it in handlers of hard interrupts and high-resolution timers.
        hardirq_ns: i64 [Duration],
        /// Time in it in softirqs.
        softirq_ns: i64 [Duration],
        /// State it left in: R, R+ (preempted), S, D, T, t, X, Z, I, …; null if unknown.
        end_state: Option<Sym>,
    }
}
