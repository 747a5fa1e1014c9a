use crate::Sym;

crate::table! {
    /// Block devices.
    DeviceRow = "device", Entity by dev {
        /// Kernel `dev_t` with 20 minor bits.
        dev: i64 [Id],
        /// Major number.
        major: i32,
        /// Minor number.
        minor: i32,
        /// Name, or `major:minor` if the source has none.
        name: Sym,
        /// Whole disk of a partition, where a remap or a snapshot told.
        parent: Option<i64> [Id],
        /// What it is, in the words of lsblk: disk, part, loop, lvm, raid1, …
        kind: Option<Sym>,
        /// Bytes it has.
        size: Option<i64> [Bytes],
        /// Whether it turns.
        rotational: Option<bool>,
        /// Name of the mapping, of volumes.
        label: Option<Sym>,
        /// File of a loop device.
        backing: Option<Sym>,
    }
}
