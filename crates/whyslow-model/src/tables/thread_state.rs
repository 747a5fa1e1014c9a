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
    /// Thread states: consecutive, without overlap.
    ThreadStateRow = "thread_state", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
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
        /// running, runnable, sleeping, uninterruptible, stopped, traced, parked, idle, dead,
        /// unknown. A sleep that began before the recording is `sleeping`, whether interruptible or
        /// not.
        state: Sym,
        /// Why the thread is runnable: woken, created, preempted (another thread took its CPU,
        /// including after sched_yield); null for other states, or if the trace does not report it.
        reason: Option<Sym>,
        /// Kernel priority (100–139 normal, below is real-time); null if unknown.
        prio: Option<i32>,
        /// CPU that the thread ran on, or last ran on; for a wait for a CPU, the CPU that it got.
        cpu: Option<i32>,
        /// Wakeup that ended this sleep, or started this wait for a CPU.
        wakeup_id: Option<i64> [Id],
        /// Thread that sent the wakeup, if known; null if an interrupt did.
        waker_utid: Option<i32> [Id],
        /// Context of the wakeup: task, irq, softirq, timer.
        wake_context: Option<Sym>,
        /// Cause of the wakeup: block_io, worker, packet, received (see `wakeup.cause`).
        wake_cause: Option<Sym>,
        /// Id of the request or packet (see `wakeup.cause_id`).
        wake_cause_id: Option<i64> [Id],
    }
}
