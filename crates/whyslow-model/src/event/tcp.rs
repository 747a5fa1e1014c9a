//! Connections of TCP.

use super::NetAddress;

/// State of a connection, as the kernel numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpState {
    /// Both sides may send.
    Established = 1,
    /// A connection request was sent.
    SynSent,
    /// A connection request was received, and answered.
    SynRecv,
    /// This side closed; the peer has not acknowledged that yet.
    FinWait1,
    /// This side closed; the peer has not closed yet.
    FinWait2,
    /// Both closed; late segments are still caught.
    TimeWait,
    /// No connection.
    Close,
    /// The peer closed; this side has not yet.
    CloseWait,
    /// Both closed; the peer has not acknowledged the last FIN yet.
    LastAck,
    /// Waits for connection requests.
    Listen,
    /// Both closed at the same time; not acknowledged yet.
    Closing,
    /// A request that is not a full socket yet (`TCP_NEW_SYN_RECV`).
    NewSynRecv,
}

impl TcpState {
    /// Every state, in the order of the kernel's numbers, from 1 on.
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

    /// The state of a kernel number; `None` for a number that is not known.
    pub fn of(number: u32) -> Option<Self> {
        let place = (number as usize).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }

    /// As the column `tcp_connection.state` has it.
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
    /// IP address; IPv4 also where a socket of both families carries an IPv4 connection.
    pub address: NetAddress,
    /// Port; `None` if it is not known.
    pub port: Option<u16>,
}

/// A connection goes from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpChange {
    /// Tells connections apart while they live.
    pub sock: u64,
    /// State before.
    pub from: TcpState,
    /// State after.
    pub to: TcpState,
    /// This side.
    pub local: Option<Endpoint>,
    /// The other side.
    pub peer: Option<Endpoint>,
    /// Bytes sent that the peer has, and bytes received.
    pub acked: Option<u64>,
    /// Bytes received in order.
    pub received: Option<u64>,
    /// Segments sent again so far.
    pub retransmits: Option<u32>,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: Option<u32>,
    /// Number of the error that the socket has; 0 for none.
    pub error: i32,
}
