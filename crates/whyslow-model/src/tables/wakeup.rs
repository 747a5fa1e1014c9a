use crate::Sym;

crate::table! {
    /// Wakeups: who was woken, from where.
    WakeupRow = "wakeup", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// waking, wakeup, wakeup_new.
        kind: Sym,
        /// Thread woken.
        utid: Option<i32> [Id],
        /// Its kernel id.
        tid: i32,
        /// Its name.
        comm: Option<Sym>,
        /// Its kernel priority.
        prio: Option<i32>,
        /// CPU it was sent to.
        target_cpu: Option<i32>,
        /// CPU the wakeup ran on.
        cpu: Option<i32>,
        /// Thread that ran on that CPU; in interrupt context it is a bystander.
        waker_utid: Option<i32> [Id],
        /// Its kernel id; 0 if the CPU was idle.
        waker_tid: Option<i32>,
        /// Context: task, irq, softirq, timer; unknown where the source does not tell.
        context: Sym,
        /// Number of the interrupt or softirq vector.
        context_nr: Option<i32>,
        /// What led to it: block_io (the request ended here), worker (a worker of the kernel passed on the end of the request for which it was woken, or in which its work was queued), packet (one that this machine sent arrived), received (one from elsewhere arrived); null if nothing is known.
        cause: Option<Sym>,
        /// Id of the request (block_io, worker) or of the row in `net_packet`: of packet when it was queued, with its sender, of received when it was received.
        cause_id: Option<i64> [Id],
        /// The thread was not asleep.
        spurious: bool,
    }
}
