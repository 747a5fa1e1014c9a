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
        /// File of the last exec; of a process without one in the recording, the file it runs.
        exe: Option<Sym>,
        /// Words of the command line, quoted as a shell takes them where there are several.
        command_line: Option<Sym>,
        /// User, by number.
        uid: Option<i64>,
        /// User, by name.
        user_name: Option<Sym>,
        /// Path of its control group.
        cgroup: Option<Sym>,
        /// Id of the container, where the control group is one's.
        container: Option<Sym>,
        /// Number of its mount namespace.
        mount_ns: Option<i64>,
        /// Creation, also before the recording (then to a hundredth of a second).
        ts_created: Option<i64> [Time],
        /// Creation; null if it was there before.
        ts_start: Option<i64> [Time],
        /// Exit; null if it outlived the recording.
        ts_exit: Option<i64> [Time],
        /// Belongs to the tracer.
        is_tracer: bool,
    }
}
