use crate::Sym;

crate::table! {
    /// Counters of the machine, of processes and of file systems, whenever they were seen changed.
    CounterRow = "counter", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// Which.
        name: Sym,
        /// What it was then, in its unit.
        value: i64,
        /// Unit: bytes, ns, count, hundredths (of one, or of a percent).
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
    }
}
