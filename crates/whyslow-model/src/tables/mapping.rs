use crate::Sym;

crate::table! {
    /// Memory mappings of files: what is read and written through them is not seen by system calls.
    MappingRow = "mapping", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Process.
        upid: Option<i32> [Id],
        /// Its kernel id.
        pid: Option<i32>,
        /// Its name.
        comm: Option<Sym>,
        /// First address (bits of an unsigned number).
        address: i64,
        /// Length.
        bytes: i64 [Bytes],
        /// File; null for anonymous memory.
        path: Option<Sym>,
        /// Descriptor it was made from.
        fd: Option<i32>,
        /// Protection bits.
        prot: Option<i64>,
        /// Mapping flags.
        flags: Option<i64>,
        /// File offset.
        file_offset: Option<i64> [Bytes],
    }
}
