//! Packets and TCP connections.

use super::RecordError;
use super::record::Cursor;
use crate::event::{Endpoint, NetAddress, NetHeaders, TcpState};

/// Payload of the kind `Net`: a packet at one of the tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetRecord<'b> {
    /// Address of the socket buffer.
    pub skb: u64,
    /// 0 received, 1 passed to the interface, 2 result of the driver, 3 and 4 retransmitted
    /// (segment, reply to a connection request), 5 dropped.
    pub what: u32,
    /// Length of the packet in bytes.
    pub bytes: u32,
    /// Result of the driver, or drop reason.
    pub ret: i32,
    /// Ethertype of the frame (0x0800 for IPv4); `None` if unknown.
    pub ethertype: Option<u16>,
    /// `None` if no IP headers were recorded.
    pub headers: Option<NetHeaders>,
    /// Name of the interface; empty without one.
    pub netif: &'b [u8],
}

impl<'b> NetRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        let (skb, what, bytes, ret) = (at.u64()?, at.u32()?, at.u32()?, at.i32()?);
        let (seq, ethertype) = (at.u32()?, at.u16()?);
        let [family, protocol] = at.array()?;
        let ports = [at.u16()?, at.u16()?];
        let ends = [at.array::<16>()?, at.array::<16>()?];
        let address = |bytes: [u8; 16]| match family {
            4 => Some(NetAddress::V4([bytes[0], bytes[1], bytes[2], bytes[3]])),
            6 => Some(NetAddress::V6(bytes)),
            _ => None,
        };
        const TCP: u8 = 6;
        let port = |port: u16| Some(port).filter(|port| *port != 0);
        let headers = match (address(ends[0]), address(ends[1])) {
            (Some(source), Some(destination)) => Some(NetHeaders {
                protocol,
                source,
                destination,
                source_port: port(ports[0]),
                destination_port: port(ports[1]),
                tcp_seq: Some(seq).filter(|_| protocol == TCP),
            }),
            _ => None,
        };
        Ok(Self {
            skb,
            what,
            bytes,
            ret,
            ethertype: Some(ethertype).filter(|number| *number != 0),
            headers,
            netif: at.comm()?,
        })
    }
}

/// State change of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpRecord {
    /// Identifies the connection during its lifetime.
    pub sock: u64,
    /// Bytes acknowledged by the peer.
    pub acked: u64,
    /// Bytes received in order.
    pub received: u64,
    /// State before; `None` for states unknown to this version.
    pub from: Option<TcpState>,
    /// State after, like `from`.
    pub to: Option<TcpState>,
    /// Segments retransmitted so far.
    pub retransmits: u32,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Error number of the socket.
    pub error: i32,
    /// This side; `None` for sockets that are neither IPv4 nor IPv6.
    pub local: Option<Endpoint>,
    /// The other side.
    pub peer: Option<Endpoint>,
}

impl TcpRecord {
    pub(super) fn take(at: &mut Cursor<'_>) -> Result<Self, RecordError> {
        let (sock, acked, received) = (at.u64()?, at.u64()?, at.u64()?);
        let (from, to) = (TcpState::of(at.u32()?), TcpState::of(at.u32()?));
        let (retransmits, rtt_us, error) = (at.u32()?, at.u32()?, at.i32()?);
        let ports = [at.u16()?, at.u16()?];
        let [family, ..] = at.array::<8>()?;
        let addresses = [at.array::<16>()?, at.array::<16>()?];
        let [local, peer] = [0, 1].map(|side| endpoint(family, addresses[side], ports[side]));
        Ok(Self {
            sock,
            acked,
            received,
            from,
            to,
            retransmits,
            rtt_us,
            error,
            local,
            peer,
        })
    }
}

fn endpoint(family: u8, bytes: [u8; 16], port: u16) -> Option<Endpoint> {
    let first = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let address = match (family, std::net::Ipv6Addr::from(bytes).to_ipv4_mapped()) {
        (4, _) => NetAddress::V4(first),
        // A dual-stack socket with an IPv4 connection.
        (6, Some(mapped)) => NetAddress::V4(mapped.octets()),
        (6, None) => NetAddress::V6(bytes),
        _ => return None,
    };
    Some(Endpoint {
        address,
        port: Some(port).filter(|port| *port != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Kind, Record, records};
    use super::*;

    fn change(family: u16, local: [u8; 16], to: u32) -> TcpRecord {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Tcp, 90, (3, 4));
        record.u64(0x40).u64(5).u64(6).u32(2).u32(to);
        record.u32(7).u32(8).u32(104).u16(4711).u16(0);
        record.u16(family).u16(0).u32(0);
        for bytes in [local, [0; 16]] {
            for half in bytes.chunks_exact(8) {
                record.u64(u64::from_le_bytes(half.try_into().expect("eight")));
            }
        }
        record.end();
        match records(encoder.payload()).next() {
            Some((_, Ok((_, Record::Tcp(change))))) => change,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_sides_of_a_connection_are_known() {
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[0xff, 0xff, 10, 1, 2, 3]);
        let found = change(6, mapped, 1);
        let (from, to) = (Some(TcpState::SynSent), Some(TcpState::Established));
        assert_eq!((found.from, found.to, found.error), (from, to, 104));
        let local = Endpoint {
            address: NetAddress::V4([10, 1, 2, 3]),
            port: Some(4711),
        };
        assert_eq!(found.local, Some(local));
        assert_eq!(found.peer.and_then(|peer| peer.port), None);
        assert_eq!(change(4, [127; 16], 13).to, None);
        assert_eq!(change(0, [127; 16], 0).local, None);
    }
}
