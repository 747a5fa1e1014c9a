use crate::Sym;

crate::table! {
    /// Stacking of block devices.
    DeviceLinkRow = "device_link", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Upper device.
        dev: i64 [Id],
        /// Underlying device.
        below: i64 [Id],
        /// Relation: partition, member (of a volume or array), file (of a loop device).
        kind: Sym,
    }
}
