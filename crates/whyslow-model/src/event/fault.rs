//! What goes wrong with packets.

/// Tracepoints of packets that were sent again or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetFaultKind {
    /// A segment was not acknowledged in time.
    Retransmit,
    /// The answer to a connection request was not.
    RetransmitSynack,
    /// The kernel dropped the packet (`kfree_skb`).
    Drop,
}

impl NetFaultKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Retransmit, Self::RetransmitSynack, Self::Drop];

    /// As the column `net_packet.kind` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::RetransmitSynack => "retransmit_synack",
            Self::Drop => "drop",
        }
    }
}
