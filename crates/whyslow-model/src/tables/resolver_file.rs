use crate::Sym;

crate::table! {
    /// Name resolution configuration of each mount namespace.
    ResolverFileRow = "resolver_file", Point by id {
        /// Id.
        id: i64 [Id],
        /// Time of reading; a changed file has another row.
        ts: i64 [Time],
        /// Mount namespace number.
        mount_ns: i64,
        /// /etc/resolv.conf, /etc/nsswitch.conf or /etc/hosts.
        path: Sym,
        /// Size of the whole file in bytes; null if the file does not exist.
        size: Option<i64> [Bytes],
        /// Content of the file, truncated if it is long; null if the file does not exist.
        text: Option<Sym>,
    }
}
