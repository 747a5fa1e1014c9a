use crate::Sym;

crate::table! {
    /// File descriptors from open to close, per process.
    FdLifeRow = "fd_life", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Process that owns the table; null if only its thread is known.
        upid: Option<i32> [Id],
        /// Its kernel id.
        pid: Option<i32>,
        /// Its name at opening.
        comm: Option<Sym>,
        /// Descriptor number.
        fd: i32,
        /// Class of the object, as in `syscall.fd_class`.
        fd_class: Sym,
        /// What it leads to; null if unknown.
        path: Option<Sym>,
        /// Why it is unknown.
        unknown_reason: Option<Sym>,
        /// How it came to be: open, creat, socket, accept, pipe, dup, inherited, state_dump, first_use, …
        origin: Sym,
        /// System call that made it.
        syscall_id: Option<i64> [Id],
        /// Flags of the open.
        flags: Option<i64>,
        /// Closed on exec.
        cloexec: bool,
        /// Path was unlinked while open.
        deleted: bool,
        /// How it ended: close, dup, exec, exit; null while open.
        closed_by: Option<Sym>,
    }
}
