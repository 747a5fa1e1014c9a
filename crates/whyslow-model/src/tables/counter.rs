use crate::Sym;

crate::table! {
    /// Counters of the machine, of processes and of file systems, one row per observed change; also
    /// the values reported by other tools.
    CounterRow = "counter", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// Time of the event.
        ts: i64 [Time],
        /// Counter name; for other tools, the name that the tool uses.
        name: Sym,
        /// Value, in `unit`.
        value: i64,
        /// Unit: bytes, ns, count, hundredths (of one, or of a percent), bytes/s, hundredths/s.
        unit: Sym,
        /// Process (recording-unique id); null for the machine.
        upid: Option<i32> [Id],
        /// Kernel process id.
        pid: Option<i32>,
        /// Process name at that time.
        comm: Option<Sym>,
        /// Mount namespace of the file system.
        mount_ns: Option<i64>,
        /// Kernel id of the mount.
        mount_id: Option<i32>,
        /// Mount point of the file system.
        mount_point: Option<Sym>,
        /// Other subject of the counter: a device, a CPU or a network interface, as the tool names
        /// it.
        subject: Option<Sym>,
        /// The value is the mean (for counts, the sum) over this time before `ts`; null for an
        /// instantaneous value, or if the tool does not report the interval.
        interval_ns: Option<i64> [Duration],
        /// Tool that reported the value: iostat, sar, …; null if it was read from `/proc`.
        reported_by: Option<Sym>,
    }
}
