use crate::Sym;

crate::table! {
    /// Threads.
    ThreadRow = "thread", Entity by utid {
        /// Id.
        utid: i32 [Id],
        /// Its process.
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id.
        pid: Option<i32>,
        /// Last name.
        comm: Option<Sym>,
        /// Creation; null if it was there before.
        ts_start: Option<i64> [Time],
        /// Exit; null if it outlived the recording.
        ts_exit: Option<i64> [Time],
        /// First event that knew it.
        ts_first: i64 [Time],
        /// Last event that knew it.
        ts_last: i64 [Time],
        /// Thread that created it.
        parent_utid: Option<i32> [Id],
        /// First thread of its process; null if unknown.
        is_main: Option<bool>,
        /// Kernel thread; null if unknown.
        is_kernel: Option<bool>,
        /// Belongs to the tracer.
        is_tracer: bool,
        /// Name by its runtime, as a profile tells: the kernel's has 15 bytes.
        runtime_name: Option<Sym>,
    }
}
