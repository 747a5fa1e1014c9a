use crate::Sym;

/// Values of the column `op`.
pub const FUTEX_OPS: [&str; 6] = ["wait", "wake", "requeue", "unlock", "other", "unknown"];

crate::table! {
    /// Calls about locks of programs that somebody had to wait for (futexes): who waited at which address, and who woke.
    FutexCallRow = "futex_call", Interval by id {
        /// Id of the system call.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// wait (also of locks that inherit priority), wake, requeue (some are woken, others wait elsewhere from then on), unlock (of a lock that inherits priority), other; unknown where the entry was not recorded.
        op: Sym,
        /// Whether only threads of the process know the address; null where the source does not tell.
        private: Option<bool>,
        /// Address of the lock, in hexadecimal digits; it names a lock within a process. Null where it was not recorded, as for waits at several addresses.
        address: Option<Sym>,
        /// Where requeue moves waiters to, and a wait is moved to; the second lock of a wake at two.
        address2: Option<Sym>,
        /// Return value; null if it was not recorded.
        ret: Option<i64>,
        /// Positive errno of a failed call: 110 (ETIMEDOUT) if the time ran out; null on success.
        errno: Option<i32>,
        /// How many a wake or requeue woke; null for other operations, failed calls and those without end.
        woken: Option<i64> [Count],
        /// Whether a wait had a limit of time; null where the source does not tell. The limit itself is not recorded.
        has_timeout: Option<bool>,
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
        /// Where the recording cuts it: `begin` (entry not recorded), `end` (exit not recorded).
        cut: Option<Sym>,
    }
}
