//! Roles that CTF 1.8 assigns to fields by name.

use super::super::class::{ClockClass, FieldClass, IntegerClass, IntegerKind, Role, StructClass};

/// Default frequency of a clock.
pub(super) const DEFAULT_FREQUENCY: u64 = 1_000_000_000;
const UUID_BYTES: u64 = 16;

pub(super) fn mark_packet_header(header: &mut StructClass) {
    for member in &mut header.members {
        match (member.name.as_str(), &mut member.class) {
            ("magic", FieldClass::Integer(integer)) => integer.roles.push(Role::PacketMagic),
            ("stream_id", FieldClass::Integer(integer)) => {
                integer.roles.push(Role::StreamClassId);
            }
            ("stream_instance_id", FieldClass::Integer(integer)) => {
                integer.roles.push(Role::StreamId);
            }
            ("uuid", class) if is_uuid(class) => {
                *class = FieldClass::StaticBlob {
                    bytes: UUID_BYTES,
                    roles: vec![Role::MetadataUuid],
                };
            }
            _ => {}
        }
    }
}

fn is_uuid(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Array { element, length: UUID_BYTES, .. }
        if matches!(element.as_ref(), FieldClass::Integer(IntegerClass {
            bits: 8, kind: IntegerKind::Unsigned, alignment: 8, .. })))
}

pub(super) fn mark_packet_context(context: &mut StructClass) {
    for member in &mut context.members {
        let FieldClass::Integer(integer) = &mut member.class else {
            continue;
        };
        let role = match member.name.as_str() {
            "timestamp_begin" => Role::Timestamp,
            "timestamp_end" => Role::PacketEndTimestamp,
            "content_size" => Role::PacketContentLength,
            "packet_size" => Role::PacketTotalLength,
            "packet_seq_num" => Role::PacketSequenceNumber,
            "events_discarded" => Role::DiscardedEvents,
            "cpu_id" => Role::CpuId,
            _ => continue,
        };
        integer.roles.push(role);
    }
}

/// Including the `v` of LTTng, which contains the time and a long id.
pub(super) fn mark_event_header(header: &mut StructClass) {
    for member in &mut header.members {
        mark_event_header_field(Some(&member.name), &mut member.class);
    }
}

fn mark_event_header_field(name: Option<&str>, class: &mut FieldClass) {
    match class {
        FieldClass::Integer(integer) => {
            if name == Some("id") {
                integer.roles.push(Role::EventClassId);
            } else if name == Some("timestamp") || integer.clock.is_some() {
                integer.roles.push(Role::Timestamp);
            }
        }
        FieldClass::Struct(class) => mark_event_header(class),
        FieldClass::Variant { options, .. } => {
            for option in options {
                mark_event_header_field(None, &mut option.class);
            }
        }
        _ => {}
    }
}

/// Assigns the trace's only clock to times without one; returns the clock of the stream.
///
/// A trace without a declared clock counts nanoseconds.
pub(super) fn assign_clock(
    classes: [Option<&mut StructClass>; 2],
    clocks: &mut Vec<ClockClass>,
) -> Result<Option<usize>, &'static str> {
    let mut times = Vec::new();
    for class in classes.into_iter().flatten() {
        collect_times(class, &mut times);
    }
    let mut clock = None;
    for time in times {
        if time.clock.is_none() {
            match clocks.len() {
                0 => clocks.push(nanosecond_clock()),
                1 => {}
                _ => return Err("a timestamp without a clock, and the trace has several"),
            }
            time.clock = Some(0);
        }
        clock = clock.or(time.clock);
    }
    Ok(clock)
}

fn collect_times<'c>(class: &'c mut StructClass, times: &mut Vec<&'c mut IntegerClass>) {
    for member in &mut class.members {
        collect_times_of_field(&mut member.class, times);
    }
}

fn collect_times_of_field<'c>(class: &'c mut FieldClass, times: &mut Vec<&'c mut IntegerClass>) {
    match class {
        FieldClass::Integer(integer) => {
            let roles = &integer.roles;
            if roles.contains(&Role::Timestamp) || roles.contains(&Role::PacketEndTimestamp) {
                times.push(integer);
            }
        }
        FieldClass::Struct(class) => collect_times(class, times),
        FieldClass::Variant { options, .. } => {
            for option in options {
                collect_times_of_field(&mut option.class, times);
            }
        }
        _ => {}
    }
}

fn nanosecond_clock() -> ClockClass {
    ClockClass {
        name: "default".to_owned(),
        uuid: None,
        description: None,
        frequency: DEFAULT_FREQUENCY,
        offset_seconds: 0,
        offset_cycles: 0,
        precision: None,
        absolute: false,
    }
}
