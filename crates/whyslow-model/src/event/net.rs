//! Packets: their headers and addresses.

/// Headers of a packet, if the source recorded them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetHeaders {
    /// IP protocol number.
    pub protocol: u8,
    /// Sender.
    pub source: NetAddress,
    /// Receiver.
    pub destination: NetAddress,
    /// Port of the sender, if the protocol has ports.
    pub source_port: Option<u16>,
    /// Port of the receiver, if the protocol has ports.
    pub destination_port: Option<u16>,
    /// Sequence number of a TCP segment.
    pub tcp_seq: Option<u32>,
}

/// IP address in network byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetAddress {
    /// IPv4.
    V4([u8; 4]),
    /// IPv6.
    V6([u8; 16]),
}
