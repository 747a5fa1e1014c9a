//! Writes packets, with interned names.

use std::io::Write;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use rustc_hash::FxHashMap;

use super::proto::{InternedData, Named, TracePacket, TrackEvent};
use crate::ExportError;

/// All packets with names belong to one sequence.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

pub(super) struct Writer<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    categories: Names,
    names: Names,
    keys: Names,
    values: Names,
    new: InternedData,
    has_begun: bool,
}

#[derive(Default)]
struct Names(FxHashMap<String, u64>);

impl Names {
    /// The id of a name, and whether it is new.
    fn place(&mut self, name: &str) -> (u64, bool) {
        if let Some(place) = self.0.get(name) {
            return (*place, false);
        }
        let place = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), place);
        (place, true)
    }
}

fn intern(list: &mut Vec<Named>, names: &mut Names, name: &str) -> u64 {
    let (iid, is_new) = names.place(name);
    if is_new {
        list.push(Named {
            iid: Some(iid),
            name: Some(name.to_owned()),
        });
    }
    iid
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            categories: Names::default(),
            names: Names::default(),
            keys: Names::default(),
            values: Names::default(),
            new: InternedData::default(),
            has_begun: false,
        }
    }

    pub(super) fn category(&mut self, name: &str) -> u64 {
        intern(&mut self.new.event_categories, &mut self.categories, name)
    }

    pub(super) fn name(&mut self, name: &str) -> u64 {
        intern(&mut self.new.event_names, &mut self.names, name)
    }

    pub(super) fn key(&mut self, name: &str) -> u64 {
        intern(&mut self.new.debug_annotation_names, &mut self.keys, name)
    }

    pub(super) fn value(&mut self, text: &str) -> u64 {
        let list = &mut self.new.debug_annotation_string_values;
        intern(list, &mut self.values, text)
    }

    pub(super) fn packet(&mut self, packet: &TracePacket) -> Result<(), ExportError> {
        self.buffer.clear();
        encode_key(1, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(packet.encoded_len() as u64, &mut self.buffer);
        packet.encode_raw(&mut self.buffer);
        Ok(self.out.write_all(&self.buffer)?)
    }

    /// An event of the sequence, with the names that are new since the previous one.
    pub(super) fn event(&mut self, timestamp: i64, event: TrackEvent) -> Result<(), ExportError> {
        let new = std::mem::take(&mut self.new);
        let flags = if self.has_begun {
            NEEDS_STATE
        } else {
            STATE_CLEARED | NEEDS_STATE
        };
        self.has_begun = true;
        self.packet(&TracePacket {
            timestamp: Some(timestamp as u64),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(flags),
            interned_data: (!new.is_empty()).then_some(new),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }
}
