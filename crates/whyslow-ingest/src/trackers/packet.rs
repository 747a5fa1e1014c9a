//! Local packets, which are sent and received on this machine: over loopback, and between network
//! namespaces.
//!
//! A packet is identified by the address of its buffer from the time it is passed to an interface
//! until it is received. It may be forwarded in between, through bridges and further interfaces, in
//! the interrupt in which it was received: it remains the packet of its original sender.
//!
//! Most sent packets leave the machine. Their buffers are freed without an event, and may be reused
//! for packets from elsewhere. So an arriving packet must also have the same headers. If headers
//! are not recorded, packets are matched only on the loopback interface, where everything that is
//! sent arrives.

use rustc_hash::FxHashMap;
use whyslow_model::Sym;

/// Packets in flight that are remembered; at most twice this number. Buffers are reused, so there
/// are about as many addresses as packets at a time.
const QUEUED_MAX: usize = 1 << 15;

/// Distinguishes packets in the same buffer.
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

    /// The same packet, though its addresses may have been translated.
    fn goes_on_as(&self, other: &Marks) -> bool {
        let is_segment = self.tcp_seq.is_some() && self.tcp_seq == other.tcp_seq;
        is_segment || self.is_same(other)
    }
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    /// Row of its first queueing; `None` for a packet from elsewhere.
    sent: Option<i64>,
    marks: Marks,
}

/// A packet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Sent by this machine; the row of its queueing.
    Sent(i64),
    /// Sent from elsewhere; the row of its reception.
    Received(i64),
}

#[derive(Debug, Default)]
pub(super) struct Packets {
    /// By buffer address; entries older than the last ones are dropped when there are too many.
    queued: FxHashMap<u64, Packet>,
    queued_before: FxHashMap<u64, Packet>,
    /// Last packet received on each CPU.
    arrived: FxHashMap<i32, (u64, Packet)>,
}

impl Packets {
    /// A packet is passed to an interface; `row` is its row.
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

    /// A packet is received; `row` is its row.
    pub(super) fn received(
        &mut self,
        skb: u64,
        row: i64,
        marks: Marks,
        cpu: Option<i32>,
    ) -> Arrival {
        let queued = self.queued.remove(&skb);
        let before = self.queued_before.remove(&skb);
        // A bridge passes it on as received by itself.
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
