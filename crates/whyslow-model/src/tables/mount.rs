use crate::Sym;

crate::table! {
    /// Mounts of each mount namespace.
    MountRow = "mount", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Mount namespace number.
        mount_ns: i64,
        /// Kernel id of the mount.
        mount_id: i32,
        /// Kernel id of the parent mount.
        parent_id: i32,
        /// Device of the file system, with 20 minor bits.
        dev: i64 [Id],
        /// Directory of the file system that is visible at the mount point.
        root: Sym,
        /// Mount point, as processes in the namespace see it.
        mount_point: Sym,
        /// File system type.
        fs_type: Sym,
        /// Mounted device, or another source.
        source: Sym,
        /// Options of the mount and of the file system.
        options: Sym,
    }
}
