//! Packets.

use super::RecordError;
use super::record::Cursor;
use crate::event::{NetAddress, NetHeaders};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetRecord<'b> {
    pub skb: u64,
    /// 0 received, 1 handed to the interface, 2 result of the driver, 3 and 4 sent again (segment,
    /// answer to a connection request), 5 thrown away.
    pub what: u32,
    pub bytes: u32,
    /// Of the driver; why it was thrown away.
    pub ret: i32,
    pub ethertype: Option<u16>,
    pub headers: Option<NetHeaders>,
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
