use crate::Sym;

/// Values of the column `op`.
pub const FUTEX_OPS: [&str; 6] = ["wait", "wake", "requeue", "unlock", "other", "unknown"];

crate::table! {
    /// Futex calls that concern contended user-space locks: which threads waited at which address,
    /// and which threads woke them.
    FutexCallRow = "futex_call", Interval by id {
        /// Id of the system call (`syscall.id`).
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// wait (also on priority-inheritance locks), wake, requeue (wakes some waiters and moves
        /// others to another address), unlock (of a priority-inheritance lock), other; unknown if
        /// the entry was not recorded.
        op: Sym,
        /// Whether the futex is private to the process; null if the source does not report it.
        private: Option<bool>,
        /// Address of the lock in hexadecimal; it identifies a lock within a process. Null if it
        /// was not recorded, as for waits on several addresses.
        address: Option<Sym>,
        /// Value that a wait expects at the address; a contended mutex of glibc, Rust or Go has 2.
        /// Null for other operations, or if the source does not report it.
        value: Option<i64>,
        /// Address that requeue moves waiters to; second address of a wake operation on two.
        address2: Option<Sym>,
        /// Return value; null if it was not recorded.
        ret: Option<i64>,
        /// Positive errno of a failed call: 110 (ETIMEDOUT) on timeout; null on success.
        errno: Option<i32>,
        /// Threads woken by a wake or requeue; null for other operations, failed calls and calls
        /// without an end.
        woken: Option<i64> [Count],
        /// Whether a wait had a timeout; null if the source does not report it. The timeout itself
        /// is not recorded.
        has_timeout: Option<bool>,
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
        /// Edge at which the recording cuts the call: `begin` (entry not recorded), `end` (exit not
        /// recorded); `lost` if events were lost in between, and the exit may be that of a later call.
        /// Then `dur` is null if it is longer than any certain one of that name before.
        cut: Option<Sym>,
    }
}
