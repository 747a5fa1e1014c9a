use crate::Sym;

crate::table! {
    /// Where processes see other files than before: in another mount namespace, or below another root. A process begins with what its parent has.
    ProcessViewRow = "process_view", Point by id {
        /// Id.
        id: i64 [Id],
        /// From when on.
        ts: i64 [Time],
        /// Process (recording-unique id).
        upid: i32 [Id],
        /// Number of the mount namespace, where that changed or was told for the first time.
        mount_ns: Option<i64>,
        /// Root directory, where that changed or was told.
        root: Option<Sym>,
        /// The root is named as the process saw it before (chroot); else as its mount namespace does.
        is_below: bool,
    }
}
