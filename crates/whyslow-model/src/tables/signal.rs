use crate::Sym;

crate::table! {
    /// Signals that stop, continue or terminate a process, from generation to their effect.
    SignalRow = "signal", Interval by id {
        /// Id, in order of generation.
        id: i64 [Id],
        /// Time at which the signal was generated.
        ts: i64 [Time],
        /// Time until a thread of the process received it; null if none did in the recording.
        dur: Option<i64> [Duration],
        /// Time at which a thread of the process received it; for continue, the time of generation.
        ts_end: Option<i64> [Time],
        /// SIGKILL, SIGSTOP, …; the number if it has no name.
        signal: Sym,
        /// stop, continue, end (terminates the process), handler (runs a function of the program).
        action: Sym,
        /// kill, tkill (to one thread), sigqueue, kernel, fault (caused by the thread itself),
        /// timer, other.
        origin: Sym,
        /// sent, pending (one was pending already), ignored, details_lost, lost (queue full).
        result: Sym,
        /// Target thread (recording-unique id); for a signal to a process, one of its threads.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id (thread group).
        pid: i32,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// Thread that sent the signal (recording-unique id); null if an interrupt sent it or the
        /// sender is unknown.
        sender_utid: Option<i32> [Id],
        /// Kernel thread id of the sender.
        sender_tid: Option<i32>,
        /// Kernel process id of the sender.
        sender_pid: Option<i32>,
        /// Name of the sender at that time.
        sender_comm: Option<Sym>,
    }
}
