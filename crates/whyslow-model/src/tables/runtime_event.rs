use crate::Sym;

crate::table! {
    /// What the runtime of a program told of itself and its threads: waits for its locks, reads and writes, pauses of its garbage collector.
    RuntimeEventRow = "runtime_event", Interval by id {
        /// Id, in order of begin.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; 0 of what has none.
        dur: Option<i64> [Duration],
        /// End.
        ts_end: Option<i64> [Time],
        /// monitor_enter (a lock of the language), monitor_wait (for others to tell it to go on), park (a lock or queue of a library), sleep, file_read, file_write, file_force, socket_read, socket_write, native_lock (pthread), gc_pause, safepoint (until all threads had stopped), vm_operation, allocation, live_object.
        kind: Sym,
        /// Class of the lock or object, path, host with port, name of the pause or operation.
        object: Option<Sym>,
        /// Address of the lock, in hexadecimal digits. The garbage collector may move the lock, so two addresses may be one lock.
        address: Option<Sym>,
        /// Bytes moved or allocated.
        bytes: Option<i64> [Bytes],
        /// Thread that had the lock last (recording-unique id), which need not be the one that kept it for long.
        owner_utid: Option<i32> [Id],
        /// Thread (recording-unique id); null if it concerns all.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread, as its runtime knows it.
        comm: Option<Sym>,
        /// Innermost function outside of the code of locks; null if no stack was taken.
        function: Option<Sym>,
        /// Its stack.
        callsite_id: Option<i64> [Id],
    }
}
