//! Packets at network interfaces, and the interfaces themselves.
//!
//! A packet sent in the context of a thread belongs to that thread. In an interrupt the running
//! thread is unrelated, and packets are received only in interrupts, without their receiver: such
//! packets have no owner.
//!
//! TCP retransmissions are reported without an interface: it is the one with the sender's address,
//! if a state dump reports that.

use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::event::{Body, Event, NetAddress, NetFaultKind, NetHeaders, NetKind};
use whyslow_model::tables::{EmitAll, NetInterfaceRow, NetPacketRow};
use whyslow_model::{Sym, Symbols, stat};

use super::identity::{Here, Output};
use super::packet::{Arrival, Marks, Packets};

/// Maximum number of interfaces (and their addresses) of a machine.
const INTERFACES_MAX: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct NetTracker {
    kinds: [Sym; 3],
    interfaces: FxHashSet<(Sym, Option<Sym>)>,
    /// Interfaces by address.
    by_address: FxHashMap<[u8; 4], Sym>,
    packets: Packets,
    next_id: i64,
    /// Reused for texts created per packet.
    text: String,
}

impl NetTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            kinds: ["receive", "queue", "transmit"].map(|name| symbols.intern(name)),
            interfaces: FxHashSet::default(),
            by_address: FxHashMap::default(),
            packets: Packets::default(),
            next_id: 0,
            text: String::new(),
        }
    }

    /// Processes a network event; returns the packet that arrives with it.
    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) -> Option<Arrival> {
        match event.body {
            Body::Net { .. } => return self.packet(event, here, out),
            Body::NetFault { .. } => self.fault(event, here, out),
            Body::StateNetInterface {
                name,
                ifindex,
                address,
            } => {
                let name = out.intern(name);
                let bytes = address;
                let address = address.map(|address| {
                    self.text.clear();
                    write_address(&mut self.text, NetAddress::V4(address), None);
                    out.symbols.intern(&self.text)
                });
                if self.interfaces.contains(&(name, address)) {
                    return None;
                }
                if self.interfaces.len() == INTERFACES_MAX {
                    out.anomalies.count(&stat::MAP_LIMIT, here.ts);
                    return None;
                }
                if let Some(bytes) = bytes {
                    self.by_address.insert(bytes, name);
                }
                out.sink.emit(NetInterfaceRow {
                    id: self.interfaces.len() as i64,
                    name,
                    ifindex,
                    address,
                });
                self.interfaces.insert((name, address));
            }
            _ => {}
        }
        None
    }

    fn packet<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) -> Option<Arrival> {
        let Body::Net {
            kind,
            netif,
            bytes,
            skbaddr,
            ret,
            headers,
        } = event.body
        else {
            return None;
        };
        let owner = here
            .thread
            .filter(|_| kind != NetKind::Receive && !here.interrupted);
        let [source, destination] = self.ends(headers, out.symbols);
        let protocol = headers.map(|headers| self.protocol(headers.protocol, out.symbols));
        let id = self.next_id;
        self.next_id += 1;
        let tcp_seq = headers.and_then(|headers| headers.tcp_seq).map(i64::from);
        out.sink.emit(NetPacketRow {
            id,
            ts: event.ts,
            kind: self.kinds[kind as usize],
            netif: (!netif.is_empty()).then(|| out.symbols.intern_bytes(netif)),
            bytes: Some(bytes),
            cpu: here.cpu,
            utid: owner.map(|thread| thread.utid),
            upid: owner.and_then(|thread| thread.upid),
            tid: owner.map(|thread| thread.tid),
            pid: owner.and_then(|thread| thread.pid),
            comm: owner.and_then(|thread| thread.comm),
            skbaddr: skbaddr.map(|address| address as i64),
            ret,
            protocol,
            source,
            destination,
            tcp_seq,
            drop_reason: None,
        });
        let marks = Marks {
            protocol,
            source,
            destination,
            tcp_seq,
            is_loopback: netif == b"lo",
        };
        match (kind, skbaddr) {
            (NetKind::Queue, Some(skb)) => {
                self.packets.queued(skb, id, marks, here.cpu);
                None
            }
            (NetKind::Receive, Some(skb)) => Some(self.packets.received(skb, id, marks, here.cpu)),
            (NetKind::Receive, None) => Some(Arrival::Received(id)),
            _ => None,
        }
    }

    fn fault<S: EmitAll>(&mut self, event: &Event<'_>, here: &Here, out: &mut Output<'_, S>) {
        let Body::NetFault {
            kind,
            skbaddr,
            reason,
            ethertype,
            headers,
        } = event.body
        else {
            return;
        };
        let owner = here.thread.filter(|_| !here.interrupted);
        let [source, destination] = self.ends(headers, out.symbols);
        let protocol = match (headers, ethertype) {
            (Some(headers), _) => Some(self.protocol(headers.protocol, out.symbols)),
            (None, Some(ethertype)) => Some(self.frame(ethertype, out.symbols)),
            (None, None) => None,
        };
        let sender = match headers.map(|headers| headers.source) {
            Some(NetAddress::V4(address)) if kind != NetFaultKind::Drop => Some(address),
            _ => None,
        };
        out.sink.emit(NetPacketRow {
            id: self.next_id,
            ts: event.ts,
            kind: out.symbols.intern_static(kind.name()),
            netif: sender.and_then(|address| self.by_address.get(&address).copied()),
            bytes: None,
            cpu: here.cpu,
            utid: owner.map(|thread| thread.utid),
            upid: owner.and_then(|thread| thread.upid),
            tid: owner.map(|thread| thread.tid),
            pid: owner.and_then(|thread| thread.pid),
            comm: owner.and_then(|thread| thread.comm),
            skbaddr: skbaddr.map(|address| address as i64),
            ret: None,
            protocol,
            source,
            destination,
            tcp_seq: headers.and_then(|headers| headers.tcp_seq).map(i64::from),
            drop_reason: reason.and_then(|reason| i32::try_from(reason).ok()),
        });
        self.next_id += 1;
    }

    /// Sender and receiver as text.
    fn ends(&mut self, headers: Option<NetHeaders>, symbols: &mut Symbols) -> [Option<Sym>; 2] {
        let Some(headers) = headers else {
            return [None; 2];
        };
        [
            (headers.source, headers.source_port),
            (headers.destination, headers.destination_port),
        ]
        .map(|(address, port)| {
            self.text.clear();
            write_address(&mut self.text, address, port);
            Some(symbols.intern(&self.text))
        })
    }

    fn frame(&mut self, ethertype: u16, symbols: &mut Symbols) -> Sym {
        let name = match ethertype {
            0x0800 => "ipv4",
            0x0806 => "arp",
            0x86DD => "ipv6",
            _ => {
                self.text.clear();
                write!(self.text, "{ethertype:#06x}").expect("writing to a string cannot fail");
                &self.text
            }
        };
        symbols.intern(name)
    }

    fn protocol(&mut self, number: u8, symbols: &mut Symbols) -> Sym {
        let name = match number {
            1 => "icmp",
            2 => "igmp",
            6 => "tcp",
            17 => "udp",
            58 => "icmp6",
            132 => "sctp",
            _ => {
                self.text.clear();
                write!(self.text, "{number}").expect("writing to a string cannot fail");
                &self.text
            }
        };
        symbols.intern(name)
    }
}

pub(super) fn write_address(text: &mut String, address: NetAddress, port: Option<u16>) {
    match (address, port) {
        (NetAddress::V4(bytes), None) => write!(text, "{}", std::net::Ipv4Addr::from(bytes)),
        (NetAddress::V4(bytes), Some(port)) => {
            write!(text, "{}:{port}", std::net::Ipv4Addr::from(bytes))
        }
        (NetAddress::V6(bytes), None) => write!(text, "{}", std::net::Ipv6Addr::from(bytes)),
        (NetAddress::V6(bytes), Some(port)) => {
            write!(text, "[{}]:{port}", std::net::Ipv6Addr::from(bytes))
        }
    }
    .expect("writing to a string cannot fail");
}
