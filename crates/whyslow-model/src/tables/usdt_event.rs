use crate::Sym;

crate::table! {
    /// Hits of USDT probes recorded with `record --usdt`.
    UsdtEventRow = "usdt_event", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// Time of the event.
        ts: i64 [Time],
        /// Provider of the probe, as declared in its ELF note.
        provider: Sym,
        /// Probe name.
        name: Sym,
        /// File that contains the probe.
        module: Sym,
        /// First argument, of the type declared in the note unless another one was specified; null
        /// if there is none or it is not an integer.
        arg1: Option<i64>,
        /// Second argument.
        arg2: Option<i64>,
        /// Third argument.
        arg3: Option<i64>,
        /// Fourth argument.
        arg4: Option<i64>,
        /// Fifth argument.
        arg5: Option<i64>,
        /// Sixth argument.
        arg6: Option<i64>,
        /// Seventh argument.
        arg7: Option<i64>,
        /// Eighth argument.
        arg8: Option<i64>,
        /// Ninth argument.
        arg9: Option<i64>,
        /// Tenth argument.
        arg10: Option<i64>,
        /// Eleventh argument.
        arg11: Option<i64>,
        /// Twelfth argument.
        arg12: Option<i64>,
        /// Text that the first argument of type `str` pointed to.
        text: Option<Sym>,
        /// Text of the second argument of type `str`.
        text2: Option<Sym>,
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
        /// CPU.
        cpu: Option<i32>,
    }
}
