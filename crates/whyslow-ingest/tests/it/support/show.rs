//! Metadata classes as lines of text, as printed by `event_classes.py`.

use std::collections::BTreeSet;

use whyslow_ingest::importers::ctf::class::{
    FieldClass, FieldLocation, IntegerClass, IntegerKind, Range, Role, Scope, StructClass,
    TraceClass,
};

/// All scopes except those that babeltrace2 does not expose, one per line.
pub(crate) fn trace(trace: &TraceClass) -> Vec<String> {
    let mut lines = Vec::new();
    for stream in &trace.streams {
        let mut show = |place: &str, scope: &str, class: Option<&StructClass>| {
            if let Some(class) = class
                && class.members.iter().any(|member| is_shown(&member.class))
            {
                let class = show_struct(class);
                lines.push(format!("{}\t{place}\t{scope}\t{class}", stream.id));
            }
        };
        show("-\t-", "packet-context", stream.packet_context.as_ref());
        show("-\t-", "event-context", stream.event_context.as_ref());
        for event in &stream.events {
            let place = format!("{}\t{}", event.id, event.name);
            show(&place, "specific-context", event.context.as_ref());
            show(&place, "payload", event.payload.as_ref());
        }
        for event in &stream.events {
            lines.push(format!(
                "{}\t{}\t{}\tevent",
                stream.id, event.id, event.name
            ));
        }
    }
    lines
}

/// babeltrace2 does not expose fields used only by the reader.
fn is_shown(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(integer) => integer.roles.iter().all(|role| *role == Role::CpuId),
        _ => true,
    }
}

fn show_struct(class: &StructClass) -> String {
    let members = class.members.iter().filter(|m| is_shown(&m.class));
    let shown = members.map(|member| format!("{}={}", member.name, show(&member.class)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(" "))
}

fn show(class: &FieldClass) -> String {
    match class {
        FieldClass::Integer(integer) => show_integer(integer),
        FieldClass::Float { .. } => "real".to_owned(),
        FieldClass::Text { .. }
        | FieldClass::StaticText { .. }
        | FieldClass::DynamicText { .. } => "text".to_owned(),
        FieldClass::Struct(class) => show_struct(class),
        FieldClass::Array {
            element, length, ..
        } => format!("[{length}]{}", show(element)),
        FieldClass::Sequence {
            element, length, ..
        } => format!("[{}]{}", show_location(length), show(element)),
        FieldClass::Variant { selector, options } => {
            let shown = options.iter().map(|option| {
                let name = option.name.as_deref().unwrap_or_default();
                format!(
                    "{name}({})={}",
                    show_ranges(&option.ranges),
                    show(&option.class)
                )
            });
            let shown = shown.collect::<Vec<_>>().join(" ");
            format!("<{}>{{{shown}}}", show_location(selector))
        }
        other => panic!("not in CTF 1.8: {other:?}"),
    }
}

fn show_integer(integer: &IntegerClass) -> String {
    let sign = match integer.kind {
        IntegerKind::Signed => 's',
        _ => 'u',
    };
    let plain = format!("{sign}{}/{}", integer.bits, integer.base);
    if integer.mappings.is_empty() {
        return plain;
    }
    let labels = integer.mappings.iter();
    let labels: BTreeSet<(&str, String)> = labels
        .map(|mapping| (mapping.label.as_str(), show_ranges(&mapping.ranges)))
        .collect();
    let labels: Vec<String> = labels.iter().map(|(l, r)| format!("{l}:{r}")).collect();
    format!("{plain}|{}|", labels.join(" "))
}

fn show_ranges(ranges: &[Range]) -> String {
    let ends: BTreeSet<(i128, i128)> = ranges.iter().map(|r| (r.first, r.last)).collect();
    let shown = ends.iter().map(|(first, last)| format!("{first}..{last}"));
    shown.collect::<Vec<_>>().join(",")
}

fn show_location(location: &FieldLocation) -> String {
    let scope = match location.scope {
        Scope::PacketContext => "packet-context",
        Scope::EventContext => "event-context",
        Scope::SpecificContext => "specific-context",
        Scope::Payload => "payload",
        other => panic!("babeltrace2 does not show {other:?}"),
    };
    format!("{scope}:{}", location.path.join("."))
}
