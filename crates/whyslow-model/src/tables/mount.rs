use crate::Sym;

crate::table! {
    /// What is mounted where.
    MountRow = "mount", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Number of the mount namespace.
        mount_ns: i64,
        /// The kernel's id of the mount.
        mount_id: i32,
        /// That of the mount it lies in.
        parent_id: i32,
        /// Device of its files, with 20 minor bits.
        dev: i64 [Id],
        /// Path inside of the file system that is seen there.
        root: Sym,
        /// Where, as processes of the namespace see it.
        mount_point: Sym,
        /// File system.
        fs_type: Sym,
        /// Device or whatever else is mounted.
        source: Sym,
        /// Options of the mount and of the file system.
        options: Sym,
    }
}
