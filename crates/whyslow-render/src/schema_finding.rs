//! JSON Schema of the report of `explain`. A test compares it with real output.

use serde_json::{Map, Value, json};
use whyslow_explain::SCHEMA;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// `explain --format json`.
pub fn report() -> Value {
    let mut schema = object(vec![
        ("schema", json!({"const": SCHEMA})),
        (
            "judged",
            one_of(&["findings", "nothing_slow", "cannot_tell"]),
        ),
        ("reasons", list(reason())),
        ("recording", text()),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("trigger", or_null(trigger())),
        ("marks", list(mark())),
        ("findings", list(finding())),
        ("lost_events", or_null(whole())),
        ("lost_share", number()),
        ("fine", list(resource())),
        ("observations", list(observation())),
        ("patterns", list(pattern())),
        ("tracer_share", or_null(number())),
        ("caveats", list(text())),
    ]);
    schema["$schema"] = json!(DRAFT);
    schema["title"] = json!("whyslow explanation");
    schema
}

/// Why a recording cannot show what was slow.
fn reason() -> Value {
    let ids = [
        "nothing_recorded",
        "calls_not_recorded",
        "no_operations",
        "averages_only",
        "events_lost",
        "no_requests",
    ];
    object(vec![
        ("id", one_of(&ids)),
        ("summary", text()),
        ("next", text()),
    ])
}

fn object(fields: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let required = json!(required);
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn or_null(of: Value) -> Value {
    json!({"oneOf": [{"type": "null"}, of]})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "number"})
}

fn whole() -> Value {
    json!({"type": "integer"})
}

/// Timestamps since 1970 and durations.
fn ns() -> Value {
    json!({"description": "ns", "type": "integer"})
}

fn one_of(words: &[&str]) -> Value {
    json!({"enum": words})
}

fn grade() -> Value {
    one_of(&["A", "B", "C"])
}

fn actor() -> Value {
    let kinds = [
        "own",
        "process",
        "kernel",
        "device",
        "peer",
        "timer",
        "cgroup",
        "interrupt",
        "cpu",
        "unknown",
    ];
    let actor = object(vec![
        ("kind", one_of(&kinds)),
        ("name", text()),
        ("pid", or_null(whole())),
        ("tid", or_null(whole())),
    ]);
    with_optional(actor, "host", text())
}

/// Adds an optional property.
fn with_optional(mut schema: Value, name: &str, of: Value) -> Value {
    schema["properties"][name] = of;
    schema
}

/// A request to another host.
fn crossing() -> Value {
    let clock = object(vec![
        ("low_ns", ns()),
        ("high_ns", ns()),
        ("pairs", whole()),
    ]);
    let crossing = object(vec![
        ("request", whole()),
        ("recording", or_null(text())),
        ("host", or_null(text())),
        ("server_request", or_null(whole())),
        ("joined_by", or_null(one_of(&["connection", "trace"]))),
        ("grade", grade()),
        ("waited_ns", ns()),
        ("served_ns", ns()),
        ("between_ns", ns()),
        ("clock", or_null(clock)),
        ("contradicting", whole()),
        ("summary", text()),
    ]);
    with_optional(crossing, "from_host", text())
}

fn activity() -> Value {
    object(vec![
        ("call", text()),
        ("path", or_null(text())),
        ("begin_ns", ns()),
        ("end_ns", or_null(ns())),
        ("id", or_null(text())),
    ])
}

fn thing() -> Value {
    object(vec![("kind", text()), ("name", text())])
}

fn part() -> Value {
    let part = object(vec![
        ("mechanism", text()),
        ("root", text()),
        ("culprit", actor()),
        ("activity", or_null(activity())),
        ("object", or_null(thing())),
        ("dur_ns", ns()),
        ("share", number()),
        ("grade", grade()),
        ("pieces", whole()),
        ("evidence", list(text())),
        ("shown_by", or_null(text())),
    ]);
    with_optional(part, "client", actor())
}

fn hop() -> Value {
    object(vec![
        ("actor", actor()),
        ("what", text()),
        ("mechanism", text()),
        ("activity", or_null(activity())),
        ("object", or_null(thing())),
        ("stack", list(text())),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("grade", grade()),
        ("evidence", text()),
        ("shown_by", or_null(text())),
    ])
}

fn versus() -> Value {
    let difference = object(vec![
        ("mechanism", text()),
        ("culprit", actor()),
        ("here_ns", ns()),
        ("there_ns", ns()),
    ]);
    object(vec![
        ("recording", text()),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("per", one_of(&["call", "second"])),
        ("here", whole()),
        ("there", whole()),
        ("mean_here_ns", ns()),
        ("mean_there_ns", or_null(ns())),
        ("differences", list(difference)),
    ])
}

fn group() -> Value {
    let excess = object(vec![
        ("mechanism", text()),
        ("culprit", actor()),
        ("delta_ns", ns()),
        ("share", number()),
        ("share_low", number()),
        ("share_high", number()),
        ("dominance", number()),
    ]);
    object(vec![
        ("operation", text()),
        ("count", whole()),
        ("all", or_null(whole())),
        ("dur_ns_total", ns()),
        ("dur_ns_max", ns()),
        ("walked", whole()),
        ("compared", whole()),
        ("excess", list(excess)),
    ])
}

/// Kinds of targets of a finding.
const KINDS: [&str; 12] = [
    "operation",
    "block",
    "reclaim",
    "thread",
    "window",
    "device",
    "lookup",
    "query",
    "request",
    "lock",
    "call",
    // From profiles.
    "gap",
];

/// A lock that blocks threads for much of their time.
fn contention() -> Value {
    object(vec![
        ("kind", text()),
        ("lock", text()),
        ("holder", actor()),
        ("holder_share", number()),
        ("threads", whole()),
        ("waits", whole()),
        ("waited_ns", ns()),
        ("wall_ns", ns()),
        ("share", number()),
        ("end_ns", ns()),
        ("callsite", list(text())),
    ])
}

fn finding() -> Value {
    let target = object(vec![
        ("kind", one_of(&KINDS)),
        ("id", or_null(text())),
        ("what", text()),
        ("actor", actor()),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("cut", or_null(text())),
    ]);
    let baseline = object(vec![
        ("median_ns", ns()),
        ("count", whole()),
        ("of", text()),
        ("result", text()),
    ]);
    let alternative = object(vec![("part", whole()), ("summary", text())]);
    let also = object(vec![
        ("what", text()),
        ("id", or_null(text())),
        ("actor", actor()),
        ("begin_ns", ns()),
        ("dur_ns", ns()),
        ("count", whole()),
    ]);
    let neighbour = object(vec![
        ("actor", actor()),
        ("what", text()),
        ("bytes", or_null(whole())),
        ("cpu_ns", or_null(ns())),
    ]);
    let missing = object(vec![
        ("events", text()),
        ("decides", text()),
        ("record_with", text()),
    ]);
    let finding = object(vec![
        ("target", target),
        ("is_trigger", json!({"type": "boolean"})),
        ("why", text()),
        ("who", text()),
        ("victims", list(victim())),
        ("sure", text()),
        ("timeline", list(timeline_row())),
        ("ended_ns", or_null(ns())),
        ("advice", list(advice())),
        ("group", or_null(group())),
        ("contention", or_null(contention())),
        ("versus", or_null(versus())),
        ("baseline", or_null(baseline)),
        ("verdict", text()),
        ("confidence", one_of(&["none", "low", "medium", "high"])),
        ("score", number()),
        ("culprit", or_null(whole())),
        ("parts", list(part())),
        ("chain", list(hop())),
        ("unexplained_ns", ns()),
        ("saved_at_most_ns", ns()),
        ("alternatives", list(alternative)),
        ("also", list(also)),
        ("neighbours", list(neighbour)),
        ("missing", list(missing)),
        ("suggestions", list(text())),
        ("caveats", list(text())),
        ("reproduce", text()),
    ]);
    let finding = with_optional(finding, "across", list(crossing()));
    with_optional(finding, "did", list(did()))
}

/// Calls of one kind that a request consisted of.
fn did() -> Value {
    object(vec![
        ("call", text()),
        ("path", or_null(text())),
        ("count", whole()),
        ("dur_ns", ns()),
        ("share", number()),
        ("bytes", or_null(whole())),
        ("id", text()),
    ])
}

/// What made a flight recorder save.
fn trigger() -> Value {
    object(vec![
        ("condition", or_null(text())),
        ("kind", or_null(one_of(&TRIGGER_KINDS))),
        ("what", text()),
        ("ts_ns", or_null(ns())),
        ("dur_ns", or_null(ns())),
        ("pid", or_null(whole())),
        ("tid", or_null(whole())),
        ("id", or_null(text())),
        ("missing", or_null(text())),
    ])
}

const TRIGGER_KINDS: [&str; 7] = [
    "request", "call", "block", "sched", "dns", "lock", "pressure",
];

/// A marker, and the first slow operation near it.
fn mark() -> Value {
    object(vec![
        ("ts_ns", ns()),
        ("text", text()),
        ("id", or_null(text())),
        ("summary", text()),
    ])
}

fn victim() -> Value {
    object(vec![
        ("actor", actor()),
        ("what", text()),
        ("count", whole()),
        ("of", or_null(whole())),
        ("dur_ns_max", ns()),
        ("usual_ns", or_null(ns())),
        ("id", or_null(text())),
    ])
}

fn timeline_row() -> Value {
    object(vec![
        ("role", one_of(&["culprit", "between", "victim"])),
        ("label", text()),
        ("what", text()),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("cut", or_null(one_of(&["begin", "end", "both"]))),
        ("id", or_null(text())),
    ])
}

fn advice() -> Value {
    object(vec![
        ("kind", one_of(&["now", "fix", "next"])),
        ("text", text()),
        ("command", or_null(text())),
    ])
}

/// A resource of the machine.
fn resource() -> Value {
    let states = ["fine", "high", "none_happened", "not_recorded"];
    object(vec![
        ("topic", one_of(&["cpu", "disk", "memory", "network"])),
        ("state", one_of(&states)),
        ("summary", text()),
        ("record_with", or_null(text())),
    ])
}

fn observation() -> Value {
    object(vec![
        ("kind", text()),
        ("culprit", actor()),
        ("object", or_null(thing())),
        ("begin_ns", ns()),
        ("end_ns", ns()),
        ("summary", text()),
        ("numbers", pairs()),
        ("evidence", list(text())),
        ("shown_by", or_null(text())),
        ("suggestions", list(text())),
    ])
}

/// Pairs of name and value.
fn pairs() -> Value {
    list(json!({"type": "array", "prefixItems": [text(), number()], "minItems": 2, "maxItems": 2}))
}

fn pattern() -> Value {
    let classes = [
        "heavy_load",
        "shifted",
        "one_device",
        "one_operation",
        "periodic",
        "rare_contention",
        "insufficient",
    ];
    let test = json!({
        "description": "Name, whether it fired, its numbers as text.",
        "type": "array", "prefixItems": [text(), {"type": "boolean"}, text()],
        "minItems": 3, "maxItems": 3,
    });
    object(vec![
        ("class", one_of(&classes)),
        ("summary", text()),
        ("tests", list(test)),
        ("hints", list(text())),
        ("numbers", pairs()),
        ("more", or_null(whole())),
    ])
}
