//! Assembles the fragments to a trace class.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::stat::{METADATA_DAMAGED, METADATA_UNKNOWN, Stat};

use super::super::class::{
    ByteOrder, ClockClass, EnvironmentValue, EventClass, FieldClass, Role, Scope, StreamClass,
    StructClass, TraceClass, Version,
};
use super::super::metadata::{Fault, FieldBudget, Notes, parse_uuid};
use super::field_classes::{Aliases, ClassReader};
use super::tree::{Json, Object};

const SUPPORTED_VERSION: i128 = 2;

pub(super) struct TraceBuilder<'n> {
    trace: TraceClass,
    has_preamble: bool,
    /// The 2023 candidate refers to clocks by name, the final format by id.
    clock_ids: FxHashMap<String, usize>,
    stream_by_id: FxHashMap<u64, usize>,
    /// (index of the stream, id) of the events so far.
    event_ids: FxHashSet<(usize, u64)>,
    aliases: Aliases,
    budget: FieldBudget,
    notes: &'n mut Notes,
}

impl<'n> TraceBuilder<'n> {
    pub(super) fn new(notes: &'n mut Notes) -> TraceBuilder<'n> {
        TraceBuilder {
            trace: TraceClass {
                version: Version::V2,
                uuid: None,
                byte_order: ByteOrder::Little,
                name: None,
                packet_header: None,
                environment: Vec::new(),
                clocks: Vec::new(),
                streams: Vec::new(),
            },
            has_preamble: false,
            clock_ids: FxHashMap::default(),
            stream_by_id: FxHashMap::default(),
            event_ids: FxHashSet::default(),
            aliases: Aliases::default(),
            budget: FieldBudget::default(),
            notes,
        }
    }

    pub(super) fn note(&mut self, stat: &'static Stat, fault: Fault) {
        self.notes.add(stat, fault);
    }

    pub(super) fn fragment(&mut self, json: &Json, offset: usize) -> Result<(), Fault> {
        let Json::Object(object) = json else {
            let what = format!("a fragment is {}, not an object", json.kind());
            return Err(Fault::new(offset, what));
        };
        let kind = object
            .text("type")
            .map_err(|what| Fault::new(offset, what))?;
        let Some(kind) = kind else {
            return Err(Fault::new(offset, "a fragment without `type`"));
        };
        if !self.has_preamble && kind != "preamble" {
            let what = format!("the first fragment is `{kind}`, not `preamble`");
            return Err(Fault::new(offset, what));
        }
        let read = match kind {
            "preamble" => self.preamble(object),
            "field-class-alias" => self.alias(object),
            "trace-class" => self.trace_class(object, offset),
            "clock-class" => self.clock_class(object),
            "data-stream-class" => self.stream_class(object, offset),
            "event-record-class" => {
                if let Err(what) = self.event_class(object, offset) {
                    self.note(&METADATA_DAMAGED, Fault::new(offset, what));
                }
                Ok(())
            }
            _ => {
                let what = format!("fragment `{kind}`");
                self.note(&METADATA_UNKNOWN, Fault::new(offset, what));
                return Ok(());
            }
        };
        self.note_others(object, kind, offset);
        read.map_err(|what| Fault::new(offset, format!("{kind}: {what}")))
    }

    pub(super) fn finish(mut self) -> Result<TraceClass, Fault> {
        if !self.has_preamble {
            return Err(Fault::new(0, "missing `preamble` fragment"));
        }
        self.trace.byte_order = packet_byte_order(&self.trace);
        Ok(self.trace)
    }

    fn preamble(&mut self, object: &Object) -> Result<(), String> {
        self.has_preamble = true;
        let version = object.integer("version")?;
        if version != Some(SUPPORTED_VERSION) {
            let shown = version.map_or_else(|| "missing".to_owned(), |v| v.to_string());
            return Err(format!("unsupported version {shown} (supported: 2)"));
        }
        // An extension may change the format itself.
        if let Some(extensions) = object.object("extensions")?
            && let Some((name, _)) = extensions.0.first()
        {
            return Err(format!("the extension `{name}` is not supported"));
        }
        if let Some(bytes) = object.array("uuid")? {
            self.trace.uuid = Some(uuid_of_array(bytes)?);
        }
        Ok(())
    }

    fn alias(&mut self, object: &Object) -> Result<(), String> {
        let name = object.text("name")?.ok_or("missing `name`")?;
        let class = object.get("field-class").ok_or("no `field-class`")?;
        self.aliases.add(name, Rc::new(class.clone()))
    }

    fn trace_class(&mut self, object: &Object, offset: usize) -> Result<(), String> {
        let name = object.text("name")?;
        self.trace.name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        if let Some(environment) = object.object("environment")? {
            for (name, value) in &environment.0 {
                if let Some(value) = environment_value(value) {
                    self.trace.environment.push((name.clone(), value));
                } else {
                    let what = format!("environment entry `{name}` is {}", value.kind());
                    self.notes.add(&METADATA_UNKNOWN, Fault::new(offset, what));
                }
            }
        }
        if let Some(class) = object.get("packet-header-field-class") {
            let mut reader =
                ClassReader::new(&self.aliases, &self.budget, self.notes, offset, None);
            self.trace.packet_header = Some(reader.scope(Scope::PacketHeader, class)?);
        }
        Ok(())
    }

    fn clock_class(&mut self, object: &Object) -> Result<(), String> {
        let name = object.text("name")?;
        let id = object
            .text("id")?
            .or(name)
            .ok_or("missing `id` or `name`")?;
        let frequency = object.unsigned("frequency")?.ok_or("missing `frequency`")?;
        if frequency == 0 {
            return Err("invalid `frequency` 0".to_owned());
        }
        let mut clock = ClockClass {
            name: name.unwrap_or(id).to_owned(),
            uuid: object.text("uid").ok().flatten().and_then(parse_uuid),
            description: object.text("description")?.map(str::to_owned),
            frequency,
            offset_seconds: 0,
            offset_cycles: 0,
            precision: object.unsigned("precision")?,
            absolute: is_since_epoch(object),
        };
        if let Some(Json::Array(bytes)) = object.get("uuid") {
            clock.uuid = Some(uuid_of_array(bytes)?);
        }
        if let Some(offset) = object.get_any(&["offset-from-origin", "offset"]) {
            let Json::Object(offset) = offset else {
                return Err(format!("the offset is {}", offset.kind()));
            };
            clock.offset_seconds = signed(offset, "seconds")?;
            clock.offset_cycles = signed(offset, "cycles")?;
        }
        let index = self.trace.clocks.len();
        if self.clock_ids.insert(id.to_owned(), index).is_some() {
            return Err(format!("duplicate clock class `{id}`"));
        }
        self.trace.clocks.push(clock);
        Ok(())
    }

    fn stream_class(&mut self, object: &Object, offset: usize) -> Result<(), String> {
        let id = object.unsigned("id")?.unwrap_or(0);
        if self.stream_by_id.contains_key(&id) {
            return Err(format!("duplicate data stream class {id}"));
        }
        let clock_names = ["default-clock-class-id", "default-clock-class-name"];
        let clock = match object.get_any(&clock_names) {
            None => None,
            Some(Json::Text(name)) => {
                let index = self.clock_ids.get(name);
                Some(*index.ok_or_else(|| format!("the clock class `{name}` is not declared"))?)
            }
            Some(other) => return Err(format!("the name of the clock is {}", other.kind())),
        };
        let mut reader = ClassReader::new(&self.aliases, &self.budget, self.notes, offset, clock);
        let header = self.trace.packet_header.as_ref();
        reader.lookup.set_finished(Scope::PacketHeader, header);
        let read = |reader: &mut ClassReader<'_>, scope, name| match object.get(name) {
            Some(class) => reader.scope(scope, class).map(Some),
            None => Ok(None),
        };
        let mut packet_context = read(
            &mut reader,
            Scope::PacketContext,
            "packet-context-field-class",
        )?;
        if let Some(context) = &mut packet_context {
            mark_cpu(context);
        }
        let finished = packet_context.as_ref();
        reader.lookup.set_finished(Scope::PacketContext, finished);
        let event_header = read(
            &mut reader,
            Scope::EventHeader,
            "event-record-header-field-class",
        )?;
        let finished = event_header.as_ref();
        reader.lookup.set_finished(Scope::EventHeader, finished);
        let event_context = read(
            &mut reader,
            Scope::EventContext,
            "event-record-common-context-field-class",
        )?;
        let stream = StreamClass {
            id,
            name: object.text("name")?.map(str::to_owned),
            clock,
            packet_context,
            event_header,
            event_context,
            events: Vec::new(),
        };
        self.stream_by_id.insert(id, self.trace.streams.len());
        self.trace.streams.push(stream);
        Ok(())
    }

    fn event_class(&mut self, object: &Object, offset: usize) -> Result<(), String> {
        let id = object.unsigned("id")?.unwrap_or(0);
        let name = object.text("name")?.unwrap_or_default();
        let stream_id = object.unsigned("data-stream-class-id")?.unwrap_or(0);
        let Some(&index) = self.stream_by_id.get(&stream_id) else {
            return Err(format!(
                "event {id} `{name}` of data stream class {stream_id}"
            ));
        };
        if self.event_ids.contains(&(index, id)) {
            return Err(format!("duplicate event {id} `{name}`"));
        }
        let stream = &self.trace.streams[index];
        let mut reader = ClassReader::new(
            &self.aliases,
            &self.budget,
            self.notes,
            offset,
            stream.clock,
        );
        let before = [
            (Scope::PacketHeader, self.trace.packet_header.as_ref()),
            (Scope::PacketContext, stream.packet_context.as_ref()),
            (Scope::EventHeader, stream.event_header.as_ref()),
            (Scope::EventContext, stream.event_context.as_ref()),
        ];
        for (scope, class) in before {
            reader.lookup.set_finished(scope, class);
        }
        let in_event = |what: String| format!("event {id} `{name}`: {what}");
        let context = match object.get("specific-context-field-class") {
            Some(class) => Some(
                reader
                    .scope(Scope::SpecificContext, class)
                    .map_err(in_event)?,
            ),
            None => None,
        };
        let finished = context.as_ref();
        reader.lookup.set_finished(Scope::SpecificContext, finished);
        let payload = match object.get("payload-field-class") {
            Some(class) => Some(reader.scope(Scope::Payload, class).map_err(in_event)?),
            None => None,
        };
        let (log_level, emf_uri) = event_attributes(object);
        let event = EventClass {
            id,
            name: name.to_owned(),
            log_level,
            emf_uri,
            context,
            payload,
        };
        self.event_ids.insert((index, id));
        self.trace.streams[index].events.push(event);
        Ok(())
    }

    fn note_others(&mut self, object: &Object, kind: &str, offset: usize) {
        for (name, _) in &object.0 {
            if !FRAGMENT_PROPERTIES.contains(&name.as_str()) {
                let what = format!("{kind} property `{name}`");
                self.notes.add(&METADATA_UNKNOWN, Fault::new(offset, what));
            }
        }
    }
}

const FRAGMENT_PROPERTIES: [&str; 29] = [
    "type",
    "attributes",
    "user-attributes",
    "extensions",
    "namespace",
    "name",
    "uid",
    "uuid",
    "id",
    "environment",
    "packet-header-field-class",
    "frequency",
    "origin",
    "origin-is-unix-epoch",
    "offset",
    "offset-from-origin",
    "precision",
    "accuracy",
    "description",
    "default-clock-class-id",
    "default-clock-class-name",
    "packet-context-field-class",
    "event-record-header-field-class",
    "event-record-common-context-field-class",
    "data-stream-class-id",
    "specific-context-field-class",
    "payload-field-class",
    "field-class",
    "version",
];

/// Attributes known from CTF 1.8; each tracer has its own namespace.
fn event_attributes(object: &Object) -> (Option<i64>, Option<String>) {
    let mut log_level = None;
    let mut emf_uri = None;
    let Some(Json::Object(attributes)) = object.get_any(&["attributes", "user-attributes"]) else {
        return (None, None);
    };
    for (_, own) in &attributes.0 {
        let Json::Object(own) = own else { continue };
        if let Some(Json::Integer(level)) = own.get("log-level") {
            log_level = i64::try_from(*level).ok();
        }
        if let Some(Json::Text(uri)) = own.get("emf-uri") {
            emf_uri = Some(uri.clone());
        }
    }
    (log_level, emf_uri)
}

/// Only the final format has an `id`; the candidate assumes the epoch.
fn is_since_epoch(clock: &Object) -> bool {
    match (clock.get("origin"), clock.get("origin-is-unix-epoch")) {
        (Some(Json::Text(origin)), _) => origin == "unix-epoch",
        (Some(_), _) => false,
        (None, Some(Json::Truth(truth))) => *truth,
        (None, _) => clock.get("id").is_none(),
    }
}

fn signed(object: &Object, name: &str) -> Result<i64, String> {
    let value = object.integer(name)?.unwrap_or(0);
    i64::try_from(value).map_err(|_| format!("invalid `{name}` {value}"))
}

fn uuid_of_array(bytes: &[Json]) -> Result<[u8; 16], String> {
    let bytes = bytes.iter().map(|byte| match byte {
        Json::Integer(value) => u8::try_from(*value).ok(),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| "`uuid` does not have 16 bytes".to_owned())
}

fn environment_value(value: &Json) -> Option<EnvironmentValue> {
    match value {
        Json::Text(text) => Some(EnvironmentValue::Text(text.clone())),
        Json::Integer(integer) => Some(match i64::try_from(*integer) {
            Ok(integer) => EnvironmentValue::Integer(integer),
            Err(_) => EnvironmentValue::Text(integer.to_string()),
        }),
        _ => None,
    }
}

/// CTF 2 has no role for the CPU number; all tracers keep its CTF 1.8 name.
fn mark_cpu(context: &mut StructClass) {
    for member in &mut context.members {
        if member.name == "cpu_id"
            && let FieldClass::Integer(integer) = &mut member.class
        {
            integer.roles.push(Role::CpuId);
        }
    }
}

/// CTF 2 declares the order of each field; that of the magic number is the tracer's native one.
fn packet_byte_order(trace: &TraceClass) -> ByteOrder {
    let header = trace.packet_header.iter();
    let streams = trace.streams.iter();
    let in_streams = streams.flat_map(|stream| [&stream.packet_context, &stream.event_header]);
    header
        .chain(in_streams.flatten())
        .flat_map(|class| &class.members)
        .find_map(|member| match &member.class {
            FieldClass::Integer(integer) => Some(integer.byte_order),
            _ => None,
        })
        .unwrap_or(ByteOrder::Little)
}
