use crate::Sym;

crate::table! {
    /// System calls of every thread, one row a call.
    SyscallRow = "syscall", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Thread (recording-unique id); null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// CPU of the entry.
        cpu: Option<i32>,
        /// Name without prefix: `openat`.
        name: Sym,
        /// Number in the traced architecture, where known.
        nr: Option<i32>,
        /// Entered through the 32-bit compatibility table.
        compat: bool,
        /// Class of operation: see `docs/format.md`, classes of system calls.
        op: Sym,
        /// Return value; null if it was not recorded.
        ret: Option<i64>,
        /// Positive errno of a failed call; null on success.
        errno: Option<i32>,
        /// First file descriptor argument (or the one returned by an opening call).
        fd: Option<i32>,
        /// Second one: target of dup, `fd_out` of splice and sendfile, second end of a pipe.
        fd2: Option<i32>,
        /// What the call acted on: path, socket address, `pipe:…`; null where it has no object or none is known.
        path: Option<Sym>,
        /// Second path: new name of rename and link, object of `fd2`.
        path2: Option<Sym>,
        /// Class of the object: file, directory, pipe, unix, inet, inet6, netlink, socket, eventfd, epoll, timerfd, signalfd, inotify, memfd, tty, proc, sys, dev, block, anon, unknown.
        fd_class: Option<Sym>,
        /// Why the object is unknown; null where it is known or there is none.
        unknown_reason: Option<Sym>,
        /// Bytes asked for.
        bytes_requested: Option<i64> [Bytes],
        /// Bytes moved, as returned; null for calls that move none and for failed ones.
        bytes: Option<i64> [Bytes],
        /// File offset argument.
        file_offset: Option<i64> [Bytes],
        /// Flags, mode or command argument as passed; of poll, epoll_wait and epoll_pwait the longest time to wait in ms (negative: no limit).
        flags: Option<i64>,
        /// Where the recording cuts it: `begin` (entry not recorded), `end` (exit not recorded).
        cut: Option<Sym>,
    }
}
