//! Packets: their headers and addresses.

/// Headers of a packet, where the source recorded them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetHeaders {
    /// IP protocol number.
    pub protocol: u8,
    pub source: NetAddress,
    pub destination: NetAddress,
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    pub tcp_seq: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetAddress {
    V4([u8; 4]),
    V6([u8; 16]),
}
