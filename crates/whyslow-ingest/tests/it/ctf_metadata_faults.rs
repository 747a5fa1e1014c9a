//! Metadata in packets; truncated, damaged, invalid and malicious metadata.

use std::fmt::Write as _;

use whyslow_ingest::importers::ctf::class::{ByteOrder, Role, TraceClass};
use whyslow_ingest::importers::ctf::metadata::{MetadataError, ParsedMetadata, parse_metadata};

const TRACE: &str = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n";
const U8: &str = "typealias integer { size = 8; } := u8;\n";
const CTF2: &str = "\u{1E}{\"type\":\"preamble\",\"version\":2}\n";

fn event(id: u32, fields: &str) -> String {
    format!("event {{ name = e{id}; id = {id}; fields := struct {{ {fields} }}; }};\n")
}

fn parse(text: &[u8]) -> ParsedMetadata {
    parse_metadata(text).unwrap_or_else(|error| panic!("{error}"))
}

fn event_names(trace: &TraceClass) -> Vec<&str> {
    let events = trace.streams.iter().flat_map(|stream| &stream.events);
    events.map(|event| event.name.as_str()).collect()
}

/// (stat, location, text) of skipped parts.
fn anomalies(parsed: &ParsedMetadata) -> Vec<(&str, u64, &str)> {
    let all = parsed.anomalies.iter();
    all.map(|a| (a.stat.name, a.byte_offset, a.text.as_str()))
        .collect()
}

/// Splits a text into packets with some bytes of content and padding.
fn packets(text: &[u8], content_bytes: usize, big: bool) -> Vec<u8> {
    let number = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let mut file = Vec::new();
    for content in text.chunks(content_bytes) {
        let begin = file.len();
        file.extend(number(0x75D1_1D57));
        file.extend([7; 16]);
        file.extend(number(0));
        file.extend(number((37 + content.len() as u32) * 8));
        file.extend(number((37 + content_bytes as u32 + 11) * 8));
        file.extend([0, 0, 0, 1, 8]);
        file.extend(content);
        file.resize(begin + 37 + content_bytes + 11, 0);
    }
    file
}

#[test]
fn text_goes_on_in_the_next_packet_in_the_middle_of_a_word() {
    let text = format!("{TRACE}{U8}{}{}", event(0, "u8 a;"), event(1, "u8 b;"));
    let plain = parse(text.as_bytes());
    for content_bytes in [1, 3, 50, 5000] {
        for big in [false, true] {
            let parsed = parse(&packets(text.as_bytes(), content_bytes, big));
            assert!(parsed.anomalies.is_empty());
            assert_eq!(parsed.trace, plain.trace, "{content_bytes} {big}");
        }
    }
    assert_eq!(event_names(&plain.trace), ["e0", "e1"]);
}

#[test]
fn ctf_2_comes_in_packets_too() {
    let text = format!("{CTF2}\u{1E}{{\"type\":\"data-stream-class\",\"id\":4}}");
    let parsed = parse(&packets(text.as_bytes(), 16, false));
    assert_eq!(parsed.trace.streams[0].id, 4);
    assert!(parsed.anomalies.is_empty());
}

#[test]
fn places_are_those_of_the_file() {
    let text = format!("{TRACE}event {{ name = a; fields := struct {{ nothing x; }}; }};");
    let in_text = text.find("nothing").unwrap();
    let expected = "the type `nothing` is not declared";
    let parsed = parse(text.as_bytes());
    let found = anomalies(&parsed);
    assert_eq!(found, [("METADATA_DAMAGED", in_text as u64, expected)]);
    // Ten bytes of text in each packet of 58 bytes.
    let parsed = parse(&packets(text.as_bytes(), 10, false));
    let in_file = (in_text / 10 * 58 + 37 + in_text % 10) as u64;
    assert_eq!(
        anomalies(&parsed),
        [("METADATA_DAMAGED", in_file, expected)]
    );
}

#[test]
fn line_ends_bytes_that_are_not_unicode_and_zeros_behind_do_not_matter() {
    let mut text = format!("{TRACE}{U8}{}", event(0, "u8 a;")).replace('\n', "\r\n");
    text.push_str("env { host = \"caf?\"; };");
    let mut bytes = text.into_bytes();
    let odd = bytes.iter().position(|&byte| byte == b'?').unwrap();
    bytes[odd] = 0xE9;
    let parsed = parse(&bytes);
    assert_eq!(event_names(&parsed.trace), ["e0"]);
    assert_eq!(parsed.trace.environment[0].0, "host");
    let end = bytes.len() as u64;
    bytes.extend([0; 100]);
    let parsed = parse(&bytes);
    assert_eq!(event_names(&parsed.trace), ["e0"]);
    let zeros = ("METADATA_DAMAGED", end, "zeros after the text");
    assert_eq!(anomalies(&parsed), [zeros]);
}

#[test]
fn a_cut_text_is_used_up_to_the_declaration_that_is_cut() {
    let whole = format!("{TRACE}{U8}{}", event(0, "u8 a;"));
    let cut = event(1, "u8 b; enum : u8 { \"x\" = 1 ... 2 } c; /* d */");
    let last = cut.rfind("};").unwrap() + 2;
    for length in 1..last {
        let text = format!("{whole}{}", &cut[..length]);
        let parsed = parse(text.as_bytes());
        assert_eq!(event_names(&parsed.trace), ["e0"], "{text}");
        let found = anomalies(&parsed);
        assert_eq!(found.len(), 1, "{text}");
        let (stat, place, what) = found[0];
        assert_eq!((stat, place), ("METADATA_DAMAGED", whole.len() as u64));
        assert!(
            what.starts_with("the text ends inside a declaration"),
            "{what}"
        );
    }
}

#[test]
fn cut_packets_are_used_up_to_the_cut() {
    let text = format!("{TRACE}{U8}{}{}", event(0, "u8 a;"), event(1, "u8 b;"));
    let file = packets(text.as_bytes(), 64, false);
    for length in 0..file.len() {
        match parse_metadata(&file[..length]) {
            Ok(parsed) => assert!(["e0", "e1"].starts_with(&event_names(&parsed.trace))),
            Err(error) => assert!(length < 37 + 64 + 11 + 37 + 20, "{length}: {error}"),
        }
    }
    let damaged = [
        &file[..],
        b"not a packet, but longer than the header of one",
    ]
    .concat();
    let parsed = parse(&damaged);
    assert_eq!(event_names(&parsed.trace), ["e0", "e1"]);
    assert_eq!(parsed.anomalies[0].byte_offset, file.len() as u64);
}

#[test]
fn a_cut_sequence_of_fragments_is_used_up_to_the_cut() {
    let stream = "\u{1E}{\"type\":\"data-stream-class\"}\n";
    let event = "\u{1E}{\"type\":\"event-record-class\",\"name\":\"e0\"}";
    let whole = format!("{CTF2}{stream}");
    for length in 2..event.len() {
        let parsed = parse(format!("{whole}{}", &event[..length]).as_bytes());
        assert!(event_names(&parsed.trace).is_empty());
        let found = anomalies(&parsed);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, whole.len() as u64 + 1);
    }
    let parsed = parse(format!("{whole}{event}").as_bytes());
    assert_eq!(event_names(&parsed.trace), ["e0"]);
}

fn check_error(text: &str, place_of: &str, what: &str) {
    let error = parse_metadata(text.as_bytes()).expect_err(text);
    let place = text.find(place_of).expect("the text has the place");
    assert_eq!(
        error.to_string(),
        format!("metadata byte {place}: {what}"),
        "{text}"
    );
}

#[test]
fn wrong_text_is_refused_with_its_place() {
    assert!(matches!(parse_metadata(b""), Err(MetadataError::Empty)));
    assert!(matches!(parse_metadata(b" \n"), Err(MetadataError::Empty)));
    check_error(
        "typealias integer { size = 8; ] := uint8_t;\n",
        "]",
        "expected a name, found `]`",
    );
    check_error(
        "trace { major = 1; byte_order = middle; };",
        "byte_order",
        "unknown byte order `middle`",
    );
    check_error(
        "trace { major = 2; byte_order = le; };",
        "major",
        "invalid `major` 2",
    );
    check_error(
        "trace { major = 1; };",
        "trace",
        "a `trace` block without a `byte_order` of `le` or `be`",
    );
    check_error("clock { name = x; };", "clock", "no `trace` block");
    check_error(
        "trace { minor = 99999999999999999999; };",
        "999",
        "expected a value, found `99999999999999999999` is not a 64-bit integer",
    );
    check_error(
        &format!("{TRACE}\u{1}stream {{ }};"),
        "\u{1}",
        "expected a block or a declaration, found unexpected byte 0x01",
    );
    check_error(
        &format!("{TRACE}stream {{ id = -1; }};"),
        "id =",
        "invalid `id` -1",
    );
    check_error(
        &format!(
            "{TRACE}stream {{ event.header := struct {{ integer {{ size = 8; align = 3; }} id; }}; }};"
        ),
        "align",
        "an alignment of 3 is not a power of two up to 16777216",
    );
    check_error(
        &format!(
            "{TRACE}stream {{ event.header := struct {{ integer {{ size = 8; map = clock.c.value; }} id; }}; }};"
        ),
        "integer",
        "the clock `c` is not declared",
    );
    check_error(
        "\u{1E}{\"type\":\"preamble\",\"version\":3}",
        "{",
        "preamble: unsupported version 3 (supported: 2)",
    );
    check_error(
        "\u{1E}{\"type\":\"trace-class\"}",
        "{",
        "the first fragment is `trace-class`, not `preamble`",
    );
    check_error(
        &format!("{CTF2}\u{1E}{{\"type\": oops}}\n\u{1E}{{}}"),
        "oops",
        "expected value",
    );
    check_error(
        "\u{1E}{\"type\":\"preamble\",\"version\":2,\"extensions\":{\"x\":{}}}",
        "{",
        "preamble: the extension `x` is not supported",
    );
}

#[test]
fn an_event_that_makes_no_sense_is_left_out() {
    let wrong = [
        ("u9 a;", "the type `u9` is not declared"),
        ("u8 a[n];", "no field `n` before this one"),
        ("u8 a[b]; u8 b;", "no field `b` before this one"),
        (
            "struct { u8 n; } s; u8 a[s];",
            "the length `s` is not an unsigned integer",
        ),
        ("variant { u8 x; } v;", "a variant without a tag"),
        (
            "u8 t; variant <t> { u8 x; } v;",
            "the tag `t` is not an enumeration",
        ),
    ];
    for (fields, what) in wrong {
        let (before, behind) = (event(0, "u8 a;"), event(2, "u8 a;"));
        let text = format!("{TRACE}{U8}{before}{}{behind}", event(1, fields));
        let parsed = parse(text.as_bytes());
        assert_eq!(event_names(&parsed.trace), ["e0", "e2"], "{fields}");
        let found = anomalies(&parsed);
        assert_eq!(found.len(), 1, "{fields}");
        assert_eq!((found[0].0, found[0].2), ("METADATA_DAMAGED", what));
    }
    let twice = format!("{TRACE}{U8}{}{}", event(1, "u8 a;"), event(1, "u8 b;"));
    let parsed = parse(twice.as_bytes());
    assert_eq!(anomalies(&parsed)[0].2, "duplicate event 1 `e1`");
}

#[test]
fn what_nobody_knows_is_noted_and_passed_over() {
    let text = format!(
        "{TRACE}{U8}galaxy {{ stars {{ 1 }}; }}; callsite {{ name = x; func = \"f\"; }};
         stream {{ colour = red; }};
         event {{ name = a; shape := struct {{ u8 x; }}; fields := struct {{
             integer {{ size = 8; taste = sour; }} y; }}; }};"
    );
    let parsed = parse(text.as_bytes());
    let found: Vec<_> = anomalies(&parsed).iter().map(|a| (a.0, a.2)).collect();
    let expected = [
        "block `galaxy`",
        "stream attribute `colour`",
        "event attribute `shape`",
        "integer attribute `taste`",
    ];
    assert_eq!(found, expected.map(|what| ("METADATA_UNKNOWN", what)));
    assert_eq!(event_names(&parsed.trace), ["a"]);
}

#[test]
fn integers_written_alike_have_their_own_places() {
    let odd = "integer { size = 8; odd = 1; }";
    let timed = "integer { size = 8; map = clock.none.value; }";
    let tricky = "integer { size = /* } */ 8; }";
    let fields = format!("{odd} a; {odd} b; {tricky} c; {tricky} d;");
    let (first, second) = (format!("{timed} a;"), format!("{timed} b;"));
    let text = format!(
        "{TRACE}{}{}{}",
        event(0, &fields),
        event(1, &first),
        event(2, &second)
    );
    let parsed = parse(text.as_bytes());
    let unknown = text.match_indices("odd").map(|(at, _)| {
        let what = "integer attribute `odd`";
        ("METADATA_UNKNOWN", at as u64, what)
    });
    let clocks = text.match_indices(timed).map(|(at, _)| {
        let what = "the clock `none` is not declared";
        ("METADATA_DAMAGED", at as u64, what)
    });
    let expected: Vec<_> = unknown.chain(clocks).collect();
    assert_eq!(anomalies(&parsed), expected);
    assert_eq!(expected.len(), 4);
    let payload = parsed.trace.streams[0].events[0].payload.as_ref().unwrap();
    assert!(
        payload
            .members
            .iter()
            .all(|member| member.class == payload.members[0].class)
    );
    assert_eq!(payload.members.len(), 4);
}

/// Each is refused, or used without the harmful part, in little time and memory.
#[test]
fn text_made_to_do_harm_is_stopped_by_limits() {
    let nested = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        format!("{TRACE}{U8}event {{ name = a; fields := struct {{ {open} u8 x; {close} }}; }};")
    };
    let mut doubled = format!("{TRACE}{U8}struct s0 {{ u8 a; u8 b; }};\n");
    let mut chained = format!("{TRACE}{U8}struct s0 {{ u8 a; }};\n");
    for level in 1..60 {
        let below = level - 1;
        writeln!(
            doubled,
            "struct s{level} {{ struct s{below} a; struct s{below} b; }};"
        )
        .unwrap();
    }
    for level in 1..100_000 {
        let below = level - 1;
        writeln!(chained, "struct s{level} {{ struct s{below} a; }};").unwrap();
    }
    doubled.push_str("event { name = a; fields := struct s59; };");
    let array = format!(
        "{TRACE}{U8}event {{ name = a; fields := struct {{ u8 x{}; }}; }};",
        "[2]".repeat(100_000)
    );
    let labels = format!(
        "{TRACE}enum e : integer {{ size = 8; }} {{ {} }}; event {{ name = a; fields := struct {{ {} }}; }};",
        "a,".repeat(10_000),
        "enum e x;".repeat(10_000)
    );
    let odd = format!("{TRACE}{}", "x {};".repeat(100_000));
    let texts = [
        nested("struct {", "} y;"),
        nested("variant <t> {", "} y;"),
        nested("integer {", "}"),
        nested("enum : ", ""),
        doubled,
        chained,
        array,
        labels,
        odd,
        format!("{TRACE}{}", "unknown {".repeat(1_000_000)),
        format!("{TRACE}{}", "typealias ".repeat(1_000_000)),
        format!("{CTF2}\u{1E}{}", "[".repeat(1_000_000)),
        format!("{CTF2}\u{1E}{}", "{\"a\":".repeat(1_000_000)),
    ];
    for text in texts {
        let begin: String = text.chars().skip(TRACE.len()).take(60).collect();
        let limited = match parse_metadata(text.as_bytes()) {
            Ok(parsed) => !parsed.anomalies.is_empty(),
            Err(_) => true,
        };
        assert!(limited, "{begin}");
    }
    let too_long = vec![b' '; 17 << 20];
    assert!(matches!(
        parse_metadata(&too_long),
        Err(MetadataError::TooLarge { .. })
    ));
}

#[test]
fn aliases_that_double_again_and_again_are_stopped() {
    let structure = |below: usize| {
        let class = |name: &str| format!("{{\"name\":\"{name}\",\"field-class\":\"s{below}\"}}");
        format!(
            "{{\"type\":\"structure\",\"member-classes\":[{},{}]}}",
            class("a"),
            class("b")
        )
    };
    let mut text = CTF2.to_owned();
    let mut alias = |name: usize, class: &str| {
        let head = "\u{1E}{\"type\":\"field-class-alias\",\"name\":";
        writeln!(text, "{head}\"s{name}\",\"field-class\":{class}}}").unwrap();
    };
    alias(0, "{\"type\":\"null-terminated-string\"}");
    for level in 1..25 {
        alias(level, &structure(level - 1));
    }
    let event = "\"type\":\"event-record-class\",\"payload-field-class\":\"s24\"";
    text.push_str("\u{1E}{\"type\":\"data-stream-class\"}\n");
    writeln!(text, "\u{1E}{{{event}}}").unwrap();
    let parsed = parse(text.as_bytes());
    let found = anomalies(&parsed);
    assert_eq!(found[0].0, "METADATA_DAMAGED");
    assert!(found[0].2.contains("more than 524288 fields"), "{found:?}");
    // A class must not contain itself.
    let own = format!(
        "{CTF2}\u{1E}{{\"type\":\"field-class-alias\",\"name\":\"s0\",\"field-class\":{}}}\n\
         \u{1E}{{\"type\":\"data-stream-class\",\"packet-context-field-class\":\"s0\"}}",
        structure(0)
    );
    let error = parse_metadata(own.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("`s0` is not declared before"), "{error}");
}

#[test]
fn magic_names_become_roles() {
    let text = "/* CTF 1.8 */
        typealias integer { size = 8; } := u8; typealias integer { size = 32; } := u32;
        trace {
            major = 1; minor = 8; byte_order = be;
            uuid = \"01234567-89ab-cdef-0123-456789abcdef\";
            packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u32 stream_instance_id; };
        };
        clock { name = c; freq = 1000; offset_s = -3; offset = 1500; precision = 2; absolute = TRUE; };
        stream {
            id = 9;
            packet.context := struct {
                u32 timestamp_begin; u32 timestamp_end; u32 content_size; u32 packet_size;
                u32 packet_seq_num; u32 events_discarded; u32 cpu_id; u32 other;
            };
            event.header := struct {
                enum : u8 { compact = 0 ... 254, extended = 255 } id;
                variant <id> {
                    struct { integer { size = 27; map = clock.c.value; } timestamp; } compact;
                    struct { u32 id; u32 timestamp; } extended;
                } v;
            };
        };";
    let trace = parse(text.as_bytes()).trace;
    assert_eq!(trace.byte_order, ByteOrder::Big);
    assert_eq!(trace.uuid.unwrap()[..3], [0x01, 0x23, 0x45]);
    let shown = format!("{trace:?}");
    let roles = [
        Role::PacketMagic,
        Role::MetadataUuid,
        Role::StreamClassId,
        Role::StreamId,
        Role::Timestamp,
        Role::PacketEndTimestamp,
        Role::PacketContentLength,
        Role::PacketTotalLength,
        Role::PacketSequenceNumber,
        Role::DiscardedEvents,
        Role::CpuId,
        Role::EventClassId,
    ];
    for role in roles {
        let times = shown.matches(&format!("roles: [{role:?}]")).count();
        let expected = match role {
            Role::EventClassId => 2,
            Role::Timestamp => 3,
            _ => 1,
        };
        assert_eq!(times, expected, "{role:?}");
    }
    // Times without a clock use the only clock of the trace.
    assert_eq!(shown.matches("clock: Some(0)").count(), 5);
    let stream = &trace.streams[0];
    assert_eq!((stream.id, stream.clock), (9, Some(0)));
    let clock = &trace.clocks[0];
    let offset = (clock.offset_seconds, clock.offset_cycles);
    assert_eq!(
        (clock.frequency, offset, clock.precision),
        (1000, (-3, 1500), Some(2))
    );
    assert!(clock.absolute);
}

#[test]
fn a_trace_without_a_clock_counts_nanoseconds() {
    let text = format!("{TRACE}{U8}stream {{ event.header := struct {{ u8 timestamp; }}; }};");
    let trace = parse(text.as_bytes()).trace;
    assert_eq!(trace.clocks.len(), 1);
    assert_eq!(trace.clocks[0].frequency, 1_000_000_000);
    assert_eq!(trace.streams[0].clock, Some(0));
    let text = format!("{TRACE}{U8}stream {{ event.header := struct {{ u8 id; }}; }};");
    assert!(parse(text.as_bytes()).trace.clocks.is_empty());
}

#[test]
fn a_structure_is_aligned_like_its_members() {
    let cases = [
        ("u8 a;", 8),
        ("integer { size = 3; } a;", 1),
        ("integer { size = 16; align = 32; } a; u8 b;", 32),
        ("integer { size = 8; align = 64; } a[0];", 64),
        (
            "u8 n; struct { integer { size = 8; align = 16; } a; } b[n];",
            16,
        ),
        ("string s;", 8),
        (
            "enum : u8 { A } t; variant <t> { integer { size = 8; align = 64; } A; } v;",
            8,
        ),
        ("struct { } align(128) a;", 128),
        (
            "floating_point { exp_dig = 8; mant_dig = 24; align = 4; } a;",
            4,
        ),
    ];
    for (fields, alignment) in cases {
        let parsed = parse(format!("{TRACE}{U8}{}", event(0, fields)).as_bytes());
        assert!(parsed.anomalies.is_empty(), "{fields}");
        let payload = parsed.trace.streams[0].events[0].payload.as_ref();
        assert_eq!(payload.unwrap().alignment, alignment, "{fields}");
    }
}
