//! Events rendered as a name and their fields as text: user-space tracepoints, user markers, and
//! events of tracers other than LTTng.

use std::fmt::Write as _;

use crate::importers::ctf::class::{FieldClass, Mapping, StructClass};
use crate::importers::tracepoint::Fields;
use crate::importers::tracepoint::value::Value;

#[derive(Debug)]
pub(super) struct RenderedClass {
    pub(super) name: String,
    fields: Vec<RenderedField>,
}

#[derive(Debug)]
struct RenderedField {
    path: String,
    labels: Vec<Mapping>,
}

/// Longer values are truncated: a marker is a line for display, the trace still has the bytes.
const VALUE_BYTES_MAX: usize = 4096;

impl RenderedClass {
    pub(super) fn new(name: &str, payload: Option<&StructClass>) -> (RenderedClass, Vec<String>) {
        let mut fields = Vec::new();
        if let Some(payload) = payload {
            leaves("", payload, &mut fields);
        }
        let paths = fields.iter().map(|field| field.path.clone()).collect();
        let name = name.to_owned();
        (RenderedClass { name, fields }, paths)
    }

    /// `name = value, …`; a single text is rendered without its name.
    pub(super) fn render(&self, values: &Fields<'_, '_>, out: &mut String) {
        out.clear();
        if let ([_], Value::Str(text)) = (&self.fields[..], values.value(0)) {
            out.push_str(String::from_utf8_lossy(text).trim_end());
            return;
        }
        for (slot, field) in self.fields.iter().enumerate() {
            let value = values.value(slot);
            if value == Value::Absent {
                continue;
            }
            let separator = if out.is_empty() { "" } else { ", " };
            let _ = write!(out, "{separator}{} = ", field.path);
            field.render(value, out);
        }
    }
}

impl RenderedField {
    fn render(&self, value: Value<'_>, out: &mut String) {
        let number = match value {
            Value::Unsigned(value) => Some(i128::from(value)),
            Value::Signed(value) => Some(i128::from(value)),
            _ => None,
        };
        let label = number.and_then(|number| {
            let in_range = |mapping: &&Mapping| {
                let mut ranges = mapping.ranges.iter();
                ranges.any(|range| (range.first..=range.last).contains(&number))
            };
            self.labels.iter().find(in_range)
        });
        if let Some(label) = label {
            out.push_str(&label.label);
            return;
        }
        // writing to a String cannot fail
        let _ = match value {
            Value::Absent => Ok(()),
            Value::Unsigned(value) => write!(out, "{value}"),
            Value::Signed(value) => write!(out, "{value}"),
            Value::Float(value) => write!(out, "{value}"),
            Value::Str(text) => {
                let text = &text[..text.len().min(VALUE_BYTES_MAX)];
                write!(out, "\"{}\"", String::from_utf8_lossy(text).escape_debug())
            }
            Value::Bytes(bytes) => {
                let mut bytes = bytes.iter().take(VALUE_BYTES_MAX);
                bytes.try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            Value::Ints(values) => write!(out, "{:?}", &values[..values.len().min(64)]),
        };
    }
}

/// Paths of the fields with a single value. Arrays of structures are left out, and so are the
/// lengths of sequences, which are evident from the values.
fn leaves(prefix: &str, class: &StructClass, out: &mut Vec<RenderedField>) {
    for member in &class.members {
        let path = format!("{prefix}{}", member.name);
        let name = member.name.as_str();
        let is_length = name.strip_suffix("_length").is_some_and(|array| {
            let array = array.strip_prefix('_').unwrap_or(array);
            let mut names = class.members.iter().map(|member| member.name.as_str());
            names.any(|name| name == array)
        });
        if !is_length {
            leaf(path, &member.class, out);
        }
    }
}

fn leaf(path: String, class: &FieldClass, out: &mut Vec<RenderedField>) {
    match class {
        FieldClass::Struct(inner) => leaves(&format!("{path}."), inner, out),
        FieldClass::Optional { class, .. } => leaf(path, class, out),
        FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. }
            if matches!(
                **element,
                FieldClass::Struct(_) | FieldClass::Variant { .. }
            ) => {}
        FieldClass::Variant { options, .. } => {
            let is_struct = |class: &FieldClass| matches!(class, FieldClass::Struct(_));
            for option in options.iter().filter(|option| is_struct(&option.class)) {
                let name = option.name.as_deref().unwrap_or_default();
                leaf(format!("{path}.{name}"), &option.class, out);
            }
            if options.iter().any(|option| !is_struct(&option.class)) {
                let labels = Vec::new();
                out.push(RenderedField { path, labels });
            }
        }
        FieldClass::Integer(integer) | FieldClass::VariableInteger(integer) => {
            let labels = integer.mappings.clone();
            out.push(RenderedField { path, labels });
        }
        _ => out.push(RenderedField {
            path,
            labels: Vec::new(),
        }),
    }
}
