use crate::Sym;

crate::table! {
    /// Interrupt handlers: hard, soft, high-resolution timers, and those of interrupts that CPUs send each other.
    IrqRow = "irq", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// CPU.
        cpu: i32,
        /// hard, soft, hrtimer, ipi (sent by a CPU).
        kind: Sym,
        /// Number of the interrupt or softirq vector; of those sent by CPUs 0 reschedule, 1 call a function, 2 the same for one CPU.
        nr: i32,
        /// Name of the handler or vector.
        name: Option<Sym>,
        /// When the softirq was raised, or the other CPU sent it.
        ts_raise: Option<i64> [Time],
        /// From raise to entry.
        raise_ns: Option<i64> [Duration],
        /// Return value of a hard handler.
        ret: Option<i32>,
        /// Length without the handlers that interrupted it; null where `dur` is.
        self_ns: Option<i64> [Duration],
        /// Thread that was interrupted.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Its kernel id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Its name.
        comm: Option<Sym>,
    }
}
