use crate::Sym;

crate::table! {
    /// Times in which a sampler that goes round all threads got no sample of one.
    SampleGapRow = "sample_gap", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// End of what the sample before stands for.
        ts: i64 [Time],
        /// Length.
        dur: Option<i64> [Duration],
        /// Begin of what the sample after stands for.
        ts_end: Option<i64> [Time],
        /// kernel_wait (inferred: no signal reached it), page_fault (the same, likely), sampler_late, cpu_starved, process_stopped (no thread was sampled).
        class: Sym,
        /// Thread (recording-unique id); null of process_stopped.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread.
        comm: Option<Sym>,
        /// Rounds that the sampler made of all threads meanwhile.
        cycles: Option<i32> [Count],
        /// Signals that had queued, and were all delivered when it ended.
        queued: Option<i32> [Count],
        /// Gaps of several threads that share most of their time have one number.
        group_id: Option<i32> [Id],
        /// Innermost function of the sample that ended it: the call that took the time.
        function: Option<Sym>,
        /// Innermost function of the sample before it, which tells nothing of the cause.
        before_function: Option<Sym>,
        /// Stack of the sample that ended it.
        callsite_id: Option<i64> [Id],
        /// Stack of the sample before it.
        before_callsite_id: Option<i64> [Id],
    }
}
