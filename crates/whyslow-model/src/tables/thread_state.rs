use crate::Sym;

/// Values of the column `state`, in the order in which answers show them.
pub const THREAD_STATES: [&str; 10] = [
    "running",
    "runnable",
    "sleeping",
    "uninterruptible",
    "stopped",
    "traced",
    "parked",
    "idle",
    "dead",
    "unknown",
];

/// Values of the column `reason`.
pub const RUNNABLE_REASONS: [&str; 3] = ["woken", "created", "preempted"];

crate::table! {
    /// What each thread did: states follow each other without overlap.
    ThreadStateRow = "thread_state", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
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
        /// running, runnable, sleeping, uninterruptible, stopped, traced, parked, idle, dead, unknown.
        /// A sleep that began before the recording is `sleeping` of whatever kind.
        state: Sym,
        /// Why it was runnable: woken, created, preempted (another thread took its CPU, be it that it
        /// gave the CPU away by sched_yield); null for other states and where the trace does not tell.
        reason: Option<Sym>,
        /// Kernel priority (100–139 normal, below is real-time); null if unknown.
        prio: Option<i32>,
        /// CPU it ran on, or last ran on; of a wait for a CPU the one it got.
        cpu: Option<i32>,
        /// The wakeup that ended this sleep, or began this wait for a CPU.
        wakeup_id: Option<i64> [Id],
        /// Thread that woke it, as far as known; null if an interrupt did.
        waker_utid: Option<i32> [Id],
        /// Context of the wakeup: task, irq, softirq, timer.
        wake_context: Option<Sym>,
        /// What led to the wakeup: block_io, worker, packet, received (see `wakeup.cause`).
        wake_cause: Option<Sym>,
        /// Id of the request or packet (see `wakeup.cause_id`).
        wake_cause_id: Option<i64> [Id],
    }
}
