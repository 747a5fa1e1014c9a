use crate::Sym;

crate::table! {
    /// Requests to block devices, one row a request.
    BlockIoRow = "block_io", Interval by id {
        /// Id, in order of the first event of the request.
        id: i64 [Id],
        /// First known moment: queued, allocated, inserted or issued.
        ts: i64 [Time],
        /// From `ts` to completion; null if that was not recorded.
        dur: Option<i64> [Duration],
        /// Completion.
        ts_end: Option<i64> [Time],
        /// When the driver got it; null for bio-based devices and cut requests.
        ts_issue: Option<i64> [Time],
        /// From `ts` to issue.
        queue_ns: Option<i64> [Duration],
        /// From issue to the completion of the data; `dur` of a write that a flush has to follow goes on to the end of that.
        device_ns: Option<i64> [Duration],
        /// Device of the request (kernel `dev_t`, 20 minor bits): the whole disk for requests.
        dev: i64,
        /// Its name, or `major:minor`.
        dev_name: Sym,
        /// Partition the I/O was sent to, where a remap told.
        part: Option<i64>,
        /// Name of the partition.
        part_name: Option<Sym>,
        /// First sector on `dev`.
        sector: i64 [Sectors],
        /// Sectors at issue (or as first known).
        sectors: i64 [Sectors],
        /// The same in bytes.
        bytes: i64 [Bytes],
        /// read, write, discard, flush, other.
        op: Sym,
        /// Flag letters as the kernel prints them in `rwbs`.
        rwbs: Sym,
        /// `request`, or `bio` for devices without a request queue (dm, md, loop stages).
        layer: Sym,
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
        /// Which event named the submitter: bio_queue, bio_remap, getrq, insert, issue.
        submitter_source: Option<Sym>,
        /// Thread that issued it to the driver (often a kworker).
        issuer_utid: Option<i32> [Id],
        /// CPU of the first event.
        cpu: Option<i32>,
        /// Bios merged into it.
        merges: i32 [Count],
        /// Completions it took (more than one: partial completions).
        completions: i32 [Count],
        /// Positive errno the device reported; 0 is success.
        error: Option<i32>,
        /// Where the recording cuts it: `begin` or `end`.
        cut: Option<Sym>,
    }
}
