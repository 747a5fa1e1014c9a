//! When a tracer discarded events because its buffer was full.
//!
//! Goal: the shortest range that contains all of them. The counter in the header of a packet is that
//! of its end, so events were discarded between the end of the packet before and the end of this
//! one. LTTng writes to one packet until an event does not fit, and discards events until there is
//! room for the next packet, with which this one ends. So they are later than the last event that
//! left room for another one of any size. Smaller events may still fit after a large one was
//! discarded; the largest event of the packet is the measure. The few events that LTTng discards for
//! other reasons (larger than a packet, nested too deeply) also count here.

use crate::importers::ctf::packet::Packet;

/// A packet in which the tracer discarded events.
#[derive(Debug)]
pub(super) struct Discarded {
    /// Number of discarded events.
    pub(super) count: u64,
    packet_bits: u64,
    /// Start of the last event, and size of the largest one before it, in bits.
    at: u64,
    largest: u64,
    /// Time at which there was still room.
    pub(super) since: i64,
}

impl Discarded {
    pub(super) fn new(count: u64, packet: &Packet, begin: i64) -> Self {
        Self {
            count,
            packet_bits: packet.total_bytes * 8,
            at: packet.header_bits,
            largest: 0,
            since: begin,
        }
    }

    /// An event starts at this bit of the packet.
    pub(super) fn event(&mut self, at: u64, ts: i64) {
        self.largest = self.largest.max(at.saturating_sub(self.at));
        self.at = at;
        if at + self.largest <= self.packet_bits {
            self.since = self.since.max(ts);
        }
    }
}
