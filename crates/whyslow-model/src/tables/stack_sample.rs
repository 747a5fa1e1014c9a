use crate::Sym;

crate::table! {
    /// Stacks of threads that were away from the CPU for long, and samples of what ran.
    StackSampleRow = "stack_sample", Interval by id {
        /// Id, in order of the moment at which the stack was taken.
        id: i64 [Id],
        /// When the thread left the CPU; of a sample, when the time begins that it stands for.
        ts: i64 [Time],
        /// Time away from the CPU; of a sample, the time it stands for.
        dur: Option<i64> [Duration],
        /// When the thread came back, or was sampled.
        ts_end: Option<i64> [Time],
        /// offcpu (away from the CPU for at least as long as the recorder was told), sample (on it), wall (whatever the thread did), execution (in code of its language), native (in native code called from there).
        kind: Sym,
        /// State it was left in: sleeping, uninterruptible, runnable (it lost the CPU), …; of samples of wall time what the sampler said, where running may be waiting for a CPU (but for sampler recorder); null for others.
        state: Option<Sym>,
        /// Thread (recording-unique id).
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// CPU it came back to, or was sampled on.
        cpu: Option<i32>,
        /// Innermost function outside of the scheduler's code; null if no function is known.
        function: Option<Sym>,
        /// Innermost function of the program; null if its part of the stack was not taken or has no names.
        user_function: Option<Sym>,
        /// The stack: its innermost frame with all that called it, those of the kernel called by those of the program.
        callsite_id: Option<i64> [Id],
        /// How many samples it stands for; null where there is no sampler.
        credits: Option<i32> [Count],
        /// Whether the stack was taken for that of the sample before without another look.
        is_assumed: Option<bool>,
        /// System call that the thread was in, where the recorder looked at all threads; null if it was in none.
        syscall: Option<Sym>,
        /// Who sampled all threads: recorder (it saw their state from outside), else null (a profiler, or nobody).
        sampler: Option<Sym>,
        /// Whether the program's part of the stack could not be followed to where it begins; null where nobody tells.
        is_cut: Option<bool>,
    }
}
