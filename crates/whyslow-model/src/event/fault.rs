//! What goes wrong with packets.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetFaultKind {
    /// A segment was not acknowledged in time.
    Retransmit,
    /// The answer to a connection request was not.
    RetransmitSynack,
    Drop,
}

impl NetFaultKind {
    pub const ALL: [Self; 3] = [Self::Retransmit, Self::RetransmitSynack, Self::Drop];

    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::RetransmitSynack => "retransmit_synack",
            Self::Drop => "drop",
        }
    }
}
