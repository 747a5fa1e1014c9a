//! DNS lookups, TCP state changes, packet and socket addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::str::FromStr;

use whyslow_model::event::{
    Body, Endpoint, NetAddress, NetHeaders, SocketAddress, TcpChange, TcpState,
};
use whyslow_model::lookup::{Function, Outcome};

use super::super::line;
use super::{Fields, Read};

impl<'a> Fields<'a> {
    pub(super) fn lookup_begin(&self) -> Read<Body<'a>> {
        Ok(Body::LookupBegin {
            function: self.special_required("function", Function::by_name)?,
            host: self.optional("host")?,
            service: self.optional("service")?,
        })
    }

    pub(super) fn lookup(&self) -> Read<Body<'a>> {
        let function = self.special_required("function", Function::by_name)?;
        let address = self.special("address", endpoint)?;
        Ok(Body::LookupEnd {
            begun: self.special_required("since", line::time_of)?,
            function,
            host: self.optional("host")?,
            service: self.optional("service")?,
            outcome: Outcome::of(function, self.optional("code")?),
            address: address.map(|(address, _)| address),
        })
    }

    pub(super) fn tcp(&self) -> Read<TcpChange> {
        let state = |text: &str| TcpState::ALL.into_iter().find(|state| state.name() == text);
        let side = |key: &str| -> Read<Option<Endpoint>> {
            let side = self.special(key, endpoint)?;
            Ok(side.map(|(address, port)| Endpoint { address, port }))
        };
        Ok(TcpChange {
            sock: self.required("sock")?,
            from: self.special_required("from", state)?,
            to: self.special_required("to", state)?,
            local: side("local")?,
            peer: side("peer")?,
            acked: self.optional("acked")?,
            received: self.optional("received")?,
            retransmits: self.optional("retransmits")?,
            rtt_us: self.optional("rtt_us")?,
            error: self.optional("error")?.unwrap_or(0),
        })
    }

    pub(super) fn net_headers(&self) -> Read<Option<NetHeaders>> {
        let source = self.special("source", endpoint)?;
        let destination = self.special("destination", endpoint)?;
        Ok(match (self.optional("protocol")?, source, destination) {
            (Some(protocol), Some((source, source_port)), Some((destination, port))) => {
                Some(NetHeaders {
                    protocol,
                    source,
                    destination,
                    source_port,
                    destination_port: port,
                    tcp_seq: self.optional("tcp_seq")?,
                })
            }
            _ => None,
        })
    }
}

fn endpoint(text: &str) -> Option<(NetAddress, Option<u16>)> {
    if let Ok(v4) = SocketAddrV4::from_str(text) {
        return Some((NetAddress::V4(v4.ip().octets()), Some(v4.port())));
    }
    if let Ok(v6) = SocketAddrV6::from_str(text) {
        return Some((NetAddress::V6(v6.ip().octets()), Some(v6.port())));
    }
    let address = match Ipv4Addr::from_str(text) {
        Ok(v4) => NetAddress::V4(v4.octets()),
        Err(_) => NetAddress::V6(Ipv6Addr::from_str(text).ok()?.octets()),
    };
    Some((address, None))
}

pub(super) fn socket_address(text: &str) -> Option<SocketAddress<'_>> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = path.as_bytes();
        return Some(SocketAddress::Unix { path });
    }
    if let Some(family) = text.strip_prefix("family:") {
        return Some(SocketAddress::Family(family.parse().ok()?));
    }
    match endpoint(text)? {
        (NetAddress::V4(address), Some(port)) => Some(SocketAddress::Inet { address, port }),
        (NetAddress::V6(address), Some(port)) => Some(SocketAddress::Inet6 { address, port }),
        _ => None,
    }
}
