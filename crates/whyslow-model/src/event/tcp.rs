//! Connections of TCP.

use super::NetAddress;

/// State of a connection, as the kernel numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpState {
    Established = 1,
    SynSent,
    SynRecv,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    NewSynRecv,
}

impl TcpState {
    pub const ALL: [Self; 12] = [
        Self::Established,
        Self::SynSent,
        Self::SynRecv,
        Self::FinWait1,
        Self::FinWait2,
        Self::TimeWait,
        Self::Close,
        Self::CloseWait,
        Self::LastAck,
        Self::Listen,
        Self::Closing,
        Self::NewSynRecv,
    ];

    pub fn of(number: u32) -> Option<Self> {
        let place = (number as usize).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::SynSent => "syn_sent",
            Self::SynRecv => "syn_recv",
            Self::FinWait1 => "fin_wait1",
            Self::FinWait2 => "fin_wait2",
            Self::TimeWait => "time_wait",
            Self::Close => "close",
            Self::CloseWait => "close_wait",
            Self::LastAck => "last_ack",
            Self::Listen => "listen",
            Self::Closing => "closing",
            Self::NewSynRecv => "new_syn_recv",
        }
    }
}

/// One side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    pub address: NetAddress,
    pub port: Option<u16>,
}

/// A connection goes from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpChange {
    /// Tells connections apart while they live.
    pub sock: u64,
    pub from: TcpState,
    pub to: TcpState,
    pub local: Option<Endpoint>,
    pub peer: Option<Endpoint>,
    /// Bytes sent that the peer has, and bytes received.
    pub acked: Option<u64>,
    pub received: Option<u64>,
    pub retransmits: Option<u32>,
    pub rtt_us: Option<u32>,
    /// Number of the error that the socket has; 0 for none.
    pub error: i32,
}
