//! Packets at network interfaces, and the interfaces themselves.
//!
//! A packet sent in a thread's own context is the thread's. In an interrupt the running thread is
//! a bystander, and packets are received in no other way that tells for whom: such packets have no
//! owner.

use std::fmt::Write;

use rustc_hash::FxHashSet;
use whyslow_model::event::{Body, Event, NetAddress, NetKind};
use whyslow_model::tables::{EmitAll, NetInterfaceRow, NetPacketRow};
use whyslow_model::{Sym, Symbols, stat};

use super::identity::{Here, Output};

/// Interfaces (and their addresses) of one machine.
const INTERFACES_MAX: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct NetTracker {
    kinds: [Sym; 3],
    interfaces: FxHashSet<(Sym, Option<Sym>)>,
    next_id: i64,
    /// Reused for texts made per packet.
    text: String,
}

impl NetTracker {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            kinds: ["receive", "queue", "transmit"].map(|name| symbols.intern(name)),
            interfaces: FxHashSet::default(),
            next_id: 0,
            text: String::new(),
        }
    }

    pub(super) fn event<S: EmitAll>(
        &mut self,
        event: &Event<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        match event.body {
            Body::Net { .. } => self.packet(event, here, out),
            Body::StateNetInterface {
                name,
                ifindex,
                address,
            } => {
                let name = out.intern(name);
                let address = address.map(|address| {
                    self.text.clear();
                    write_address(&mut self.text, NetAddress::V4(address), None);
                    out.symbols.intern(&self.text)
                });
                if self.interfaces.contains(&(name, address)) {
                    return;
                }
                if self.interfaces.len() == INTERFACES_MAX {
                    out.anomalies.count(&stat::MAP_LIMIT, here.ts);
                    return;
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
    }

    fn packet<S: EmitAll>(&mut self, event: &Event<'_>, here: &Here, out: &mut Output<'_, S>) {
        let Body::Net {
            kind,
            netif,
            bytes,
            skbaddr,
            ret,
            headers,
        } = event.body
        else {
            return;
        };
        let owner = here
            .thread
            .filter(|_| kind != NetKind::Receive && !here.interrupted);
        let [source, destination] = match headers {
            Some(headers) => [
                (headers.source, headers.source_port),
                (headers.destination, headers.destination_port),
            ]
            .map(|(address, port)| {
                self.text.clear();
                write_address(&mut self.text, address, port);
                Some(out.symbols.intern(&self.text))
            }),
            None => [None; 2],
        };
        let protocol = headers.map(|headers| self.protocol(headers.protocol, out.symbols));
        out.sink.emit(NetPacketRow {
            id: self.next_id,
            ts: event.ts,
            kind: self.kinds[kind as usize],
            netif: out.symbols.intern_bytes(netif),
            bytes,
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
            tcp_seq: headers.and_then(|headers| headers.tcp_seq).map(i64::from),
        });
        self.next_id += 1;
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
                write!(self.text, "{number}").expect("a string takes any text");
                &self.text
            }
        };
        symbols.intern(name)
    }
}

fn write_address(text: &mut String, address: NetAddress, port: Option<u16>) {
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
    .expect("a string takes any text");
}
