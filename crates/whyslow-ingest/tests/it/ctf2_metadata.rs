//! Every field class of CTF 2, in the final spelling and in that of the release candidate of 2023.

use whyslow_ingest::importers::ctf::class::{
    BitOrder, ByteOrder, EventClass, FieldClass, FieldLocation, IntegerClass, IntegerKind, Range,
    Role, Scope, TextEncoding, TraceClass, Version,
};
use whyslow_ingest::importers::ctf::metadata::{ParsedMetadata, parse_metadata};

const PREAMBLE: &str = "{\"type\":\"preamble\",\"version\":2,\
    \"uuid\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,255]}";
const STREAM: &str = "{\"type\":\"data-stream-class\"}";
const U8: &str = "{\"type\":\"field-class-alias\",\"name\":\"u8\",\"field-class\":\
    {\"type\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\",\
    \"alignment\":8}}";

fn parse(fragments: &[&str]) -> ParsedMetadata {
    let pieces = fragments
        .iter()
        .flat_map(|fragment| ["\u{1E}", fragment, "\n"]);
    let text: String = pieces.collect();
    parse_metadata(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The event with these payload members, written in JSON with `'` for `"`.
fn parse_event(members: &str) -> EventClass {
    let event = format!(
        "{{'type':'event-record-class','payload-field-class':\
         {{'type':'structure','member-classes':[{members}]}}}}"
    );
    let parsed = parse(&[PREAMBLE, U8, STREAM, &event.replace('\'', "\"")]);
    assert!(parsed.anomalies.is_empty(), "{:?}", parsed.anomalies);
    parsed.trace.streams[0].events[0].clone()
}

fn check_member(class: &str, expected: &FieldClass) {
    let before = "{'name':'n','field-class':'u8'},{'name':'b','field-class':\
        {'type':'fixed-length-boolean','length':1,'byte-order':'little-endian'}}";
    let event = parse_event(&format!("{before},{{'name':'x','field-class':{class}}}"));
    let payload = event.payload.expect("the event has a payload");
    assert_eq!(&payload.members[2].class, expected, "{class}");
}

fn integer(bits: u32, kind: IntegerKind) -> IntegerClass {
    IntegerClass {
        bits,
        kind,
        byte_order: ByteOrder::Little,
        bit_order: BitOrder::LeastFirst,
        alignment: 1,
        base: 10,
        is_text: false,
        clock: None,
        roles: Vec::new(),
        mappings: Vec::new(),
    }
}

fn at(path: &[&str]) -> FieldLocation {
    FieldLocation {
        scope: Scope::Payload,
        path: path.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[test]
fn fixed_integers_have_order_alignment_base_and_labels() {
    check_member(
        "{'type':'fixed-length-signed-integer','length':33,'byte-order':'big-endian',\
         'alignment':4,'preferred-display-base':16}",
        &FieldClass::Integer(IntegerClass {
            byte_order: ByteOrder::Big,
            bit_order: BitOrder::MostFirst,
            alignment: 4,
            base: 16,
            ..integer(33, IntegerKind::Signed)
        }),
    );
    check_member(
        "{'type':'fixed-length-bit-array','length':9,'byte-order':'little-endian',\
         'bit-order':'last-to-first'}",
        &FieldClass::Integer(IntegerClass {
            bit_order: BitOrder::MostFirst,
            ..integer(9, IntegerKind::BitMap)
        }),
    );
    check_member(
        "{'type':'fixed-length-boolean','length':8,'byte-order':'little-endian'}",
        &FieldClass::Integer(integer(8, IntegerKind::Boolean)),
    );
    check_member(
        "{'type':'fixed-length-unsigned-integer','length':100,'byte-order':'little-endian'}",
        &FieldClass::Integer(integer(100, IntegerKind::Unsigned)),
    );
}

#[test]
fn labels_keep_their_order_in_both_spellings() {
    for kind in [
        "fixed-length-signed-integer",
        "fixed-length-signed-enumeration",
    ] {
        let event = parse_event(&format!(
            "{{'name':'x','field-class':{{'type':'{kind}','length':8,\
             'byte-order':'little-endian','mappings':{{'z':[[-3,-1],[5,5]],'a':[[0,4]]}}}}}}"
        ));
        let payload = event.payload.expect("the event has a payload");
        let FieldClass::Integer(integer) = &payload.members[0].class else {
            panic!("{payload:?}");
        };
        assert_eq!(integer.kind, IntegerKind::Signed);
        let labels: Vec<&str> = integer.mappings.iter().map(|m| m.label.as_str()).collect();
        assert_eq!(labels, ["z", "a"]);
        let expected = [(-3, -1), (5, 5)].map(|(first, last)| Range { first, last });
        assert_eq!(integer.mappings[0].ranges, expected);
    }
}

#[test]
fn flags_are_the_labels_of_a_bit_map() {
    let event = parse_event(
        "{'name':'x','field-class':{'type':'fixed-length-bit-map','length':8,\
         'byte-order':'little-endian','flags':{'on':[[0,0]]}}}",
    );
    let payload = event.payload.expect("the event has a payload");
    let FieldClass::Integer(integer) = &payload.members[0].class else {
        panic!("{payload:?}");
    };
    assert_eq!(integer.kind, IntegerKind::BitMap);
    assert_eq!(integer.mappings[0].label, "on");
}

#[test]
fn integers_texts_and_blobs_may_vary_in_length() {
    check_member(
        "{'type':'variable-length-signed-integer'}",
        &FieldClass::VariableInteger(IntegerClass {
            alignment: 8,
            ..integer(0, IntegerKind::Signed)
        }),
    );
    let names = [
        ("utf-8", TextEncoding::Utf8),
        ("utf-16le", TextEncoding::Utf16Little),
        ("utf-16be", TextEncoding::Utf16Big),
        ("utf-32le", TextEncoding::Utf32Little),
        ("utf32-be", TextEncoding::Utf32Big),
    ];
    for (name, encoding) in names {
        let class = format!("{{'type':'null-terminated-string','encoding':'{name}'}}");
        check_member(&class, &FieldClass::Text { encoding });
    }
    let encoding = TextEncoding::Utf8;
    check_member(
        "{'type':'static-length-string','length':0}",
        &FieldClass::StaticText { bytes: 0, encoding },
    );
    let length = at(&["n"]);
    check_member(
        "{'type':'dynamic-length-string','length-field-location':{'path':['n']}}",
        &FieldClass::DynamicText {
            length: length.clone(),
            encoding,
        },
    );
    check_member(
        "{'type':'static-length-blob','length':3,'media-type':'image/png'}",
        &FieldClass::StaticBlob {
            bytes: 3,
            roles: Vec::new(),
        },
    );
    check_member(
        "{'type':'dynamic-length-blob','length-field-location':['event-record-payload','n']}",
        &FieldClass::DynamicBlob { length },
    );
}

#[test]
fn arrays_are_aligned_at_least_like_their_elements() {
    let element = || {
        Box::new(FieldClass::Integer(IntegerClass {
            alignment: 8,
            ..integer(8, IntegerKind::Unsigned)
        }))
    };
    check_member(
        "{'type':'static-length-array','length':5,'element-field-class':'u8'}",
        &FieldClass::Array {
            element: element(),
            length: 5,
            alignment: 8,
        },
    );
    check_member(
        "{'type':'dynamic-length-array','minimum-alignment':32,'element-field-class':'u8',\
         'length-field-location':{'origin':'event-record-payload','path':['n']}}",
        &FieldClass::Sequence {
            element: element(),
            length: at(&["n"]),
            alignment: 32,
        },
    );
}

#[test]
fn an_optional_field_is_selected_by_truth_or_by_ranges() {
    let class = || {
        Box::new(FieldClass::Text {
            encoding: TextEncoding::Utf8,
        })
    };
    check_member(
        "{'type':'optional','selector-field-location':{'path':['b']},\
         'field-class':{'type':'null-terminated-string'}}",
        &FieldClass::Optional {
            selector: at(&["b"]),
            ranges: vec![Range {
                first: 1,
                last: u64::MAX.into(),
            }],
            class: class(),
        },
    );
    check_member(
        "{'type':'optional','selector-field-location':{'path':['n']},\
         'selector-field-ranges':[[2,3]],'field-class':{'type':'null-terminated-string'}}",
        &FieldClass::Optional {
            selector: at(&["n"]),
            ranges: vec![Range { first: 2, last: 3 }],
            class: class(),
        },
    );
}

/// The location of `x[length]` within structures `s` and `t`, where `n` is a member of each.
fn check_location(location: &str, expected: Option<&[&str]>) {
    let n = "{'name':'n','field-class':'u8'}";
    let x = format!(
        "{{'name':'x','field-class':{{'type':'dynamic-length-blob',\
         'length-field-location':{location}}}}}"
    );
    let t = format!(
        "{{'name':'t','field-class':{{'type':'static-length-array','length':2,\
         'element-field-class':{{'type':'structure','member-classes':[{n},{x}]}}}}}}"
    );
    let s =
        format!("{{'name':'s','field-class':{{'type':'structure','member-classes':[{n},{t}]}}}}");
    let event = format!(
        "{{'type':'event-record-class','payload-field-class':\
         {{'type':'structure','member-classes':[{n},{s}]}}}}"
    );
    let parsed = parse(&[PREAMBLE, U8, STREAM, &event.replace('\'', "\"")]);
    let found = parsed.trace.streams[0].events.first();
    let shown = found.map(|event| format!("{event:?}"));
    match expected {
        Some(path) => {
            let expected = format!("DynamicBlob {{ length: {:?} }}", at(path));
            let shown = shown.unwrap_or_else(|| panic!("{:?}", parsed.anomalies));
            assert!(shown.contains(&expected), "{location}: {shown}");
        }
        None => assert_eq!(shown, None, "{location}"),
    }
}

#[test]
fn locations_go_outwards_by_null_and_inwards_by_names() {
    check_location("{'path':['n']}", Some(&["s", "t", "n"]));
    check_location("{'path':[null,'n']}", Some(&["s", "n"]));
    check_location("{'path':[null,null,'n']}", Some(&["n"]));
    check_location("{'path':[null,null,'s','n']}", Some(&["s", "n"]));
    check_location("{'path':[null,'t','n']}", Some(&["s", "t", "n"]));
    check_location(
        "{'origin':'event-record-payload','path':['s','t','n']}",
        Some(&["s", "t", "n"]),
    );
    check_location("{'path':[null,null,null,'n']}", None);
    check_location("{'path':['m']}", None);
    check_location("{'path':[]}", None);
    check_location("{'origin':'event-record-header','path':['n']}", None);
    check_location("{'origin':'moon','path':['n']}", None);
}

#[test]
fn a_length_may_be_whichever_option_a_variant_has() {
    let u8 = "{'type':'structure','member-classes':[{'name':'l','field-class':'u8'}]}";
    let event = parse_event(&format!(
        "{{'name':'n','field-class':'u8'}},\
         {{'name':'v','field-class':{{'type':'variant','selector-field-location':{{'path':['n']}},\
         'options':[{{'selector-field-ranges':[[0,0]],'field-class':{u8}}},\
         {{'name':'two','selector-field-ranges':[[1,9]],'field-class':{u8}}}]}}}},\
         {{'name':'x','field-class':{{'type':'dynamic-length-blob',\
         'length-field-location':{{'path':['v','l']}}}}}}"
    ));
    let payload = event.payload.expect("the event has a payload");
    let length = at(&["v", "l"]);
    assert_eq!(payload.members[2].class, FieldClass::DynamicBlob { length });
    let FieldClass::Variant { options, .. } = &payload.members[1].class else {
        panic!("{payload:?}");
    };
    let names: Vec<_> = options
        .iter()
        .map(|option| option.name.as_deref())
        .collect();
    assert_eq!(names, [None, Some("two")]);
}

/// As written by the LTTng kernel tracer, shortened.
const LTTNG: [&str; 8] = [
    "{'type':'field-class-alias','name':'u64-ts','field-class':\
     {'type':'fixed-length-unsigned-integer','length':64,'alignment':8,\
     'byte-order':'big-endian','roles':['default-clock-timestamp']}}",
    "{'type':'field-class-alias','name':'header','field-class':{'type':'structure',\
     'minimum-alignment':32,'member-classes':[{'name':'id','field-class':\
     {'type':'fixed-length-unsigned-integer','length':5,'byte-order':'big-endian',\
     'mappings':{'compact':[[0,30]],'extended':[[31,31]]},'roles':['event-record-class-id']}},\
     {'name':'v','field-class':{'type':'variant','selector-field-location':{'path':['id']},\
     'options':[{'name':'compact','selector-field-ranges':[[0,30]],'field-class':\
     {'type':'structure','member-classes':[{'name':'timestamp','field-class':'u64-ts'}]}}]}}]}}",
    "{'type':'field-class-alias','name':'pkt-ctx','field-class':{'type':'structure',\
     'member-classes':[{'name':'timestamp_begin','field-class':'u64-ts'},\
     {'name':'cpu_id','field-class':{'type':'fixed-length-unsigned-integer','length':32,\
     'byte-order':'big-endian'}}]}}",
    "{'type':'trace-class','namespace':'lttng.org,2009','name':'','uid':'x',\
     'environment':{'domain':'kernel','tracer_major':2},'packet-header-field-class':\
     {'type':'structure','member-classes':[{'name':'magic','field-class':\
     {'type':'fixed-length-unsigned-integer','length':32,'byte-order':'big-endian',\
     'roles':['packet-magic-number']}},{'name':'uuid','field-class':\
     {'type':'static-length-blob','length':16,'roles':['metadata-stream-uuid']}}]}}",
    "{'type':'clock-class','id':'monotonic','name':'monotonic',\
     'uid':'01234567-89ab-cdef-0123-456789abcdef','description':'Monotonic Clock',\
     'frequency':1000000000,'origin':'unix-epoch',\
     'offset-from-origin':{'seconds':-8,'cycles':615}}",
    "{'type':'data-stream-class','id':2,'default-clock-class-id':'monotonic',\
     'packet-context-field-class':'pkt-ctx','event-record-header-field-class':'header'}",
    "{'type':'event-record-class','data-stream-class-id':2,'id':7,'name':'sched_switch',\
     'payload-field-class':{'type':'structure'},\
     'attributes':{'lttng.org,2009':{'log-level':13,'emf-uri':'u'}}}",
    "{'type':'moon','phase':1}",
];

fn lttng() -> TraceClass {
    let fragments: Vec<String> = LTTNG.iter().map(|f| f.replace('\'', "\"")).collect();
    let mut all = vec![PREAMBLE];
    all.extend(fragments.iter().map(String::as_str));
    let parsed = parse(&all);
    let found: Vec<_> = parsed
        .anomalies
        .iter()
        .map(|a| (a.stat.name, a.text.as_str()))
        .collect();
    assert_eq!(found, [("METADATA_UNKNOWN", "fragment `moon`")]);
    parsed.trace
}

#[test]
fn fragments_make_a_trace() {
    let trace = lttng();
    assert_eq!(
        (trace.version, trace.byte_order),
        (Version::V2, ByteOrder::Big)
    );
    assert_eq!(trace.uuid.expect("the preamble has it")[15], 255);
    assert_eq!(trace.name, None);
    assert_eq!(trace.environment[0].0, "domain");
    let clock = &trace.clocks[0];
    assert_eq!((clock.offset_seconds, clock.offset_cycles), (-8, 615));
    assert!(clock.absolute);
    assert_eq!(clock.uuid.expect("the uid is one")[1], 0x23);
    let stream = &trace.streams[0];
    assert_eq!((stream.id, stream.clock), (2, Some(0)));
    let event = &stream.events[0];
    assert_eq!((event.id, event.name.as_str()), (7, "sched_switch"));
    assert_eq!(
        (event.log_level, event.emf_uri.as_deref()),
        (Some(13), Some("u"))
    );
}

#[test]
fn roles_replace_magic_names() {
    let trace = lttng();
    let shown = format!("{trace:?}");
    for role in [
        Role::PacketMagic,
        Role::MetadataUuid,
        Role::EventClassId,
        Role::CpuId,
    ] {
        let times = shown.matches(&format!("roles: [{role:?}]")).count();
        assert_eq!(times, 1, "{role:?}");
    }
    let timed = "clock: Some(0), roles: [Timestamp]";
    assert_eq!(shown.matches(timed).count(), 2);
}

#[test]
fn the_candidate_names_clocks_and_presumes_the_epoch() {
    let clock = "{\"type\":\"clock-class\",\"name\":\"c\",\"frequency\":5,\
        \"offset\":{\"seconds\":7},\"uuid\":[1,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}";
    let stream = "{\"type\":\"data-stream-class\",\"default-clock-class-name\":\"c\",\
        \"user-attributes\":{}}";
    let trace = parse(&[PREAMBLE, clock, stream]).trace;
    assert!(trace.clocks[0].absolute);
    assert_eq!(trace.clocks[0].offset_seconds, 7);
    assert_eq!(trace.clocks[0].uuid.expect("it is given")[0], 1);
    assert_eq!(trace.streams[0].clock, Some(0));
    let apart = clock.replace(
        "\"frequency\"",
        "\"origin-is-unix-epoch\":false,\"frequency\"",
    );
    let trace = parse(&[PREAMBLE, &apart, stream]).trace;
    assert!(!trace.clocks[0].absolute);
}
