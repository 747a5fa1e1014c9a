//! JSON Schema of the machine-readable formats.

use serde_json::{Value, json};

use crate::json::SCHEMA_VERSION;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// `--format json`.
pub fn answer() -> Value {
    let mut properties = head();
    properties["tables"] = json!({"type": "array", "items": table()});
    properties["losses"] = json!({"type": "array", "items": {
        "type": "object",
        "required": ["kind", "count", "cpu", "begin_ns", "end_ns"],
        "properties": loss(),
    }});
    properties["caveats"] = json!({
        "description": "Limitations of the data that affect how the tables must be read.",
        "type": "array", "items": {"type": "string"}});
    properties["next"] = json!({
        "description": "Suggested next command.", "type": ["string", "null"]});
    json!({
        "$schema": DRAFT,
        "title": "whyslow answer",
        "type": "object",
        "required": ["schema_version", "query", "window", "tables", "losses", "caveats"],
        "properties": properties,
    })
}

/// One line of `--format ndjson`.
pub fn ndjson() -> Value {
    let line = |kind: &str, required: &[&str], mut properties: Value| {
        properties["type"] = json!({"const": kind});
        let required: Vec<&str> = std::iter::once("type")
            .chain(required.iter().copied())
            .collect();
        json!({"type": "object", "required": required, "properties": properties})
    };
    let name = json!({"description": "Name of the table.", "type": "string"});
    json!({
        "$schema": DRAFT,
        "title": "one line of a whyslow answer",
        "oneOf": [
            line("answer", &["schema_version", "query", "window"], head()),
            line("row", &["table"], json!({"table": name})),
            line("facts", &["table", "facts"], json!({"table": name, "facts": {"type": "object"}})),
            line("loss", &["kind", "count", "cpu", "begin_ns", "end_ns"], loss()),
            line("caveat", &["text"], json!({"text": {"type": "string"}})),
        ],
    })
}

/// One line of `--progress=json`.
pub fn progress() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "one line of whyslow's progress",
        "type": "object",
        "required": ["type", "bytes", "events", "elapsed_ns"],
        "properties": {
            "type": {"const": "progress"},
            "bytes": {"description": "Bytes of the sources read so far.", "type": "integer"},
            "bytes_total": {"description": "Bytes to read, if known.", "type": ["integer", "null"]},
            "events": {"type": "integer"},
            "elapsed_ns": {"type": "integer"},
        },
    })
}

fn left_out() -> Value {
    let by_name = json!({
    "description": "Number and sum of each system call; empty for other rows.",
    "type": "array", "items": {
        "type": "object",
        "required": ["name", "count", "total_ns"],
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "total_ns": {"type": "integer"},
        }}});
    json!({
    "description": "Rows that match the query but are left out of the tables; absent if none are.",
    "type": "object",
    "required": ["what", "count", "total_ns", "by_name", "option"],
    "properties": {
        "what": {"description": "What they are: `waits for work`.", "type": "string"},
        "count": {"description": "Number of rows.", "type": "integer"},
        "total_ns": {"description": "Sum of their known durations.", "type": "integer"},
        "by_name": by_name,
        "option": {"description": "The option that includes them.", "type": "string"},
    }})
}

fn head() -> Value {
    json!({
        "schema_version": {"const": SCHEMA_VERSION},
        "query": {"description": "Kind and verb: `io stats`.", "type": "string"},
        "recording": {"type": "string"},
        "host": {"type": ["string", "null"]},
        "zone": {"description": "Zone of the recorded host.", "type": ["string", "null"]},
        "window": {
            "description": "Requested window, clipped to the recording.",
            "type": ["object", "null"],
            "properties": {
                "begin_ns": {"description": "ns since 1970", "type": "integer"},
                "end_ns": {"type": "integer"},
            },
        },
        "state": {
            "description": "State of the kind in the window: `recorded` (there are events), \
                `none_happened` (recorded, but there were none), `not_recorded`, or `unknown` (the \
                source does not state whether they were recorded). Null if the answer is not of \
                one kind.",
            "enum": ["recorded", "none_happened", "not_recorded", "unknown", null]},
        "reason": {
            "description": "Why there are no events; null if `recorded`.",
            "type": ["string", "null"]},
        "record_with": {
            "description": "What would record them: an option of `whyslow record`, or an instruction.",
            "type": ["string", "null"]},
        "left_out": left_out(),
        "cli": {"description": "Only from `serve`: equivalent command.", "type": "string"},
        "cut": {"description": "Only from `serve`: whether rows were omitted because of their number.",
            "type": "boolean"},
    })
}

fn table() -> Value {
    json!({
        "type": "object",
        "required": ["name", "form", "columns", "rows", "facts"],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "form": {"enum": ["table", "histogram", "heat_map", "tree", "facts"]},
            "columns": {"type": "array", "items": {
                "type": "object",
                "required": ["name", "title", "measure"],
                "properties": {
                    "name": {"description": "Key in the rows.", "type": "string"},
                    "title": {"type": "string"},
                    "measure": {"enum": [
                        "text", "path", "count", "time_ns", "duration_ns", "bytes", "ratio",
                        "per_second", "bytes_per_second", "number", "id"]},
                },
            }},
            "rows": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "outlier": {"description": "Outlier (`!` in text).", "type": "boolean"},
                    "overlap": {
                        "description": "Edge of the window that cuts the row (`*` in text); `lost` if \
                            events were lost between its start and its end.",
                        "enum": ["begin", "end", "both", "lost", null]},
                },
            }},
            "facts": {"description": "Filters, measured time, percentiles.", "type": "object"},
        },
    })
}

fn loss() -> Value {
    json!({
        "kind": {"enum": ["events", "packets", "bytes"]},
        "count": {"type": ["integer", "null"]},
        "cpu": {"type": ["integer", "null"]},
        "begin_ns": {"type": "integer"},
        "end_ns": {"type": ["integer", "null"]},
    })
}
