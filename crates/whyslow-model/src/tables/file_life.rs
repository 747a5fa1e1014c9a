use crate::Sym;

crate::table! {
    /// Files by path, from the first operation to unlink or rename.
    FileLifeRow = "file_life", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Time of the first operation on the path.
        ts: i64 [Time],
        /// From the first operation to deletion; null if the file was not deleted.
        dur: Option<i64> [Duration],
        /// Time of deletion; null if the file was not deleted.
        ts_end: Option<i64> [Time],
        /// Path.
        path: Sym,
        /// Path before a rename.
        renamed_from: Option<Sym>,
        /// Created in the recording: by an exclusive open, by a creating open after the file was
        /// found missing, by mkdir or link, or as the target of a rename; null if the first
        /// operation was a creating open, which succeeds on existing files, too.
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
        /// Last process that used the file.
        upid: Option<i32> [Id],
        /// Kernel id of that process.
        pid: Option<i32>,
        /// Name of that process.
        comm: Option<Sym>,
    }
}
