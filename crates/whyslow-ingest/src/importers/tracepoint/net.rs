//! Packets at network interfaces, retransmits and drops.
//!
//! `netif_rx` is left out: the packets that it queues are reported again by `netif_receive_skb`.

use whyslow_model::event::{Body, NetAddress, NetFaultKind, NetHeaders, NetKind};

use super::Fields;
use super::Mapping;
use super::value::Value;

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &["net_if_receive_skb", "netif_receive_skb"],
        fields: PACKET,
        body: receive,
    },
    Mapping {
        names: &["net_dev_queue"],
        fields: PACKET,
        body: queue,
    },
    Mapping {
        names: &["net_dev_xmit"],
        fields: &["name", "len", "skbaddr", "rc"],
        body: transmit,
    },
    Mapping {
        names: &["tcp_retransmit_skb"],
        fields: SEGMENT,
        body: retransmit,
    },
    Mapping {
        names: &["tcp_retransmit_synack"],
        fields: SEGMENT,
        body: retransmit_synack,
    },
    Mapping {
        names: &["skb_kfree", "kfree_skb"],
        fields: &["skbaddr", "protocol", "reason"],
        body: drop,
    },
];

const SEGMENT: &[&str] = &[
    "skbaddr", "sport", "dport", "saddr", "daddr", "saddr_v6", "daddr_v6",
];

fn retransmit<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    segment(fields, NetFaultKind::Retransmit)
}

fn retransmit_synack<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    segment(fields, NetFaultKind::RetransmitSynack)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all functions of the table have this signature"
)]
fn segment<'a>(fields: &Fields<'_, 'a>, kind: NetFaultKind) -> Option<Body<'a>> {
    Some(Body::NetFault {
        kind,
        skbaddr: fields.u64(0),
        reason: None,
        ethertype: None,
        headers: segment_ends(fields),
    })
}

/// Both address forms are always present. The IPv6 form also contains an IPv4 address, mapped;
/// otherwise the connection uses IPv6.
fn segment_ends(fields: &Fields<'_, '_>) -> Option<NetHeaders> {
    const TCP: u8 = 6;
    let v6 = |slot| v6(fields.value(slot)).filter(|address| *address != [0; 16]);
    let v4 = |slot| <[u8; 4]>::try_from(fields.bytes(slot)?).ok();
    let is_mapped = |address: &[u8; 16]| {
        let address = std::net::Ipv6Addr::from(*address);
        address.to_ipv4_mapped().is_some()
    };
    let (source, destination) = match (v6(5), v6(6)) {
        (Some(source), Some(destination)) if !is_mapped(&destination) => {
            (NetAddress::V6(source), NetAddress::V6(destination))
        }
        _ => (NetAddress::V4(v4(3)?), NetAddress::V4(v4(4)?)),
    };
    let port = |slot| fields.u64(slot).map(|port| port as u16);
    Some(NetHeaders {
        protocol: TCP,
        source,
        destination,
        source_port: port(1),
        destination_port: port(2),
        tcp_seq: None,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all functions of the table have this signature"
)]
fn drop<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::NetFault {
        kind: NetFaultKind::Drop,
        skbaddr: fields.u64(0),
        reason: fields.i64(2),
        ethertype: fields.u64(1).map(|protocol| protocol as u16),
        headers: None,
    })
}

const PACKET: &[&str] = &[
    "name",
    "len",
    "skbaddr",
    "network_header.ipv4.protocol",
    "network_header.ipv4.saddr",
    "network_header.ipv4.daddr",
    "network_header.ipv6.nexthdr",
    "network_header.ipv6.saddr",
    "network_header.ipv6.daddr",
    "network_header.ipv4.transport_header.source_port",
    "network_header.ipv4.transport_header.dest_port",
    "network_header.ipv4.transport_header.tcp.seq",
    "network_header.ipv6.transport_header.source_port",
    "network_header.ipv6.transport_header.dest_port",
    "network_header.ipv6.transport_header.tcp.seq",
];

fn receive<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    packet(fields, NetKind::Receive)
}

fn queue<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    packet(fields, NetKind::Queue)
}

fn packet<'a>(fields: &Fields<'_, 'a>, kind: NetKind) -> Option<Body<'a>> {
    Some(Body::Net {
        kind,
        netif: fields.name(0),
        bytes: fields.i64(1)?,
        skbaddr: fields.u64(2),
        ret: None,
        headers: headers(fields),
    })
}

fn transmit<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::Net {
        kind: NetKind::Transmit,
        netif: fields.name(0),
        bytes: fields.i64(1)?,
        skbaddr: fields.u64(2),
        ret: fields.i32(3),
        headers: None,
    })
}

fn headers(fields: &Fields<'_, '_>) -> Option<NetHeaders> {
    let ports = |first: usize| {
        let port = |slot| fields.u64(slot).map(|port| port as u16);
        let seq = fields.u64(first + 2).map(|seq| seq as u32);
        (port(first), port(first + 1), seq)
    };
    let (protocol, source, destination, (source_port, destination_port, tcp_seq)) =
        if let Some(protocol) = fields.u64(3) {
            let address = |slot| Some(NetAddress::V4(fields.bytes(slot)?.try_into().ok()?));
            (protocol, address(4)?, address(5)?, ports(9))
        } else {
            let address = |slot| v6(fields.value(slot)).map(NetAddress::V6);
            (fields.u64(6)?, address(7)?, address(8)?, ports(12))
        };
    Some(NetHeaders {
        protocol: protocol as u8,
        source,
        destination,
        source_port,
        destination_port,
        tcp_seq,
    })
}

/// LTTng writes an IPv6 address as eight 16-bit numbers, most significant first.
pub(super) fn v6(value: Value<'_>) -> Option<[u8; 16]> {
    match value {
        Value::Bytes(bytes) => bytes.try_into().ok(),
        Value::Ints(groups) if groups.len() == 8 => {
            let mut address = [0; 16];
            for (pair, group) in address.chunks_exact_mut(2).zip(groups) {
                pair.copy_from_slice(&(*group as u16).to_be_bytes());
            }
            Some(address)
        }
        _ => None,
    }
}
