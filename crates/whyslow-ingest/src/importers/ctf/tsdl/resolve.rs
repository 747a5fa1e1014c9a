//! Combines the blocks of a TSDL text.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::stat::{METADATA_DAMAGED, METADATA_UNKNOWN};

use super::super::class::{
    ByteOrder, ClockClass, EnvironmentValue, EventClass, Scope, StreamClass, StructClass,
    TraceClass, Version,
};
use super::super::metadata::{Fault, FieldBudget, Notes, parse_uuid};
use super::attributes::{bad_value, byte_order, truth};
use super::bind::Binder;
use super::roles::{self, DEFAULT_FREQUENCY};
use super::syntax::{Attribute, Block, BlockKind, Type, Value};

pub(super) fn resolve(blocks: &[Block<'_>], notes: &mut Notes) -> Result<TraceClass, Fault> {
    let Some(trace_block) = blocks.iter().find(|block| block.kind == BlockKind::Trace) else {
        return Err(Fault::new(0, "missing `trace` block"));
    };
    let budget = FieldBudget::default();
    let attributes = TraceAttributes::read(trace_block, notes)?;
    let mut resolver = Resolver {
        trace: TraceClass {
            version: Version::V1,
            uuid: attributes.uuid,
            byte_order: attributes.byte_order,
            name: None,
            packet_header: None,
            environment: Vec::new(),
            clocks: Vec::new(),
            streams: Vec::new(),
        },
        stream_by_id: FxHashMap::default(),
        event_ids: FxHashSet::default(),
        budget: &budget,
        notes,
    };
    resolver.clocks_and_environment(blocks)?;
    if let Some(class) = attributes.packet_header {
        resolver.packet_header(class)?;
    }
    for block in blocks.iter().filter(|b| b.kind == BlockKind::Stream) {
        resolver.stream(block)?;
    }
    for block in blocks.iter().filter(|b| b.kind == BlockKind::Event) {
        if let Err(fault) = resolver.event(block) {
            resolver.notes.add(&METADATA_DAMAGED, fault);
        }
    }
    Ok(resolver.trace)
}

struct TraceAttributes<'b> {
    uuid: Option<[u8; 16]>,
    byte_order: ByteOrder,
    packet_header: Option<&'b Type<'b>>,
}

impl TraceAttributes<'_> {
    fn read<'b>(block: &'b Block<'b>, notes: &mut Notes) -> Result<TraceAttributes<'b>, Fault> {
        let mut uuid = None;
        let mut order = None;
        let mut packet_header = None;
        for attribute in &block.attributes {
            let at = attribute.offset;
            match (attribute.name.as_ref(), &attribute.value) {
                ("major", Value::Integer(1)) | ("minor", Value::Integer(_)) => {}
                ("uuid", Value::Text(text)) => uuid = Some(read_uuid(text, at)?),
                ("byte_order", Value::Word(word)) => order = byte_order(word, at)?,
                ("packet.header", Value::Type(class)) => packet_header = Some(class),
                ("major" | "minor" | "uuid" | "byte_order" | "packet.header", value) => {
                    return Err(bad_value(&attribute.name, value, at));
                }
                _ => note_unknown("trace", attribute, notes),
            }
        }
        let Some(byte_order) = order else {
            let what = "a `trace` block without a `byte_order` of `le` or `be`";
            return Err(Fault::new(block.offset, what));
        };
        Ok(TraceAttributes {
            uuid,
            byte_order,
            packet_header,
        })
    }
}

struct Resolver<'r> {
    trace: TraceClass,
    stream_by_id: FxHashMap<u64, usize>,
    /// (index of the stream, id) of the events so far.
    event_ids: FxHashSet<(usize, u64)>,
    budget: &'r FieldBudget,
    notes: &'r mut Notes,
}

impl Resolver<'_> {
    fn clocks_and_environment(&mut self, blocks: &[Block<'_>]) -> Result<(), Fault> {
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
        let mut traces = 0;
        for block in blocks {
            match block.kind {
                BlockKind::Trace => {
                    traces += 1;
                    if traces == 2 {
                        let fault = Fault::new(block.offset, "duplicate `trace` block");
                        self.notes.add(&METADATA_DAMAGED, fault);
                    }
                }
                BlockKind::Clock => {
                    let clock = read_clock(block, self.notes)?;
                    self.trace.clocks.push(clock);
                }
                BlockKind::Environment => {
                    for attribute in &block.attributes {
                        let Some(value) = environment_value(&attribute.value) else {
                            note_unknown("env", attribute, self.notes);
                            continue;
                        };
                        let environment = &mut self.trace.environment;
                        if let Some(&place) = places.get(attribute.name.as_ref()) {
                            environment[place].1 = value;
                        } else {
                            places.insert(&attribute.name, environment.len());
                            environment.push((attribute.name.clone().into_owned(), value));
                        }
                    }
                }
                BlockKind::Stream | BlockKind::Event => {}
            }
        }
        Ok(())
    }

    fn packet_header(&mut self, class: &Type<'_>) -> Result<(), Fault> {
        let order = self.trace.byte_order;
        let mut binder = Binder::new(order, &self.trace.clocks, self.budget);
        let mut header = binder.scope(Scope::PacketHeader, class)?;
        roles::mark_packet_header(&mut header);
        self.trace.packet_header = Some(header);
        Ok(())
    }

    fn stream(&mut self, block: &Block<'_>) -> Result<(), Fault> {
        let attributes = StreamAttributes::read(block, self.notes)?;
        let id = attributes.id;
        if self.stream_by_id.contains_key(&id) {
            let fault = Fault::new(block.offset, format!("duplicate stream {id}"));
            self.notes.add(&METADATA_DAMAGED, fault);
            return Ok(());
        }
        let order = self.trace.byte_order;
        let mut binder = Binder::new(order, &self.trace.clocks, self.budget);
        let header = self.trace.packet_header.as_ref();
        binder.lookup.set_finished(Scope::PacketHeader, header);
        let packet_context = bind(&mut binder, Scope::PacketContext, attributes.packet_context)?;
        let finished = packet_context.as_ref();
        binder.lookup.set_finished(Scope::PacketContext, finished);
        let event_header = bind(&mut binder, Scope::EventHeader, attributes.event_header)?;
        let finished = event_header.as_ref();
        binder.lookup.set_finished(Scope::EventHeader, finished);
        let event_context = bind(&mut binder, Scope::EventContext, attributes.event_context)?;
        let mut stream = StreamClass {
            id,
            packet_context,
            event_header,
            event_context,
            ..empty_stream(id)
        };
        self.give_meaning(&mut stream, block.offset)?;
        self.add_stream(stream);
        Ok(())
    }

    fn give_meaning(&mut self, stream: &mut StreamClass, offset: usize) -> Result<(), Fault> {
        if let Some(context) = &mut stream.packet_context {
            roles::mark_packet_context(context);
        }
        if let Some(header) = &mut stream.event_header {
            roles::mark_event_header(header);
        }
        let timed = [stream.event_header.as_mut(), stream.packet_context.as_mut()];
        stream.clock = roles::assign_clock(timed, &mut self.trace.clocks)
            .map_err(|what| Fault::new(offset, what))?;
        Ok(())
    }

    fn add_stream(&mut self, stream: StreamClass) -> usize {
        let index = self.trace.streams.len();
        self.stream_by_id.insert(stream.id, index);
        self.trace.streams.push(stream);
        index
    }

    fn event(&mut self, block: &Block<'_>) -> Result<(), Fault> {
        let attributes = EventAttributes::read(block, self.notes)?;
        let index = self.stream_of_event(attributes.stream_id, block.offset)?;
        let key = (index, attributes.id);
        if self.event_ids.contains(&key) {
            let what = format!("duplicate event {} `{}`", attributes.id, attributes.name);
            return Err(Fault::new(block.offset, what));
        }
        let stream = &self.trace.streams[index];
        let order = self.trace.byte_order;
        let mut binder = Binder::new(order, &self.trace.clocks, self.budget);
        let before = [
            (Scope::PacketHeader, self.trace.packet_header.as_ref()),
            (Scope::PacketContext, stream.packet_context.as_ref()),
            (Scope::EventHeader, stream.event_header.as_ref()),
            (Scope::EventContext, stream.event_context.as_ref()),
        ];
        for (scope, class) in before {
            binder.lookup.set_finished(scope, class);
        }
        let context = bind(&mut binder, Scope::SpecificContext, attributes.context)?;
        let finished = context.as_ref();
        binder.lookup.set_finished(Scope::SpecificContext, finished);
        let payload = bind(&mut binder, Scope::Payload, attributes.fields)?;
        let event = EventClass {
            id: attributes.id,
            name: attributes.name,
            log_level: attributes.log_level,
            emf_uri: attributes.emf_uri,
            context,
            payload,
        };
        self.event_ids.insert(key);
        self.trace.streams[index].events.push(event);
        Ok(())
    }

    /// An event need not name its stream if there is only one, or none was declared.
    fn stream_of_event(&mut self, id: Option<u64>, offset: usize) -> Result<usize, Fault> {
        let streams = self.trace.streams.len();
        match id {
            None if streams == 1 => Ok(0),
            None if streams > 1 => Err(Fault::new(offset, "an event without `stream_id`")),
            id => {
                let id = id.unwrap_or(0);
                match self.stream_by_id.get(&id) {
                    Some(&index) => Ok(index),
                    None if streams == 0 => Ok(self.add_stream(empty_stream(id))),
                    None => Err(Fault::new(
                        offset,
                        format!("an event of unknown stream {id}"),
                    )),
                }
            }
        }
    }
}

fn empty_stream(id: u64) -> StreamClass {
    StreamClass {
        id,
        name: None,
        clock: None,
        packet_context: None,
        event_header: None,
        event_context: None,
        events: Vec::new(),
    }
}

fn bind(
    binder: &mut Binder<'_>,
    scope: Scope,
    class: Option<&Type<'_>>,
) -> Result<Option<StructClass>, Fault> {
    class.map(|class| binder.scope(scope, class)).transpose()
}

#[derive(Default)]
struct StreamAttributes<'b> {
    id: u64,
    packet_context: Option<&'b Type<'b>>,
    event_header: Option<&'b Type<'b>>,
    event_context: Option<&'b Type<'b>>,
}

impl StreamAttributes<'_> {
    fn read<'b>(block: &'b Block<'b>, notes: &mut Notes) -> Result<StreamAttributes<'b>, Fault> {
        let mut stream = StreamAttributes::default();
        for attribute in &block.attributes {
            match (attribute.name.as_ref(), &attribute.value) {
                ("id", value) => stream.id = read_id("id", value, attribute.offset)?,
                ("packet.context", Value::Type(class)) => stream.packet_context = Some(class),
                ("event.header", Value::Type(class)) => stream.event_header = Some(class),
                ("event.context", Value::Type(class)) => stream.event_context = Some(class),
                _ => note_unknown("stream", attribute, notes),
            }
        }
        Ok(stream)
    }
}

#[derive(Default)]
struct EventAttributes<'b> {
    id: u64,
    name: String,
    stream_id: Option<u64>,
    log_level: Option<i64>,
    emf_uri: Option<String>,
    context: Option<&'b Type<'b>>,
    fields: Option<&'b Type<'b>>,
}

impl EventAttributes<'_> {
    fn read<'b>(block: &'b Block<'b>, notes: &mut Notes) -> Result<EventAttributes<'b>, Fault> {
        let mut event = EventAttributes::default();
        for attribute in &block.attributes {
            let at = attribute.offset;
            match (attribute.name.as_ref(), &attribute.value) {
                ("name", Value::Text(name) | Value::Word(name)) => {
                    event.name = name.clone().into_owned();
                }
                ("id", value) => event.id = read_id("id", value, at)?,
                ("stream_id", value) => event.stream_id = Some(read_id("stream_id", value, at)?),
                ("context", Value::Type(class)) => event.context = Some(class),
                ("fields", Value::Type(class)) => event.fields = Some(class),
                ("loglevel", Value::Integer(level)) => {
                    event.log_level = i64::try_from(*level).ok();
                }
                ("model.emf.uri", Value::Text(uri)) => {
                    event.emf_uri = Some(uri.clone().into_owned());
                }
                _ => note_unknown("event", attribute, notes),
            }
        }
        Ok(event)
    }
}

fn read_clock(block: &Block<'_>, notes: &mut Notes) -> Result<ClockClass, Fault> {
    let mut clock = ClockClass {
        name: String::new(),
        uuid: None,
        description: None,
        frequency: DEFAULT_FREQUENCY,
        offset_seconds: 0,
        offset_cycles: 0,
        precision: None,
        absolute: false,
    };
    for attribute in &block.attributes {
        let at = attribute.offset;
        let signed = |value: i128| {
            i64::try_from(value).map_err(|_| bad_value(&attribute.name, &attribute.value, at))
        };
        match (attribute.name.as_ref(), &attribute.value) {
            ("name", Value::Text(name) | Value::Word(name)) => {
                clock.name = name.clone().into_owned();
            }
            ("uuid", Value::Text(text)) => clock.uuid = Some(read_uuid(text, at)?),
            ("description", Value::Text(text)) => {
                clock.description = Some(text.clone().into_owned());
            }
            ("freq", Value::Integer(frequency @ 1..=U64_MAX)) => {
                clock.frequency = *frequency as u64;
            }
            ("offset_s", Value::Integer(offset)) => clock.offset_seconds = signed(*offset)?,
            ("offset", Value::Integer(offset)) => clock.offset_cycles = signed(*offset)?,
            ("precision", Value::Integer(cycles @ 0..=U64_MAX)) => {
                clock.precision = Some(*cycles as u64);
            }
            ("absolute", value) => clock.absolute = truth(value, at)?,
            ("freq" | "offset_s" | "offset" | "precision", value) => {
                return Err(bad_value(&attribute.name, value, at));
            }
            _ => note_unknown("clock", attribute, notes),
        }
    }
    Ok(clock)
}

const U64_MAX: i128 = u64::MAX as i128;

fn read_id(name: &str, value: &Value<'_>, offset: usize) -> Result<u64, Fault> {
    match value {
        Value::Integer(id @ 0..=U64_MAX) => Ok(*id as u64),
        other => Err(bad_value(name, other, offset)),
    }
}

fn read_uuid(text: &str, offset: usize) -> Result<[u8; 16], Fault> {
    parse_uuid(text).ok_or_else(|| Fault::new(offset, format!("invalid uuid {text:?}")))
}

fn environment_value(value: &Value<'_>) -> Option<EnvironmentValue> {
    match value {
        Value::Text(text) | Value::Word(text) => {
            Some(EnvironmentValue::Text(text.clone().into_owned()))
        }
        Value::Integer(integer) => Some(match i64::try_from(*integer) {
            Ok(integer) => EnvironmentValue::Integer(integer),
            Err(_) => EnvironmentValue::Text(integer.to_string()),
        }),
        Value::Type(_) => None,
    }
}

fn note_unknown(block: &str, attribute: &Attribute<'_>, notes: &mut Notes) {
    let what = format!("{block} attribute `{}`", attribute.name);
    notes.add(&METADATA_UNKNOWN, Fault::new(attribute.offset, what));
}
