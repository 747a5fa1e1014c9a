use crate::Sym;

crate::table! {
    /// Signals that stop, continue or end a process, or ask it to, from sending to their effect.
    SignalRow = "signal", Interval by id {
        /// Id, in order of sending.
        id: i64 [Id],
        /// When it was sent.
        ts: i64 [Time],
        /// Until a thread of the process got it; null if none did in the recording.
        dur: Option<i64> [Duration],
        /// When a thread of the process got it; what continues does so at once.
        ts_end: Option<i64> [Time],
        /// SIGKILL, SIGSTOP, …; its number where it has no name.
        signal: Sym,
        /// stop, continue, end (the process), handler (a function of the program is called).
        action: Sym,
        /// kill, tkill (for one thread), sigqueue, kernel, fault (what the thread did itself), timer, other.
        origin: Sym,
        /// sent, pending (there was one already), ignored, details_lost, lost (no room).
        result: Sym,
        /// Thread that it was for (recording-unique id); of signals for a process one of its threads.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: i32,
        /// Kernel process id (thread group).
        pid: i32,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// Thread that sent it (recording-unique id); null if an interrupt did or nothing tells.
        sender_utid: Option<i32> [Id],
        /// Its kernel thread id.
        sender_tid: Option<i32>,
        /// Its process.
        sender_pid: Option<i32>,
        /// Its name at that time.
        sender_comm: Option<Sym>,
    }
}
