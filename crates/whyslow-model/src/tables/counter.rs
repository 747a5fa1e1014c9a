use crate::Sym;

crate::table! {
    /// Counters of the machine, of processes and of file systems, whenever they were seen changed, and what other tools counted.
    CounterRow = "counter", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// Which; of other tools as they call it.
        name: Sym,
        /// What it was then, in its unit.
        value: i64,
        /// Unit: bytes, ns, count, hundredths (of one, or of a percent), bytes/s, hundredths/s.
        unit: Sym,
        /// Process it is of (recording-unique id); null for the machine.
        upid: Option<i32> [Id],
        /// Kernel process id.
        pid: Option<i32>,
        /// Name of the process at that time.
        comm: Option<Sym>,
        /// Mount namespace of the file system it is of.
        mount_ns: Option<i64>,
        /// The kernel's id of its mount.
        mount_id: Option<i32>,
        /// Where it is mounted.
        mount_point: Option<Sym>,
        /// What else it is of: a device, a CPU, a network interface, as the tool calls it.
        subject: Option<Sym>,
        /// It is the mean (or the sum, for counts) of this time before `ts`; null for a value of the moment, or where the tool does not tell.
        interval_ns: Option<i64> [Duration],
        /// Tool that told it: iostat, sar, …; null if it was seen in `/proc`.
        told_by: Option<Sym>,
    }
}
