use crate::Sym;

crate::table! {
    /// Threads.
    ThreadRow = "thread", Entity by utid {
        /// Id.
        utid: i32 [Id],
        /// Process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id.
        pid: Option<i32>,
        /// Last name of the thread.
        comm: Option<Sym>,
        /// Creation time; null if the thread existed before the recording.
        ts_start: Option<i64> [Time],
        /// Exit time; null if the thread was still running at the end of the recording.
        ts_exit: Option<i64> [Time],
        /// First event of the thread.
        ts_first: i64 [Time],
        /// Last event of the thread.
        ts_last: i64 [Time],
        /// Thread that created this one.
        parent_utid: Option<i32> [Id],
        /// Whether it is the main thread of its process; null if unknown.
        is_main: Option<bool>,
        /// Whether it is a kernel thread; null if unknown.
        is_kernel: Option<bool>,
        /// Whether it belongs to the tracer.
        is_tracer: bool,
        /// Thread name given by the runtime, from a profile; kernel names are limited to 15 bytes.
        runtime_name: Option<Sym>,
    }
}
