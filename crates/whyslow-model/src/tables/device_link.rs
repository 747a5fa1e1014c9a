use crate::Sym;

crate::table! {
    /// Which block device lies on which.
    DeviceLinkRow = "device_link", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Device.
        dev: i64 [Id],
        /// Device it lies on.
        below: i64 [Id],
        /// How: partition, member (of a volume or array), file (of a loop device).
        kind: Sym,
    }
}
