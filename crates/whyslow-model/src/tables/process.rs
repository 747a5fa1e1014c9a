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
        /// File of the last exec; without an exec in the recording, the file that the process runs.
        exe: Option<Sym>,
        /// Command line, quoted as for a shell if it has several words.
        command_line: Option<Sym>,
        /// User id.
        uid: Option<i64>,
        /// User name.
        user_name: Option<Sym>,
        /// Path of the cgroup.
        cgroup: Option<Sym>,
        /// Container id, if the cgroup belongs to a container.
        container: Option<Sym>,
        /// Mount namespace number.
        mount_ns: Option<i64>,
        /// Creation time, even before the recording (then with a resolution of 10 ms).
        ts_created: Option<i64> [Time],
        /// Creation time; null if the process existed before the recording.
        ts_start: Option<i64> [Time],
        /// Exit time; null if the process was still running at the end of the recording.
        ts_exit: Option<i64> [Time],
        /// Whether the process belongs to the tracer.
        is_tracer: bool,
    }
}
