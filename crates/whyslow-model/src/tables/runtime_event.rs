use crate::Sym;

crate::table! {
    /// Events reported by a language runtime about itself and its threads: lock waits, reads and
    /// writes, garbage collection pauses.
    RuntimeEventRow = "runtime_event", Interval by id {
        /// Id, in order of start.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; 0 for events without one.
        dur: Option<i64> [Duration],
        /// End time.
        ts_end: Option<i64> [Time],
        /// monitor_enter (a lock of the language), monitor_wait (until notified by another thread),
        /// park (a lock or queue of a library), sleep, file_read, file_write, file_force,
        /// socket_read, socket_write, native_lock (pthread), gc_pause, safepoint (until all threads
        /// had stopped), vm_operation, allocation, live_object.
        kind: Sym,
        /// Class of the lock or object, path, host and port, or name of the pause or operation.
        object: Option<Sym>,
        /// Address of the lock in hexadecimal. The garbage collector may move the lock, so two
        /// addresses may be the same lock.
        address: Option<Sym>,
        /// Bytes moved or allocated.
        bytes: Option<i64> [Bytes],
        /// Last owner of the lock (recording-unique id), which need not be the thread that held it
        /// longest.
        owner_utid: Option<i32> [Id],
        /// Thread (recording-unique id); null if it concerns all.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name, as reported by the runtime.
        comm: Option<Sym>,
        /// Innermost function outside of the lock implementation; null if no stack was recorded.
        function: Option<Sym>,
        /// Stack of the event.
        callsite_id: Option<i64> [Id],
    }
}
