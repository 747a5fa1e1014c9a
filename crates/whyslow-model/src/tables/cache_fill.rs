use crate::Sym;

crate::table! {
    /// Bytes of files that came into the page cache, by call, or by about 10 ms where no call caused it.
    CacheFillRow = "cache_fill", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Begin of the call, else when the first of them came.
        ts: i64 [Time],
        /// Length.
        dur: Option<i64> [Duration],
        /// End of the call, else when the last of them came.
        ts_end: Option<i64> [Time],
        /// Thread for which they came (recording-unique id).
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// File: by the descriptor of the call, else by where its inode lies in the file system and what is mounted; `inode:[MAJOR:MINOR/NUMBER]` where no name of it is known.
        path: Sym,
        /// Whether a name of it is known.
        has_name: bool,
        /// Device of the file system, or the device itself.
        dev: i64,
        /// Number of the inode; null for the device itself.
        inode: Option<i64>,
        /// Why they came: `read` for a call that reads the file, with what was read ahead; `write` for one that writes to it; `mapped` for mappings of it; `other` for calls that read ahead or run programs, and threads of the kernel.
        cause: Sym,
        /// Bytes, in whole pages.
        bytes: i64 [Bytes],
    }
}
