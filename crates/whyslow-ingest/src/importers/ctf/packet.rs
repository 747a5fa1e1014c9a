//! Header and context of a packet.
//!
//! A packet is `header context event* padding`. The header identifies the trace (magic, uuid) and
//! the stream; the context contains the sizes in bits, the times, and the counters that reveal
//! losses. All of it is optional in CTF, and a file without any is one packet.

use super::class::Role;
use super::decode::{Cursor, Output, Stop, decode};
use super::plan::{ROLE_SLOTS, role_slot};
use super::schema::{PACKET_MAGIC, Schema};
use super::slot::{Slot, SlotKind};
use super::window::Window;

const UUID_SLOT: usize = role_slot(Role::MetadataUuid) as usize;

/// One packet of a stream file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    /// Offset in the file.
    pub(super) begin: u64,
    /// Up to the next packet; at most to the end of the file.
    pub(super) total_bytes: u64,
    /// Bits from the packet's start to the end of its last event; within `total_bytes`.
    pub(super) content_bits: u64,
    /// Bits from the packet's start to its first event.
    pub(super) header_bits: u64,
    /// Index into [`Schema::streams`].
    pub(super) stream_class: usize,
    pub(super) stream_id: Option<u64>,
    pub(super) cpu: Option<i32>,
    pub(super) begin_cycles: Option<u64>,
    pub(super) end_cycles: Option<u64>,
    pub(super) discarded: Option<u64>,
    pub(super) sequence: Option<u64>,
    /// The size in the header exceeds the file.
    pub(super) is_truncated: bool,
}

/// Reason why an expected packet is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PacketFault {
    #[error("the file ends inside the packet's header")]
    Short,
    #[error("no packet starts here")]
    Magic,
    #[error("a packet of another trace")]
    Foreign([u8; 16]),
    #[error("stream class {0:?} is not declared")]
    StreamClass(Option<u64>),
    /// Zero, smaller than the header, or a content larger than the packet.
    #[error("invalid sizes: {content_bits} bits of content in {total_bits}")]
    Sizes { total_bits: u64, content_bits: u64 },
    /// An invalid variant or sequence in the header.
    #[error("invalid structure")]
    Structure,
}

/// Reads the packet at the start of the window.
pub(super) fn read_packet(
    schema: &Schema,
    window: &Window,
    file_bytes: u64,
    cursor: &mut Cursor,
    output: &mut Output,
) -> Result<Packet, PacketFault> {
    cursor.at = 0;
    cursor.end = window.len() * 8;
    cursor.registers.resize(schema.registers(), 0);
    let mut roles = Roles::default();
    if let Some(plan) = &schema.packet_header {
        output.reserve(plan);
        decode(plan, window.bytes(), cursor, output)?;
        roles.take(&output.slots);
    }
    if roles
        .get(Role::PacketMagic)
        .is_some_and(|magic| magic != u64::from(PACKET_MAGIC))
    {
        return Err(PacketFault::Magic);
    }
    if schema.packet_header.is_some()
        && let Some(expected) = schema.uuid
        && let Some(slot) = output.slots.get(UUID_SLOT)
        && (slot.kind, slot.len) == (SlotKind::Bytes, 16)
        && let Some(uuid) = window.bytes()[slot.bits as usize..].first_chunk()
        && *uuid != expected
    {
        return Err(PacketFault::Foreign(*uuid));
    }
    let class_id = roles.get(Role::StreamClassId);
    let stream_class = schema
        .stream(class_id)
        .ok_or(PacketFault::StreamClass(class_id))?;
    if let Some(plan) = &schema.streams[stream_class].packet_context {
        output.reserve(plan);
        decode(plan, window.bytes(), cursor, output)?;
        roles.take(&output.slots);
    }
    packet(
        stream_class,
        &roles,
        window.begin(),
        file_bytes,
        cursor.at as u64,
    )
}

fn packet(
    stream_class: usize,
    roles: &Roles,
    begin: u64,
    file_bytes: u64,
    header_bits: u64,
) -> Result<Packet, PacketFault> {
    let rest_bits = (file_bytes - begin) * 8;
    let total = roles.get(Role::PacketTotalLength);
    let content = roles.get(Role::PacketContentLength);
    let total_bits = total
        .or(content.map(|bits| bits.next_multiple_of(8)))
        .unwrap_or(rest_bits);
    let content_bits = content.unwrap_or(total_bits);
    let is_possible = total_bits > 0
        && total_bits.is_multiple_of(8)
        && content_bits <= total_bits
        && content_bits >= header_bits;
    if !is_possible {
        return Err(PacketFault::Sizes {
            total_bits,
            content_bits,
        });
    }
    Ok(Packet {
        begin,
        total_bytes: total_bits.min(rest_bits) / 8,
        content_bits: content_bits.min(rest_bits),
        header_bits,
        stream_class,
        stream_id: roles.get(Role::StreamId),
        cpu: roles
            .get(Role::CpuId)
            .and_then(|cpu| i32::try_from(cpu).ok()),
        begin_cycles: roles.get(Role::Timestamp),
        end_cycles: roles.get(Role::PacketEndTimestamp),
        discarded: roles.get(Role::DiscardedEvents),
        sequence: roles.get(Role::PacketSequenceNumber),
        is_truncated: total_bits > rest_bits,
    })
}

/// Numbers by role; the context may supplement the header.
#[derive(Default)]
struct Roles([Option<u64>; ROLE_SLOTS]);

impl Roles {
    fn take(&mut self, slots: &[Slot]) {
        for (role, slot) in self.0.iter_mut().zip(slots) {
            *role = slot.integer().or(*role);
        }
    }

    fn get(&self, role: Role) -> Option<u64> {
        self.0[role_slot(role) as usize]
    }
}

impl From<Stop> for PacketFault {
    fn from(stop: Stop) -> PacketFault {
        match stop {
            Stop::Short => PacketFault::Short,
            Stop::Invalid => PacketFault::Structure,
        }
    }
}
