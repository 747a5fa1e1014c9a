use crate::Sym;

crate::table! {
    /// Wakeups: the woken thread and the context that woke it.
    WakeupRow = "wakeup", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// Time of the event.
        ts: i64 [Time],
        /// waking, wakeup, wakeup_new.
        kind: Sym,
        /// Woken thread.
        utid: Option<i32> [Id],
        /// Kernel thread id of the woken thread.
        tid: i32,
        /// Name of the woken thread.
        comm: Option<Sym>,
        /// Kernel priority of the woken thread.
        prio: Option<i32>,
        /// CPU that the thread was placed on.
        target_cpu: Option<i32>,
        /// CPU that ran the wakeup.
        cpu: Option<i32>,
        /// Thread running on that CPU; in interrupt context it is not the cause.
        waker_utid: Option<i32> [Id],
        /// Kernel id of that thread; 0 if the CPU was idle.
        waker_tid: Option<i32>,
        /// Context: task, irq, softirq, timer; unknown if the source does not report it.
        context: Sym,
        /// Number of the interrupt or softirq vector.
        context_nr: Option<i32>,
        /// Cause: block_io (completion of a request), worker (a kernel worker passed on the
        /// completion it was woken for, or the one in which its work was queued), packet (arrival
        /// of a packet from this machine), received (arrival of a packet from elsewhere); null if
        /// unknown.
        cause: Option<Sym>,
        /// Block request (block_io, worker) or `net_packet` row: for packet the row of its queueing
        /// by the sender, for received the row of its reception.
        cause_id: Option<i64> [Id],
        /// The thread was not asleep.
        spurious: bool,
    }
}
