//! Writes the metadata of a trace as CTF 2, for tests that read one trace in both versions.

use std::fmt::Write as _;

use whyslow_ingest::importers::ctf::class::{
    BitOrder, ByteOrder, ClockClass, EnvironmentValue, EventClass, FieldClass, FieldLocation,
    IntegerClass, IntegerKind, Range, Role, Scope, StreamClass, StructClass, TextEncoding,
    TraceClass,
};

/// Everything that CTF 2 can express. It cannot express the clock of an integer without a role, nor
/// whether a single integer is a character.
pub(crate) fn to_ctf2(trace: &TraceClass) -> Vec<u8> {
    let mut text = String::new();
    let mut fragment = |properties: Vec<(&str, String)>| {
        writeln!(text, "\u{1E}{}", object(&properties)).expect("writing to a string cannot fail");
    };
    let mut preamble = vec![("type", quote("preamble")), ("version", "2".to_owned())];
    if let Some(uuid) = trace.uuid {
        preamble.push(("uuid", array(uuid.iter().map(u8::to_string))));
    }
    fragment(preamble);
    fragment(trace_class(trace));
    for clock in &trace.clocks {
        fragment(clock_class(clock));
    }
    for stream in &trace.streams {
        fragment(stream_class(stream, trace));
        for event in &stream.events {
            fragment(event_class(event, stream));
        }
    }
    text.into_bytes()
}

type Properties = Vec<(&'static str, String)>;

fn trace_class(trace: &TraceClass) -> Properties {
    let mut properties = vec![("type", quote("trace-class"))];
    if let Some(name) = &trace.name {
        properties.push(("name", quote(name)));
    }
    let entries: Vec<(&str, String)> = trace
        .environment
        .iter()
        .map(|(name, value)| {
            let value = match value {
                EnvironmentValue::Text(text) => quote(text),
                EnvironmentValue::Integer(integer) => integer.to_string(),
            };
            (name.as_str(), value)
        })
        .collect();
    properties.push(("environment", object(&entries)));
    push_scope(
        &mut properties,
        "packet-header-field-class",
        trace.packet_header.as_ref(),
    );
    properties
}

/// CTF 2 requires cycles below one second.
fn clock_class(clock: &ClockClass) -> Properties {
    let frequency = i128::from(clock.frequency);
    let cycles = i128::from(clock.offset_cycles);
    let seconds = i128::from(clock.offset_seconds) + cycles.div_euclid(frequency);
    let offset = [
        ("seconds", seconds.to_string()),
        ("cycles", cycles.rem_euclid(frequency).to_string()),
    ];
    let mut properties = vec![
        ("type", quote("clock-class")),
        ("id", quote(&clock.name)),
        ("name", quote(&clock.name)),
        ("frequency", clock.frequency.to_string()),
        ("offset-from-origin", object(&offset)),
    ];
    if clock.absolute {
        properties.push(("origin", quote("unix-epoch")));
    }
    if let Some(uuid) = clock.uuid {
        let digits = format!("{:032x}", u128::from_be_bytes(uuid));
        properties.push(("uid", quote(&digits)));
    }
    if let Some(description) = &clock.description {
        properties.push(("description", quote(description)));
    }
    if let Some(precision) = clock.precision {
        properties.push(("precision", precision.to_string()));
    }
    properties
}

fn stream_class(stream: &StreamClass, trace: &TraceClass) -> Properties {
    let mut properties = vec![
        ("type", quote("data-stream-class")),
        ("id", stream.id.to_string()),
    ];
    if let Some(name) = &stream.name {
        properties.push(("name", quote(name)));
    }
    if let Some(clock) = stream.clock {
        let name = quote(&trace.clocks[clock].name);
        properties.push(("default-clock-class-id", name));
    }
    let scopes = [
        ("packet-context-field-class", &stream.packet_context),
        ("event-record-header-field-class", &stream.event_header),
        (
            "event-record-common-context-field-class",
            &stream.event_context,
        ),
    ];
    for (name, class) in scopes {
        push_scope(&mut properties, name, class.as_ref());
    }
    properties
}

fn event_class(event: &EventClass, stream: &StreamClass) -> Properties {
    let mut properties = vec![
        ("type", quote("event-record-class")),
        ("id", event.id.to_string()),
        ("data-stream-class-id", stream.id.to_string()),
        ("name", quote(&event.name)),
    ];
    let mut attributes = Vec::new();
    if let Some(level) = event.log_level {
        attributes.push(("log-level", level.to_string()));
    }
    if let Some(uri) = &event.emf_uri {
        attributes.push(("emf-uri", quote(uri)));
    }
    if !attributes.is_empty() {
        let own = [("lttng.org,2009", object(&attributes))];
        properties.push(("attributes", object(&own)));
    }
    let context = event.context.as_ref();
    push_scope(&mut properties, "specific-context-field-class", context);
    push_scope(
        &mut properties,
        "payload-field-class",
        event.payload.as_ref(),
    );
    properties
}

fn push_scope(properties: &mut Properties, name: &'static str, class: Option<&StructClass>) {
    if let Some(class) = class {
        properties.push((name, structure(class)));
    }
}

fn structure(class: &StructClass) -> String {
    let members = class.members.iter().map(|member| {
        object(&[
            ("name", quote(&member.name)),
            ("field-class", field_class(&member.class)),
        ])
    });
    object(&[
        ("type", quote("structure")),
        ("minimum-alignment", class.alignment.to_string()),
        ("member-classes", array(members)),
    ])
}

fn field_class(class: &FieldClass) -> String {
    match class {
        FieldClass::Integer(integer) => fixed_integer(integer),
        FieldClass::VariableInteger(integer) => {
            let kind = match integer.kind {
                IntegerKind::Signed => "variable-length-signed-integer",
                _ => "variable-length-unsigned-integer",
            };
            let mut properties = vec![("type", quote(kind))];
            properties.extend(integer_properties(integer));
            object(&properties)
        }
        FieldClass::Float {
            bits,
            byte_order,
            bit_order,
            alignment,
        } => {
            let kind = quote("fixed-length-floating-point-number");
            let mut properties = vec![("type", kind)];
            properties.extend(placed(*bits, *byte_order, *bit_order, *alignment));
            object(&properties)
        }
        FieldClass::Text { encoding } => object(&[
            ("type", quote("null-terminated-string")),
            ("encoding", encoding_name(*encoding)),
        ]),
        FieldClass::StaticText { bytes, encoding } => object(&[
            ("type", quote("static-length-string")),
            ("length", bytes.to_string()),
            ("encoding", encoding_name(*encoding)),
        ]),
        FieldClass::DynamicText { length, encoding } => object(&[
            ("type", quote("dynamic-length-string")),
            ("length-field-location", location(length)),
            ("encoding", encoding_name(*encoding)),
        ]),
        FieldClass::StaticBlob { bytes, roles } => object(&[
            ("type", quote("static-length-blob")),
            ("length", bytes.to_string()),
            ("roles", role_names(roles)),
        ]),
        FieldClass::DynamicBlob { length } => object(&[
            ("type", quote("dynamic-length-blob")),
            ("length-field-location", location(length)),
        ]),
        FieldClass::Struct(class) => structure(class),
        FieldClass::Array {
            element,
            length,
            alignment,
        } => object(&[
            ("type", quote("static-length-array")),
            ("length", length.to_string()),
            ("minimum-alignment", alignment.to_string()),
            ("element-field-class", field_class(element)),
        ]),
        FieldClass::Sequence {
            element,
            length,
            alignment,
        } => object(&[
            ("type", quote("dynamic-length-array")),
            ("length-field-location", location(length)),
            ("minimum-alignment", alignment.to_string()),
            ("element-field-class", field_class(element)),
        ]),
        FieldClass::Variant { selector, options } => {
            let options = options.iter().map(|option| {
                let mut properties = vec![
                    ("selector-field-ranges", ranges(&option.ranges)),
                    ("field-class", field_class(&option.class)),
                ];
                if let Some(name) = &option.name {
                    properties.push(("name", quote(name)));
                }
                object(&properties)
            });
            object(&[
                ("type", quote("variant")),
                ("selector-field-location", location(selector)),
                ("options", array(options)),
            ])
        }
        FieldClass::Optional {
            selector,
            ranges: enabled,
            class,
        } => object(&[
            ("type", quote("optional")),
            ("selector-field-location", location(selector)),
            ("selector-field-ranges", ranges(enabled)),
            ("field-class", field_class(class)),
        ]),
    }
}

fn fixed_integer(integer: &IntegerClass) -> String {
    let kind = match integer.kind {
        IntegerKind::Unsigned => "fixed-length-unsigned-integer",
        IntegerKind::Signed => "fixed-length-signed-integer",
        IntegerKind::Boolean => "fixed-length-boolean",
        IntegerKind::BitMap if integer.mappings.is_empty() => "fixed-length-bit-array",
        IntegerKind::BitMap => "fixed-length-bit-map",
    };
    let mut properties = vec![("type", quote(kind))];
    properties.extend(placed(
        integer.bits,
        integer.byte_order,
        integer.bit_order,
        integer.alignment,
    ));
    properties.extend(integer_properties(integer));
    object(&properties)
}

fn integer_properties(integer: &IntegerClass) -> Properties {
    let labels: Vec<(&str, String)> = integer
        .mappings
        .iter()
        .map(|mapping| (mapping.label.as_str(), ranges(&mapping.ranges)))
        .collect();
    let mut properties = vec![("preferred-display-base", integer.base.to_string())];
    if !labels.is_empty() {
        let name = match integer.kind {
            IntegerKind::BitMap => "flags",
            _ => "mappings",
        };
        properties.push((name, object(&labels)));
    }
    if !integer.roles.is_empty() {
        properties.push(("roles", role_names(&integer.roles)));
    }
    properties
}

fn placed(bits: u32, byte_order: ByteOrder, bit_order: BitOrder, alignment: u32) -> Properties {
    let byte_order = match byte_order {
        ByteOrder::Little => "little-endian",
        ByteOrder::Big => "big-endian",
    };
    let bit_order = match bit_order {
        BitOrder::LeastFirst => "first-to-last",
        BitOrder::MostFirst => "last-to-first",
    };
    vec![
        ("length", bits.to_string()),
        ("byte-order", quote(byte_order)),
        ("bit-order", quote(bit_order)),
        ("alignment", alignment.to_string()),
    ]
}

fn location(location: &FieldLocation) -> String {
    let origin = match location.scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::EventContext => "event-record-common-context",
        Scope::SpecificContext => "event-record-specific-context",
        Scope::Payload => "event-record-payload",
    };
    object(&[
        ("origin", quote(origin)),
        ("path", array(location.path.iter().map(|name| quote(name)))),
    ])
}

fn ranges(ranges: &[Range]) -> String {
    let pairs = ranges
        .iter()
        .map(|range| format!("[{},{}]", range.first, range.last));
    array(pairs)
}

fn role_names(roles: &[Role]) -> String {
    let names = roles.iter().filter_map(|role| {
        Some(quote(match role {
            Role::PacketMagic => "packet-magic-number",
            Role::MetadataUuid => "metadata-stream-uuid",
            Role::StreamClassId => "data-stream-class-id",
            Role::StreamId => "data-stream-id",
            Role::PacketTotalLength => "packet-total-length",
            Role::PacketContentLength => "packet-content-length",
            Role::PacketEndTimestamp => "packet-end-default-clock-timestamp",
            Role::Timestamp => "default-clock-timestamp",
            Role::DiscardedEvents => "discarded-event-record-counter-snapshot",
            Role::PacketSequenceNumber => "packet-sequence-number",
            Role::EventClassId => "event-record-class-id",
            // Recognized by its name.
            Role::CpuId => return None,
        }))
    });
    array(names)
}

fn encoding_name(encoding: TextEncoding) -> String {
    quote(match encoding {
        TextEncoding::Utf8 => "utf-8",
        TextEncoding::Utf16Little => "utf-16le",
        TextEncoding::Utf16Big => "utf-16be",
        TextEncoding::Utf32Little => "utf-32le",
        TextEncoding::Utf32Big => "utf-32be",
    })
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("every string can be JSON")
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object(properties: &[(&str, String)]) -> String {
    let written = properties
        .iter()
        .map(|(name, value)| format!("{}:{value}", quote(name)));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}
