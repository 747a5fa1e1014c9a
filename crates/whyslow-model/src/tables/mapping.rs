use crate::Sym;

crate::table! {
    /// Memory mappings of files. System calls do not show reads and writes through a mapping.
    MappingRow = "mapping", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel process id.
        pid: Option<i32>,
        /// Process name.
        comm: Option<Sym>,
        /// Start address (bits of an unsigned number).
        address: i64,
        /// Duration.
        bytes: i64 [Bytes],
        /// File; null for anonymous memory.
        path: Option<Sym>,
        /// File descriptor that was mapped.
        fd: Option<i32>,
        /// Protection bits.
        prot: Option<i64>,
        /// Mapping flags.
        flags: Option<i64>,
        /// File offset.
        file_offset: Option<i64> [Bytes],
    }
}
