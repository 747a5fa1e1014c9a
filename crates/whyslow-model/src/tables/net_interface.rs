use crate::Sym;

crate::table! {
    /// Network interfaces.
    NetInterfaceRow = "net_interface", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Name.
        name: Sym,
        /// Kernel index, if known.
        ifindex: Option<i32>,
        /// Address.
        address: Option<Sym>,
    }
}
