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
        /// Whole disk of a partition, where a remap told.
        parent: Option<i64> [Id],
    }
}
