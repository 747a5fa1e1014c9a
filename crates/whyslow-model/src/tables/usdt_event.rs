use crate::Sym;

crate::table! {
    /// Passes of static probes of programs (USDT) that were asked for (`record --usdt`).
    UsdtEventRow = "usdt_event", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// Whose probe it is, as its note tells.
        provider: Sym,
        /// Its name.
        name: Sym,
        /// File that it is in.
        module: Sym,
        /// First argument, by the type that its note tells unless another one was asked for; null if there is none, or it is no integer.
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
        /// Text that the first argument of type `str` pointed at.
        text: Option<Sym>,
        /// That of the second one.
        text2: Option<Sym>,
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
        /// CPU.
        cpu: Option<i32>,
    }
}
