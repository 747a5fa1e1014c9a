use crate::Sym;

crate::table! {
    /// Files by path, from first sight to unlink or rename away.
    FileLifeRow = "file_life", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// First operation on the path.
        ts: i64 [Time],
        /// From first operation to deletion; null if it still exists.
        dur: Option<i64> [Duration],
        /// Deletion; null if it still exists.
        ts_end: Option<i64> [Time],
        /// Path.
        path: Sym,
        /// Path it was renamed from.
        renamed_from: Option<Sym>,
        /// Created in the recording: by an exclusive open, by a creating open after it was found missing, by mkdir, link or as target of a rename; null if a creating open was the first to name it, which does not tell.
        created: Option<bool>,
        /// Deleted in the recording.
        deleted: bool,
        /// Successful opens.
        opens: i64 [Count],
        /// Read calls.
        reads: i64 [Count],
        /// Write calls.
        writes: i64 [Count],
        /// Bytes read.
        bytes_read: i64 [Bytes],
        /// Bytes written.
        bytes_written: i64 [Bytes],
        /// Last process that used it.
        upid: Option<i32> [Id],
        /// Its kernel id.
        pid: Option<i32>,
        /// Its name.
        comm: Option<Sym>,
    }
}
