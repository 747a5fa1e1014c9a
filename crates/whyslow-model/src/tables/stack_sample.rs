use crate::Sym;

crate::table! {
    /// Stacks of threads after long off-CPU intervals, and samples of running threads.
    StackSampleRow = "stack_sample", Interval by id {
        /// Id, in order of the time at which the stack was recorded.
        id: i64 [Id],
        /// Start of the off-CPU interval; for a sample, the start of the time that it stands for.
        ts: i64 [Time],
        /// Length of the off-CPU interval; for a sample, the time that it stands for.
        dur: Option<i64> [Duration],
        /// End of the off-CPU interval; for a sample, its time.
        ts_end: Option<i64> [Time],
        /// offcpu (off-CPU for at least the recorder's threshold), sample (on-CPU), wall (on or off
        /// CPU), execution (in managed code), native (in native code called from managed code).
        kind: Sym,
        /// Thread state when it went off-CPU: sleeping, uninterruptible, runnable (preempted), …;
        /// for wall-clock samples the state reported by the sampler, where running may include
        /// waiting for a CPU (except for sampler recorder); null for other kinds.
        state: Option<Sym>,
        /// Thread (recording-unique id).
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// CPU on which the thread ran again or was sampled.
        cpu: Option<i32>,
        /// Innermost function outside of the scheduler; null if unknown.
        function: Option<Sym>,
        /// Innermost user-space function; null if the user stack was not recorded or has no
        /// symbols.
        user_function: Option<Sym>,
        /// Stack: the kernel frames and the user frames that called them.
        callsite_id: Option<i64> [Id],
        /// Number of samples that the row stands for; null without a sampler.
        credits: Option<i32> [Count],
        /// Whether the stack was assumed to equal that of the previous sample, and was not read
        /// again.
        is_assumed: Option<bool>,
        /// System call of the thread, if the recorder sampled all threads; null if it was in none.
        syscall: Option<Sym>,
        /// Sampler of all threads: recorder (it observed thread states); null for a profiler or
        /// without a sampler.
        sampler: Option<Sym>,
        /// Whether the user stack could not be unwound to its outermost frame; null if unknown.
        is_cut: Option<bool>,
    }
}
