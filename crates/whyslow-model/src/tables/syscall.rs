use crate::Sym;

crate::table! {
    /// System calls of all threads, one row per call.
    SyscallRow = "syscall", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Thread (recording-unique id); null if the source does not identify it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// CPU at entry.
        cpu: Option<i32>,
        /// Name without prefix: `openat`.
        name: Sym,
        /// System call number of the traced architecture, if known.
        nr: Option<i32>,
        /// Entered through the 32-bit compatibility table.
        compat: bool,
        /// Operation class: see `docs/format.md`, classes of system calls.
        op: Sym,
        /// Return value; null if it was not recorded.
        ret: Option<i64>,
        /// Positive errno of a failed call; null on success.
        errno: Option<i32>,
        /// File descriptor argument, or the descriptor returned by an opening call.
        fd: Option<i32>,
        /// Second file descriptor: target of dup, `fd_out` of splice and sendfile, second end of a
        /// pipe.
        fd2: Option<i32>,
        /// Object of the call: path, socket address, `pipe:…`; null if it has no object or the
        /// object is unknown.
        path: Option<Sym>,
        /// Second path: new name for rename and link, object of `fd2`.
        path2: Option<Sym>,
        /// Class of the object: file, directory, pipe, unix, inet, inet6, netlink, socket, eventfd,
        /// epoll, timerfd, signalfd, inotify, memfd, tty, proc, sys, dev, block, anon, unknown.
        fd_class: Option<Sym>,
        /// Reason why the object is unknown; null if it is known or there is none.
        unknown_reason: Option<Sym>,
        /// Requested size in bytes.
        bytes_requested: Option<i64> [Bytes],
        /// Bytes transferred, as returned; null for failed calls and calls that transfer none.
        bytes: Option<i64> [Bytes],
        /// File offset argument.
        file_offset: Option<i64> [Bytes],
        /// Flags, mode or command argument as passed; for poll, epoll_wait and epoll_pwait the
        /// timeout in ms (negative: none).
        flags: Option<i64>,
        /// Edge at which the recording cuts the call: `begin` (entry not recorded), `end` (exit not
        /// recorded); `lost` if events were lost in between, and the exit may be that of a later call.
        /// Then `dur` is null if it is longer than any certain one of that name before.
        cut: Option<Sym>,
    }
}
