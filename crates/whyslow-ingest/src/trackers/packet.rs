//! Packets of this machine that arrive on it: over loopback, and between network namespaces.
//!
//! A packet is known by the address of its buffer from the moment it is handed to an interface
//! until it is received. It may be forwarded in between, through bridges and further interfaces,
//! in the interrupt in which it was received: it stays the packet of who sent it first.
//!
//! Most of what is sent leaves the machine. Its buffer is freed without an event, and another
//! packet, from elsewhere, may get it. So what arrives must have the same headers as well; where
//! headers are not recorded, packets are told apart on the loopback interface only, because
//! whatever is sent there arrives.

use rustc_hash::FxHashMap;
use whyslow_model::Sym;

/// Packets under way that are remembered: twice as many at most. Buffers are used again, so there
/// are about as many addresses as there were packets at a time.
const QUEUED_MAX: usize = 1 << 15;

/// What tells packets in one buffer apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) protocol: Option<Sym>,
    pub(super) source: Option<Sym>,
    pub(super) destination: Option<Sym>,
    pub(super) tcp_seq: Option<i64>,
    pub(super) is_loopback: bool,
}

impl Marks {
    fn is_same(&self, other: &Marks) -> bool {
        match (self.source, other.source) {
            (Some(_), Some(_)) => {
                self.source == other.source
                    && self.destination == other.destination
                    && self.protocol == other.protocol
                    && self.tcp_seq == other.tcp_seq
            }
            _ => self.is_loopback && other.is_loopback,
        }
    }

    /// The same packet, though its addresses may have been translated on the way.
    fn goes_on_as(&self, other: &Marks) -> bool {
        let is_segment = self.tcp_seq.is_some() && self.tcp_seq == other.tcp_seq;
        is_segment || self.is_same(other)
    }
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    /// Row of the moment when it was first queued; of one that came from elsewhere none.
    sent: Option<i64>,
    marks: Marks,
}

/// A packet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Sent here; the row of when it was queued.
    Sent(i64),
    /// From elsewhere; the row of when it was received.
    Received(i64),
}

#[derive(Debug, Default)]
pub(super) struct Packets {
    /// By address of the buffer; those that were queued before the last ones go when these are many.
    queued: FxHashMap<u64, Packet>,
    queued_before: FxHashMap<u64, Packet>,
    /// What was received last on each CPU.
    arrived: FxHashMap<i32, (u64, Packet)>,
}

impl Packets {
    /// A packet is handed to an interface, `row` tells of it.
    pub(super) fn queued(&mut self, skb: u64, row: i64, marks: Marks, cpu: Option<i32>) {
        let forwarded = self
            .arrived(skb, cpu)
            .filter(|it| it.marks.goes_on_as(&marks));
        let sent = match forwarded {
            Some(packet) => packet.sent,
            None => Some(row),
        };
        if self.queued.len() >= QUEUED_MAX {
            self.queued_before = std::mem::take(&mut self.queued);
        }
        self.queued.insert(skb, Packet { sent, marks });
    }

    /// A packet is received, `row` tells of it.
    pub(super) fn received(
        &mut self,
        skb: u64,
        row: i64,
        marks: Marks,
        cpu: Option<i32>,
    ) -> Arrival {
        let queued = self.queued.remove(&skb);
        let before = self.queued_before.remove(&skb);
        // A bridge hands it on as received by itself.
        let packet = queued.or(before).or_else(|| self.arrived(skb, cpu));
        let sent = packet
            .filter(|packet| packet.marks.is_same(&marks))
            .and_then(|packet| packet.sent);
        if let Some(cpu) = cpu {
            self.arrived.insert(cpu, (skb, Packet { sent, marks }));
        }
        sent.map_or(Arrival::Received(row), Arrival::Sent)
    }

    fn arrived(&self, skb: u64, cpu: Option<i32>) -> Option<Packet> {
        let (of, packet) = self.arrived.get(&cpu?)?;
        (*of == skb).then_some(*packet)
    }
}
