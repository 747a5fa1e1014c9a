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
        /// Runnable because it was preempted.
        preempted: bool,
        /// CPU it ran on, or last ran on.
        cpu: Option<i32>,
        /// The wakeup that ended this sleep, or began this wait for a CPU.
        wakeup_id: Option<i64> [Id],
        /// Thread that ran on the waking CPU; in interrupt context it is a bystander.
        waker_utid: Option<i32> [Id],
        /// Context of the wakeup: task, irq, softirq, timer.
        wake_context: Option<Sym>,
    }
}
