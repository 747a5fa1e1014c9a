use crate::Sym;

crate::table! {
    /// Block I/O requests, one row per request.
    BlockIoRow = "block_io", Interval by id {
        /// Id, in order of the first event of the request.
        id: i64 [Id],
        /// First known event: queued, allocated, inserted or issued.
        ts: i64 [Time],
        /// From `ts` to completion; null if the completion was not recorded.
        dur: Option<i64> [Duration],
        /// Completion time.
        ts_end: Option<i64> [Time],
        /// Time of issue to the driver; null for bio-based devices and cut requests.
        ts_issue: Option<i64> [Time],
        /// Queue time: from `ts` to issue.
        queue_ns: Option<i64> [Duration],
        /// Device time: from issue to the completion of the data. If a flush follows a write, `dur`
        /// also includes the flush.
        device_ns: Option<i64> [Duration],
        /// Device of the request (kernel `dev_t`, 20 minor bits); always a whole disk if `layer` is
        /// `request`.
        dev: i64,
        /// Device name, or `major:minor`.
        dev_name: Sym,
        /// Partition that the I/O was sent to, if a remap event names it.
        part: Option<i64>,
        /// Partition name.
        part_name: Option<Sym>,
        /// First sector on `dev`.
        sector: i64 [Sectors],
        /// Sectors at issue, or as first known.
        sectors: i64 [Sectors],
        /// `sectors` in bytes.
        bytes: i64 [Bytes],
        /// read, write, discard, flush, other.
        op: Sym,
        /// Flag letters, as the kernel prints them in `rwbs`.
        rwbs: Sym,
        /// `request`, or `bio` for devices without a request queue (dm, md, loop stages).
        layer: Sym,
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
        /// Event that identified the submitter: bio_queue, bio_remap, getrq, insert, issue.
        submitter_source: Option<Sym>,
        /// Thread that issued the request to the driver (often a kworker).
        issuer_utid: Option<i32> [Id],
        /// CPU of the first event.
        cpu: Option<i32>,
        /// Bios merged into the request.
        merges: i32 [Count],
        /// Completions of the request; more than one if it completed in parts.
        completions: i32 [Count],
        /// Positive errno reported by the device; 0 on success.
        error: Option<i32>,
        /// Edge at which the recording cuts the request: `begin` (start not recorded; `ts` is then the
        /// completion) or `end`; `lost` if events were lost in between, and the completion may be that
        /// of a later request. Then `dur` is null if it is longer than any certain one of that device and
        /// operation before.
        cut: Option<Sym>,
    }
}
