use crate::Sym;

crate::table! {
    /// Function calls (uprobes) recorded with `record --function`, from entry to return.
    FunctionCallRow = "function_call", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Time of entry.
        ts: i64 [Time],
        /// Duration; null if the return was not recorded: the call was still in progress, was left
        /// by a jump or an exception, or was nested more deeply than the kernel tracks returns.
        dur: Option<i64> [Duration],
        /// Time of return; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Function name, demangled.
        function: Sym,
        /// File that contains the function.
        module: Sym,
        /// First argument, as the 64 bits of its register unless a type was specified; null if it
        /// was not recorded.
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
        /// Text that the first argument of type `str` pointed to on entry.
        text: Option<Sym>,
        /// Text of the second argument of type `str`.
        text2: Option<Sym>,
        /// Return value, as the 64 bits of its register unless a type was specified.
        ret: Option<i64>,
        /// Innermost recorded call of the thread that contains this one, by stack pointer; null for
        /// the outermost call.
        parent_id: Option<i64> [Id],
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
        /// CPU at entry.
        cpu: Option<i32>,
    }
}
