use crate::Sym;

crate::table! {
    /// File descriptors from open to close, per process.
    FdLifeRow = "fd_life", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Process that owns the descriptor table; null if only the thread is known.
        upid: Option<i32> [Id],
        /// Kernel process id.
        pid: Option<i32>,
        /// Process name when the descriptor was opened.
        comm: Option<Sym>,
        /// Descriptor number.
        fd: i32,
        /// Class of the object, as in `syscall.fd_class`.
        fd_class: Sym,
        /// Object that the descriptor refers to: path, socket address, `pipe:…`; null if unknown.
        path: Option<Sym>,
        /// Reason why the object is unknown.
        unknown_reason: Option<Sym>,
        /// Origin: open, creat, socket, accept, pipe, dup, inherited, state_dump, first_use, …
        origin: Sym,
        /// System call that created the descriptor.
        syscall_id: Option<i64> [Id],
        /// Flags passed at opening.
        flags: Option<i64>,
        /// Closed on exec.
        cloexec: bool,
        /// Path was unlinked while the descriptor was open.
        deleted: bool,
        /// End: close, dup, exec, exit; null while open.
        closed_by: Option<Sym>,
    }
}
