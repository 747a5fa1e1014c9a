//! The plans of all structures of one trace, and the signature of its packets.

use rustc_hash::FxHashMap;

use super::class::{ByteOrder, IntegerClass};
use super::class::{FieldClass, Role, Scope, StreamClass, StructClass, TraceClass};
use super::compile::{Compiler, Selection};
use super::cycles::CyclesToNs;
use super::header::TwoForms;
use super::locations::{Defined, Locations};
use super::phase::Phase;
use super::plan::{Meaning, Plan, PlanError};
use super::want::{FieldName, Want};

/// First number of a packet, if its header has one.
pub(super) const PACKET_MAGIC: u32 = 0xC1FC_1FC1;
const PACKET_MAGIC_BYTES: usize = 4;
/// Event ids up to this are looked up in a table, others in a map.
const DENSE_IDS_MAX: u64 = 1 << 16;
const NO_CLASS: u32 = u32::MAX;

/// How to read the packets of one trace.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) packet_header: Option<Plan>,
    /// Initial bytes of every packet: the magic, and the uuid if it follows.
    pub(super) signature: Vec<u8>,
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) streams: Vec<StreamSchema>,
    locations: Locations,
    by_id: FxHashMap<u64, usize>,
}

/// How to read the packets and event headers of one stream class.
#[derive(Debug)]
pub(super) struct StreamSchema {
    pub(super) packet_context: Option<Plan>,
    pub(super) event_header: Option<Plan>,
    /// Faster decoding of the header, if it is LTTng's.
    pub(super) two_forms: Option<TwoForms>,
    pub(super) clock: Option<CyclesToNs>,
    /// Sizes of the fields that may wrap around.
    pub(super) begin_bits: u32,
    pub(super) discarded_bits: u32,
    /// Class of the events if their header has no id.
    pub(super) default_id: u64,
    classes: IdTable,
    body: BodyStart,
}

impl Schema {
    /// `first_class` is the index of the trace's first event class among those of all traces.
    pub(super) fn new(trace: &TraceClass, first_class: usize) -> Result<Schema, PlanError> {
        let locations = Locations::of(trace);
        let (packet_header, phase, defined) = packet_part(
            &locations,
            (Scope::PacketHeader, trace.packet_header.as_ref()),
            Phase::PACKET_BEGIN,
            Defined::default(),
        )?;
        let mut streams = Vec::with_capacity(trace.streams.len());
        let mut by_id = FxHashMap::default();
        let mut next_class = first_class;
        for stream in &trace.streams {
            let context = (Scope::PacketContext, stream.packet_context.as_ref());
            let (packet_context, _, defined) =
                packet_part(&locations, context, phase, defined.clone())?;
            let (event_header, body) = event_header(&locations, stream, defined)?;
            let default_id = match (&event_header, stream.events.as_slice()) {
                (Some(plan), _) if has_class_id(plan) => 0,
                (_, [event]) => event.id,
                _ => 0,
            };
            let classes = IdTable::new(stream.events.iter().map(|event| event.id), next_class);
            next_class += stream.events.len();
            by_id.entry(stream.id).or_insert(streams.len());
            streams.push(StreamSchema {
                packet_context,
                event_header,
                two_forms: TwoForms::of(stream),
                clock: stream
                    .clock
                    .map(|clock| CyclesToNs::new(&trace.clocks[clock])),
                begin_bits: role_bits(stream.packet_context.as_ref(), Role::Timestamp),
                discarded_bits: role_bits(stream.packet_context.as_ref(), Role::DiscardedEvents),
                default_id,
                classes,
                body,
            });
        }
        let signature = signature(trace);
        let uuid = trace.uuid;
        Ok(Schema {
            packet_header,
            signature,
            uuid,
            streams,
            locations,
            by_id,
        })
    }

    /// How to decode the events of one class.
    pub(super) fn plan(
        &self,
        trace: &TraceClass,
        place: (usize, usize),
        want: &Want,
    ) -> Result<Plan, PlanError> {
        let selection = match want {
            Want::Nothing => Selection::Nothing,
            Want::Fields(fields) => Selection::Fields(fields),
            Want::Everything => Selection::Everything,
        };
        self.compile(trace, place, selection)
    }

    /// Names of the slots if everything is requested.
    pub(super) fn field_names(
        &self,
        trace: &TraceClass,
        place: (usize, usize),
    ) -> Result<Vec<FieldName>, PlanError> {
        let plan = self.compile(trace, place, Selection::EverythingNamed)?;
        Ok(plan.names)
    }

    fn compile(
        &self,
        trace: &TraceClass,
        (stream, event): (usize, usize),
        selection: Selection<'_>,
    ) -> Result<Plan, PlanError> {
        let body = &self.streams[stream].body;
        let mut compiler =
            Compiler::new(&self.locations, body.defined.clone(), body.phase, selection);
        let stream = &trace.streams[stream];
        let event = &stream.events[event];
        let structures = [
            (Scope::EventContext, &stream.event_context),
            (Scope::SpecificContext, &event.context),
            (Scope::Payload, &event.payload),
        ];
        for (scope, structure) in structures {
            if let Some(structure) = structure {
                compiler.add(scope, structure)?;
            }
        }
        let (plan, _, _) = compiler.finish();
        Ok(plan)
    }

    /// Replaces the uuid of the metadata.
    pub(super) fn adopt_uuid(&mut self, uuid: [u8; 16]) {
        self.uuid = Some(uuid);
        if let Some(place) = self.signature.get_mut(PACKET_MAGIC_BYTES..) {
            place.copy_from_slice(&uuid[..place.len()]);
        }
    }

    pub(super) fn locations(&self) -> &Locations {
        &self.locations
    }

    pub(super) fn registers(&self) -> usize {
        self.locations.len()
    }

    /// The stream class with this id; without an id the only one.
    pub(super) fn stream(&self, id: Option<u64>) -> Option<usize> {
        match id {
            Some(id) => self.by_id.get(&id).copied(),
            None if self.streams.len() == 1 => Some(0),
            None => self.by_id.get(&0).copied(),
        }
    }
}

impl StreamSchema {
    /// Index of the class among those of all traces.
    #[inline]
    pub(super) fn class(&self, id: u64) -> Option<usize> {
        self.classes.get(id)
    }
}

/// Event classes of a stream by id.
#[derive(Debug)]
struct IdTable {
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
}

impl IdTable {
    fn new(ids: impl Iterator<Item = u64>, first_class: usize) -> IdTable {
        let mut table = IdTable {
            dense: Vec::new(),
            sparse: FxHashMap::default(),
        };
        for (index, id) in ids.enumerate() {
            let class = (first_class + index) as u32;
            if id < DENSE_IDS_MAX {
                let id = id as usize;
                if table.dense.len() <= id {
                    table.dense.resize(id + 1, NO_CLASS);
                }
                table.dense[id] = class;
            } else {
                table.sparse.insert(id, class);
            }
        }
        table
    }

    #[inline]
    fn get(&self, id: u64) -> Option<usize> {
        let class = if id < self.dense.len() as u64 {
            self.dense[id as usize]
        } else {
            *self.sparse.get(&id)?
        };
        (class != NO_CLASS).then_some(class as usize)
    }
}

/// State of the compiler at the start of an event's contexts and payload.
#[derive(Debug)]
struct BodyStart {
    phase: Phase,
    defined: Defined,
}

fn packet_part(
    locations: &Locations,
    (scope, structure): (Scope, Option<&StructClass>),
    phase: Phase,
    defined: Defined,
) -> Result<(Option<Plan>, Phase, Defined), PlanError> {
    let Some(structure) = structure else {
        return Ok((None, phase, defined));
    };
    let mut compiler = Compiler::new(locations, defined, phase, Selection::Roles);
    compiler.add(scope, structure)?;
    let (plan, phase, defined) = compiler.finish();
    Ok((Some(plan), phase, defined))
}

fn event_header(
    locations: &Locations,
    stream: &StreamClass,
    defined: Defined,
) -> Result<(Option<Plan>, BodyStart), PlanError> {
    let Some(structure) = &stream.event_header else {
        return Ok((
            None,
            BodyStart {
                phase: Phase::ANYWHERE,
                defined,
            },
        ));
    };
    let mut compiler = Compiler::new(locations, defined, Phase::ANYWHERE, Selection::Nothing);
    compiler.add(Scope::EventHeader, structure)?;
    let (plan, phase, defined) = compiler.finish();
    Ok((Some(plan), BodyStart { phase, defined }))
}

fn has_class_id(header: &Plan) -> bool {
    header
        .also
        .iter()
        .any(|also| also.meaning == Meaning::EventClassId)
}

/// Size of the member with this role; 64 if there is none.
fn role_bits(structure: Option<&StructClass>, role: Role) -> u32 {
    let members = structure
        .map(|structure| structure.members.as_slice())
        .unwrap_or_default();
    members
        .iter()
        .find_map(|member| match &member.class {
            FieldClass::Integer(class) if class.roles.contains(&role) => Some(class.bits.min(64)),
            _ => None,
        })
        .unwrap_or(64)
}

/// Initial bytes of every packet of the trace, if known.
fn signature(trace: &TraceClass) -> Vec<u8> {
    let members = trace
        .packet_header
        .as_ref()
        .map(|header| header.members.as_slice());
    let mut members = members.unwrap_or_default().iter();
    let mut signature = match members.next().map(|member| &member.class) {
        Some(FieldClass::Integer(IntegerClass {
            bits: 32,
            byte_order,
            roles,
            ..
        })) if roles.contains(&Role::PacketMagic) => match byte_order {
            ByteOrder::Little => PACKET_MAGIC.to_le_bytes().to_vec(),
            ByteOrder::Big => PACKET_MAGIC.to_be_bytes().to_vec(),
        },
        _ => return Vec::new(),
    };
    if let Some(FieldClass::StaticBlob { bytes: 16, roles }) = members.next().map(|m| &m.class)
        && roles.contains(&Role::MetadataUuid)
        && let Some(uuid) = trace.uuid
    {
        signature.extend(uuid);
    }
    signature
}
