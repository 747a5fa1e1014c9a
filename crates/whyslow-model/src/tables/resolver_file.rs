use crate::Sym;

crate::table! {
    /// Files that say how names of hosts are looked up, as each mount namespace has them.
    ResolverFileRow = "resolver_file", Point by id {
        /// Id.
        id: i64 [Id],
        /// When it was read; a file that changed has another row.
        ts: i64 [Time],
        /// Number of the mount namespace.
        mount_ns: i64,
        /// /etc/resolv.conf, /etc/nsswitch.conf or /etc/hosts.
        path: Sym,
        /// Bytes of the whole file; null if there is no such file.
        size: Option<i64> [Bytes],
        /// The file, or its first bytes if it is long; null if there is no such file.
        text: Option<Sym>,
    }
}
