use crate::Sym;

crate::table! {
    /// File pages added to the page cache: one row per system call, or per period of about 10 ms if
    /// no call caused them.
    CacheFillRow = "cache_fill", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Start of the call, otherwise the time of the first page.
        ts: i64 [Time],
        /// Duration.
        dur: Option<i64> [Duration],
        /// End of the call, otherwise the time of the last page.
        ts_end: Option<i64> [Time],
        /// Thread that the pages were read or written for (recording-unique id).
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// File: from the descriptor of the call, otherwise found by inode and mount table;
        /// `inode:[MAJOR:MINOR/NUMBER]` if no name is known.
        path: Sym,
        /// Whether the file name is known.
        has_name: bool,
        /// Device of the file system; for a device file, the device itself.
        dev: i64,
        /// Inode number; null for a device file.
        inode: Option<i64>,
        /// Cause: `read` (a call that reads the file, including readahead), `write` (a call that
        /// writes it), `mapped` (a mapping of it), `other` (readahead calls, program execution,
        /// kernel threads).
        cause: Sym,
        /// Size in bytes, in whole pages.
        bytes: i64 [Bytes],
    }
}
