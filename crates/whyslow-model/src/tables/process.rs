use crate::Sym;

crate::table! {
    /// Processes.
    ProcessRow = "process", Entity by upid {
        /// Id.
        upid: i32 [Id],
        /// Kernel process id.
        pid: i32,
        /// Parent process.
        parent_upid: Option<i32> [Id],
        /// Kernel id of the parent.
        ppid: Option<i32>,
        /// Last name of the main thread.
        comm: Option<Sym>,
        /// File of the last exec.
        exe: Option<Sym>,
        /// Creation; null if it was there before.
        ts_start: Option<i64> [Time],
        /// Exit; null if it outlived the recording.
        ts_exit: Option<i64> [Time],
        /// Belongs to the tracer.
        is_tracer: bool,
    }
}
