//! One event as delivered to the consumer.

use super::class::Scope;
use super::render::Walk;
use super::slot::{Slot, SlotKind};
use super::stream::{Plans, StreamReader};
use crate::importers::tracepoint::value::Value;

/// One decoded event; borrowed from the reader until the consumer returns.
#[derive(Clone, Copy)]
pub struct DecodedEvent<'a> {
    /// Nanoseconds since the epoch, by the stream's clock; 0 if the stream has no clock.
    pub ts: i64,
    /// `cpu_id` of the packet.
    pub cpu: Option<i32>,
    /// Index of the event's class, see [`super::consumer::ClassRef::index`].
    pub class: usize,
    /// Index into [`super::reader::CtfReader::traces`].
    pub trace: usize,
    /// Index into [`super::reader::CtfReader::streams`].
    pub stream: usize,
    /// Offset of the event in the stream's file.
    pub offset: u64,
    pub(super) slots: &'a [Slot],
    pub(super) window: &'a [u8],
    pub(super) columns: &'a [Vec<u64>],
    pub(super) reader: &'a StreamReader,
    pub(super) plans: &'a Plans<'a>,
    /// Bit offset of the event's contexts in the window.
    pub(super) body: usize,
}

impl<'a> DecodedEvent<'a> {
    /// The n-th requested field; absent if there is no such slot.
    #[inline]
    pub fn value(&self, slot: usize) -> Value<'a> {
        let Some(slot) = self.slots.get(slot) else {
            return Value::Absent;
        };
        match slot.kind {
            SlotKind::Absent => Value::Absent,
            SlotKind::Unsigned => Value::Unsigned(slot.bits),
            SlotKind::Signed => Value::Signed(slot.bits as i64),
            SlotKind::Float => Value::Float(f64::from_bits(slot.bits)),
            SlotKind::Str => Value::Str(self.bytes(slot)),
            SlotKind::Bytes => Value::Bytes(self.bytes(slot)),
            SlotKind::Ints => Value::Ints(&self.columns[slot.bits as usize]),
        }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the consumer requested the event without fields.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All slots in order.
    pub fn values(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let event = *self;
        (0..self.slots.len()).map(move |slot| event.value(slot))
    }

    /// Name of the event's class.
    pub fn name(&self) -> &'a str {
        let (trace, stream, event) = self.plans.places[self.class];
        &self.plans.traces[trace].class.streams[stream].events[event].name
    }

    /// Appends the fields of a context or the payload as text: `name = value, …`.
    ///
    /// Slow, and independent of the requested fields. False if the event has no such structure.
    pub fn render(&self, scope: Scope, out: &mut String) -> bool {
        let (trace, stream, event) = self.plans.places[self.class];
        let stream = &self.plans.traces[trace].class.streams[stream];
        let event = &stream.events[event];
        let structures = [
            (Scope::EventContext, &stream.event_context),
            (Scope::SpecificContext, &event.context),
            (Scope::Payload, &event.payload),
        ];
        let mut walk = Walk {
            window: self.window,
            at: self.body,
            end: self.reader.end(),
            locations: self.plans.schemas[trace].locations(),
            registers: self.reader.registers().to_vec(),
            scope,
            path: Vec::new(),
        };
        let mut unwanted = String::new();
        for (place, structure) in structures {
            let Some(structure) = structure else { continue };
            walk.scope = place;
            if place == scope {
                return walk.members(structure, out).is_some();
            }
            unwanted.clear();
            if walk.members(structure, &mut unwanted).is_none() {
                return false;
            }
        }
        false
    }

    fn bytes(&self, slot: &Slot) -> &'a [u8] {
        let begin = slot.bits as usize;
        &self.window[begin..begin + slot.len as usize]
    }
}
