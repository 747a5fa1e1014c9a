//! TCP connections.

use super::NetAddress;

/// TCP state, numbered as in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpState {
    /// Both sides may send.
    Established = 1,
    /// A connection request was sent.
    SynSent,
    /// A connection request was received, and replied to.
    SynRecv,
    /// This side closed; the peer has not acknowledged it.
    FinWait1,
    /// This side closed; the peer has not closed.
    FinWait2,
    /// Both sides closed; waiting for late segments.
    TimeWait,
    /// No connection.
    Close,
    /// The peer closed; this side has not closed.
    CloseWait,
    /// Both sides closed; the peer has not acknowledged the last FIN.
    LastAck,
    /// Waits for connection requests.
    Listen,
    /// Both sides closed at the same time; not acknowledged.
    Closing,
    /// A connection request without a full socket (`TCP_NEW_SYN_RECV`).
    NewSynRecv,
}

impl TcpState {
    /// All states, in the order of the kernel's numbers, which start at 1.
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

    /// Returns the state with this kernel number; `None` for an unknown number.
    pub fn of(number: u32) -> Option<Self> {
        let place = (number as usize).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }

    /// Value of the column `tcp_connection.state`.
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
    /// IP address; an IPv4 address, too, if a dual-stack socket carries an IPv4 connection.
    pub address: NetAddress,
    /// Port; `None` if unknown.
    pub port: Option<u16>,
}

/// A state change of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpChange {
    /// Identifies the connection during its lifetime.
    pub sock: u64,
    /// State before.
    pub from: TcpState,
    /// State after.
    pub to: TcpState,
    /// This side.
    pub local: Option<Endpoint>,
    /// The other side.
    pub peer: Option<Endpoint>,
    /// Bytes acknowledged by the peer.
    pub acked: Option<u64>,
    /// Bytes received in order.
    pub received: Option<u64>,
    /// Segments retransmitted so far.
    pub retransmits: Option<u32>,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: Option<u32>,
    /// Error number of the socket; 0 for none.
    pub error: i32,
}
