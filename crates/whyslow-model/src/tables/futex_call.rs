use crate::Sym;

/// Values of the column `op`.
pub const FUTEX_OPS: [&str; 5] = ["wait", "wake", "requeue", "unlock", "other"];

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
        /// wait (also of locks that inherit priority), wake, requeue (some are woken, others wait elsewhere from then on), unlock (of a lock that inherits priority), other.
        op: Sym,
        /// Whether only threads of the process know the address; null where the source does not tell.
        private: Option<bool>,
        /// Address of the lock, in hexadecimal digits.
        address: Sym,
        /// Return value: of wake and requeue how many were woken; null if it was not recorded.
        ret: Option<i64>,
        /// Positive errno of a failed call: 110 (ETIMEDOUT) if the time ran out; null on success.
        errno: Option<i32>,
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
    }
}
