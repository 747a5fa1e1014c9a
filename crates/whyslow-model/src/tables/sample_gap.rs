use crate::Sym;

crate::table! {
    /// Sampling gaps: times in which a sampler that visits all threads got no sample of a thread.
    SampleGapRow = "sample_gap", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// End of the time that the previous sample stands for.
        ts: i64 [Time],
        /// Duration.
        dur: Option<i64> [Duration],
        /// Start of the time that the next sample stands for.
        ts_end: Option<i64> [Time],
        /// kernel_wait (inferred: no signal reached the thread), page_fault (likewise, probable),
        /// sampler_late, cpu_starved, process_stopped (no thread was sampled).
        class: Sym,
        /// Thread (recording-unique id); null for process_stopped.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name.
        comm: Option<Sym>,
        /// Rounds that the sampler completed during the gap.
        cycles: Option<i32> [Count],
        /// Signals that were queued and were all delivered at the end of the gap.
        queued: Option<i32> [Count],
        /// Group number: gaps of several threads that overlap for most of their time share one.
        group_id: Option<i32> [Id],
        /// Innermost function of the sample that ended the gap: the call that took the time.
        function: Option<Sym>,
        /// Innermost function of the sample before the gap; it does not indicate the cause.
        before_function: Option<Sym>,
        /// Stack of the sample that ended the gap.
        callsite_id: Option<i64> [Id],
        /// Stack of the sample before the gap.
        before_callsite_id: Option<i64> [Id],
    }
}
