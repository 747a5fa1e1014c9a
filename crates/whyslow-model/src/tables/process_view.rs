use crate::Sym;

crate::table! {
    /// Changes of the files that a process sees: a different mount namespace or root directory. A
    /// new process starts with the view of its parent.
    ProcessViewRow = "process_view", Point by id {
        /// Id.
        id: i64 [Id],
        /// Time of the change.
        ts: i64 [Time],
        /// Process (recording-unique id).
        upid: i32 [Id],
        /// Mount namespace number, if it changed or was reported for the first time.
        mount_ns: Option<i64>,
        /// Root directory, if it changed or was reported.
        root: Option<Sym>,
        /// Whether `root` is relative to the previous root of the process (chroot); otherwise it is
        /// relative to the mount namespace.
        is_below: bool,
    }
}
