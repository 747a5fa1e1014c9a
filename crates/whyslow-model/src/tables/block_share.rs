use crate::Sym;

crate::table! {
    /// Sectors that each thread contributed to a block request shared by several threads (bios of
    /// other threads were merged into it). One row per thread, including the submitter.
    BlockShareRow = "block_share", Point by id {
        /// Id.
        id: i64 [Id],
        /// Block request (`block_io.id`).
        block_io_id: i64 [Id],
        /// Time at which the first bio of the thread became part of the request; for the submitter,
        /// the start of the request.
        ts: i64 [Time],
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
        /// Sectors of the thread, as merged; the sectors issued to the device are in
        /// `block_io.sectors`.
        sectors: i64 [Sectors],
    }
}
