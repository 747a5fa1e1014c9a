use crate::Sym;

crate::table! {
    /// Calls of functions of programs that were asked for (`record --function`), from entry to return.
    FunctionCallRow = "function_call", Interval by id {
        /// Id, in order of entry.
        id: i64 [Id],
        /// Entry.
        ts: i64 [Time],
        /// Length; null if the return was not recorded: the call went on, was left by a jump or an exception, or was nested more deeply than the kernel watches returns.
        dur: Option<i64> [Duration],
        /// Return; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Name of the function, as people write it.
        function: Sym,
        /// File that it is in.
        module: Sym,
        /// First argument, as the 64 bits of its register unless a type was asked for; null if it was not recorded.
        arg1: Option<i64>,
        /// Second one.
        arg2: Option<i64>,
        /// Third one.
        arg3: Option<i64>,
        /// Fourth one.
        arg4: Option<i64>,
        /// Fifth one.
        arg5: Option<i64>,
        /// Sixth one.
        arg6: Option<i64>,
        /// Text that the first argument of type `str` pointed at on entry.
        text: Option<Sym>,
        /// That of the second one.
        text2: Option<Sym>,
        /// Return value, as the 64 bits of its register unless a type was asked for.
        ret: Option<i64>,
        /// Innermost recorded call of the thread that this one is part of, by the stack pointer; null for the outermost.
        parent_id: Option<i64> [Id],
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
        /// CPU of the entry.
        cpu: Option<i32>,
    }
}
