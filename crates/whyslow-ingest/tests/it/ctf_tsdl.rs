//! Every construct of TSDL, and the resulting classes.
//!
//! The expected results were printed by babeltrace2 for the same text (`support/event_classes.py`),
//! except for dotted and absolute references in some locations, which babeltrace2 cannot parse or
//! which fail an assertion.

use whyslow_ingest::importers::ctf::metadata::parse_metadata;

use crate::support::show;

const PRELUDE: &str = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
typealias integer { size = 8; } := u8;
typealias integer { size = 16; align = 16; } := u16;
typealias integer { size = 32; signed = true; } := int;
typealias integer { size = 64; } := unsigned long;
typealias integer { size = 64; base = x; } := unsigned long *;
typealias string { encoding = UTF8; } := str;
";

/// The text after the prelude declares the stream and event 0 `a`; the event is not shown.
fn check(text: &str, expected: &[&str]) {
    let parsed = parse_metadata(format!("{PRELUDE}{text}").as_bytes())
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(
        parsed.anomalies.is_empty(),
        "{:?}: {text}",
        parsed.anomalies
    );
    let lines = show::trace(&parsed.trace);
    let shown: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("0\t"))
        .filter(|line| !line.ends_with("\tevent"))
        .map(|line| {
            line.trim_start_matches("-\t-\t")
                .trim_start_matches("0\ta\t")
        })
        .collect();
    assert_eq!(shown, expected, "{text}");
}

fn check_payload(declarations: &str, fields: &str, expected: &str) {
    check(
        &format!("{declarations} event {{ name = a; fields := struct {{ {fields} }}; }};"),
        &[&format!("payload\t{expected}")],
    );
}

#[test]
fn arrays_nest_as_in_c() {
    check_payload(
        "",
        "u8 x[2][3]; u8 n; u8 m; u8 s[n][4]; u8 t[n][m]; u8 v[3][n];",
        "{x=[2][3]u8/10 n=u8/10 m=u8/10 s=[payload:n][4]u8/10 \
         t=[payload:n][payload:m]u8/10 v=[3][payload:n]u8/10}",
    );
}

#[test]
fn a_pointer_is_a_type_with_a_star_in_its_name() {
    check_payload(
        "",
        "unsigned long *p; unsigned long q, *r, w[2];",
        "{p=u64/16 q=u64/10 r=u64/16 w=[2]u64/10}",
    );
}

#[test]
fn a_typedef_declares_as_a_field_does() {
    check_payload(
        "typedef u8 t8, t8x4[4];",
        "t8 a; t8x4 b; t8x4 c[2];",
        "{a=u8/10 b=[4]u8/10 c=[2][4]u8/10}",
    );
}

#[test]
fn const_changes_nothing() {
    check_payload(
        "typealias integer { size = 8; } := const cc;",
        "const cc a;",
        "{a=u8/10}",
    );
}

#[test]
fn labels_count_on_from_the_last_range() {
    check_payload(
        "enum e1 : u8 { A, B = 5, C, \"d d\" = 10 ... 20, E, A = 40 };
         enum e2 { X = -5, Y, Z = -3 ... 3, W, };",
        "enum e1 a; enum e2 b; enum : u16 { P = 1 ... 2, P = 7 ... 9, Q = 2 } c; enum e1 d[2];",
        "{a=u8/10|A:0..0,40..40 B:5..5 C:6..6 E:21..21 d d:10..20| \
         b=s32/10|W:4..4 X:-5..-5 Y:-4..-4 Z:-3..3| \
         c=u16/10|P:1..2,7..9 Q:2..2| \
         d=[2]u8/10|A:0..0,40..40 B:5..5 C:6..6 E:21..21 d d:10..20|}",
    );
}

#[test]
fn structures_are_named_or_declared_where_they_are_used() {
    check_payload(
        "struct s1 { u8 a; u16 b; } align(64);
         struct s2 { struct s1 x; struct { u8 y; } z; };
         typealias struct { u8 x; u8 y; } := pair;",
        "u8 q; struct s1 a; struct s2 b[2]; struct s3 { u8 v; } c; struct s3 d; pair e[2];",
        "{q=u8/10 a={a=u8/10 b=u16/10} b=[2]{x={a=u8/10 b=u16/10} z={y=u8/10}} \
         c={v=u8/10} d={v=u8/10} e=[2]{x=u8/10 y=u8/10}}",
    );
}

#[test]
fn a_variant_takes_the_labels_of_its_tag() {
    check_payload(
        "variant v1 { u8 A; str B; struct { u8 x; } C; };",
        "enum : u8 { A, B, C } tag; variant v1 <tag> f;
         enum : u8 { C, B, A } tag2; variant v1 <tag2> g;
         struct { variant v1 <tag> h; enum : u8 { A = 3, B, C } tag; variant v1 <tag> i; } in;
         variant v2 <tag2> { u8 A; u8 B; u8 C; } k;",
        "{tag=u8/10|A:0..0 B:1..1 C:2..2| \
         f=<payload:tag>{A(0..0)=u8/10 B(1..1)=text C(2..2)={x=u8/10}} \
         tag2=u8/10|A:2..2 B:1..1 C:0..0| \
         g=<payload:tag2>{A(2..2)=u8/10 B(1..1)=text C(0..0)={x=u8/10}} \
         in={h=<payload:tag>{A(0..0)=u8/10 B(1..1)=text C(2..2)={x=u8/10}} \
         tag=u8/10|A:3..3 B:4..4 C:5..5| \
         i=<payload:in.tag>{A(3..3)=u8/10 B(4..4)=text C(5..5)={x=u8/10}}} \
         k=<payload:tag2>{A(2..2)=u8/10 B(1..1)=u8/10 C(0..0)=u8/10}}",
    );
}

#[test]
fn variants_nest() {
    check_payload(
        "",
        "enum : u8 { A, B } t; enum : u8 { C, D } u;
         variant <t> {
             variant <u> { u8 C; str D; } A;
             struct { u8 l; u8 s[l]; variant <u> { u8 C; u16 D; } w; } B;
         } v;",
        "{t=u8/10|A:0..0 B:1..1| u=u8/10|C:0..0 D:1..1| \
         v=<payload:t>{A(0..0)=<payload:u>{C(0..0)=u8/10 D(1..1)=text} \
         B(1..1)={l=u8/10 s=[payload:v.l]u8/10 \
         w=<payload:u>{C(0..0)=u8/10 D(1..1)=u16/10}}}}",
    );
}

#[test]
fn one_underscore_is_taken_from_fields_and_none_from_labels() {
    check_payload(
        "",
        "enum : u8 { A, _B, __B } _tag; variant <_tag> { str A; str _B; u8 __B; } _event;
         u8 __x_length; u8 _x[ __x_length ]; u8 _y[__x_length];",
        "{tag=u8/10|A:0..0 _B:1..1 __B:2..2| \
         event=<payload:tag>{A(0..0)=text B(1..1)=text _B(2..2)=u8/10} \
         _x_length=u8/10 x=[payload:_x_length]u8/10 y=[payload:_x_length]u8/10}",
    );
}

#[test]
fn references_reach_other_scopes_by_their_full_names() {
    check(
        "stream {
             packet.context := struct { u8 pc; };
             event.header := struct { u8 id; };
             event.context := struct { u8 ec; u8 ecs[stream.packet.context.pc]; };
         };
         event {
             name = a;
             context := struct { u8 sc; u8 scs[stream.event.context.ec]; };
             fields := struct {
                 u8 ps[event.context.sc];
                 struct {
                     u8 len;
                     u8 pp[event.fields.deep.len];
                     struct { u8 qq[len]; } e;
                 } deep;
                 u8 last[deep.len];
             };
         };",
        &[
            "packet-context\t{pc=u8/10}",
            "event-context\t{ec=u8/10 ecs=[packet-context:pc]u8/10}",
            "specific-context\t{sc=u8/10 scs=[event-context:ec]u8/10}",
            "payload\t{ps=[specific-context:sc]u8/10 \
             deep={len=u8/10 pp=[payload:deep.len]u8/10 e={qq=[payload:deep.len]u8/10}} \
             last=[payload:deep.len]u8/10}",
        ],
    );
}

#[test]
fn full_names_lead_through_the_variant_at_hand() {
    check_payload(
        "",
        "enum : u8 { A, B } t;
         variant <event.fields.t> {
             struct { u8 n; u8 x[event.fields.v.A.n]; } A;
             struct { u8 n; u8 y[event.fields.v.B.n]; } B;
         } v;",
        "{t=u8/10|A:0..0 B:1..1| v=<payload:t>{A(0..0)={n=u8/10 x=[payload:v.n]u8/10} \
         B(1..1)={n=u8/10 y=[payload:v.n]u8/10}}}",
    );
}

#[test]
fn a_scope_hides_the_declarations_around_it_from_there_on() {
    check(
        "event {
             typealias integer { size = 24; } := u8;
             name = a;
             fields := struct {
                 u8 a;
                 typealias integer { size = 40; } := u8;
                 u8 b;
                 struct { typedef u8 own; own c; } d;
             };
         };
         event { name = b; id = 1; fields := struct { u8 a; }; };",
        &[
            "payload\t{a=u24/10 b=u40/10 d={c=u40/10}}",
            "1\tb\tpayload\t{a=u8/10}",
        ],
    );
}

#[test]
fn blocks_may_declare_and_name_types() {
    check(
        "stream {
             event.header := struct hd { u8 id; };
             typealias integer { size = 16; align = 8; } := mine;
             event.context := struct { mine x; };
         };
         event { struct pl { u8 z; }; name = a; fields := struct pl; };",
        &["event-context\t{x=u16/10}", "payload\t{z=u8/10}"],
    );
}

#[test]
fn arrays_of_characters_are_texts() {
    check_payload(
        "typealias integer { size = 8; encoding = UTF8; } := ch;
         typealias integer { size = 8; encoding = ASCII; signed = true; } := char;",
        "ch a[10]; u8 n; ch b[n]; char c[3]; str d; string e; string { encoding = ASCII; } f;
         ch g; ch h[2][3];",
        "{a=text n=u8/10 b=text c=text d=text e=text f=text g=u8/10 h=[2]text}",
    );
}

#[test]
fn numbers_have_bases_sizes_and_signs() {
    check_payload(
        "",
        "integer { size = 8; base = 2; } a; integer { size = 8; base = octal; } b;
         integer { size = 8; base = hexadecimal; } c; integer { size = 8; base = u; } d;
         integer { size = 8; base = X; } e; integer { size = 8; base = o; } f;
         integer { size = 8; base = b; } g; integer { size = 5; signed = TRUE; } h;
         integer { size = 0x10; signed = 0; } i; integer { size = 010; signed = 1; } j;
         floating_point { exp_dig = 8; mant_dig = 24; align = 32; } k;
         floating_point { exp_dig = 11; mant_dig = 53; byte_order = be; } l;",
        "{a=u8/2 b=u8/8 c=u8/16 d=u8/10 e=u8/16 f=u8/8 g=u8/2 h=s5/10 i=u16/10 j=s8/10 \
         k=real l=real}",
    );
}
