//! Packet faults.

/// Tracepoints of packets that were retransmitted or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetFaultKind {
    /// A segment was not acknowledged in time.
    Retransmit,
    /// The reply to a connection request was not acknowledged in time.
    RetransmitSynack,
    /// The kernel dropped the packet (`kfree_skb`).
    Drop,
}

impl NetFaultKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Retransmit, Self::RetransmitSynack, Self::Drop];

    /// Value of the column `net_packet.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::RetransmitSynack => "retransmit_synack",
            Self::Drop => "drop",
        }
    }
}
