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
        /// Name, or `major:minor` if the source reports none.
        name: Sym,
        /// Whole disk of a partition, if a remap event or a snapshot reports it.
        parent: Option<i64> [Id],
        /// Type, as lsblk names it: disk, part, loop, lvm, raid1, …
        kind: Option<Sym>,
        /// Size in bytes.
        size: Option<i64> [Bytes],
        /// Whether the device is rotational.
        rotational: Option<bool>,
        /// For volumes, the name of the mapping.
        label: Option<Sym>,
        /// Backing file of a loop device.
        backing: Option<Sym>,
    }
}
