use crate::Sym;

crate::table! {
    /// Whose sectors a request to a block device holds, where it holds those of several threads: what one began, others' bios were merged into. One row a thread, also for the one that began it.
    BlockShareRow = "block_share", Point by id {
        /// Id.
        id: i64 [Id],
        /// Id of the request.
        block_io_id: i64 [Id],
        /// When the first bio of the thread became part of the request; of the thread that began it, when it did.
        ts: i64 [Time],
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
        /// Its sectors, as merged; what the device got is `block_io.sectors`.
        sectors: i64 [Sectors],
    }
}
