use crate::Sym;

crate::table! {
    /// Interrupt handlers: hard interrupts, softirqs, high-resolution timers, and interrupts
    /// between CPUs (IPIs).
    IrqRow = "irq", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// CPU.
        cpu: i32,
        /// hard, soft, hrtimer, ipi (sent by a CPU).
        kind: Sym,
        /// Number of the interrupt or softirq vector; for IPIs, 0 is reschedule, 1 function call, 2
        /// function call on a single CPU.
        nr: i32,
        /// Name of the handler or vector.
        name: Option<Sym>,
        /// Time at which the softirq was raised, or the IPI was sent.
        ts_raise: Option<i64> [Time],
        /// From raise to entry.
        raise_ns: Option<i64> [Duration],
        /// Return value of a hard interrupt handler.
        ret: Option<i32>,
        /// Duration without the handlers that interrupted this one; null if `dur` is null.
        self_ns: Option<i64> [Duration],
        /// Interrupted thread.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel id of that thread.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of that thread.
        comm: Option<Sym>,
    }
}
