//! The records of the BPF programs and those of the spool are the same.

use whyslow_model::counter;
use whyslow_model::spool::{
    COMPAT, ELSEWHERE, ENTRY_RECORDED, HEAD_BYTES, IN_HARDIRQ, IN_SOFTIRQ, IN_TASK, Kind, Switch,
};

use crate::skeleton::types;

const WIRE: &str = include_str!("bpf/wire.h");

/// `RqComplete` → `RQ_COMPLETE`
fn upper(name: &str) -> String {
    let mut upper = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !upper.is_empty() {
            upper.push('_');
        }
        upper.extend(letter.to_uppercase());
    }
    upper
}

#[test]
fn kinds_have_the_same_numbers() {
    let of_kernel = |line: &str| {
        let (name, number) = line.trim().strip_prefix("WIRE_")?.split_once(" = ")?;
        Some((
            name.to_owned(),
            number.trim_end_matches(',').parse::<u16>().ok()?,
        ))
    };
    let in_wire: Vec<(String, u16)> = WIRE.lines().filter_map(of_kernel).collect();
    let known: Vec<(String, u16)> = Kind::ALL
        .iter()
        .map(|kind| (upper(&format!("{kind:?}")), *kind as u16))
        .collect();
    assert!(in_wire.len() > 20, "{in_wire:?}");
    for (name, number) in in_wire {
        let name = name.replace("GETRQ", "GET_RQ");
        assert!(known.contains(&(name.clone(), number)), "{name} {number}");
    }
}

#[test]
fn heads_and_flags_are_the_same() {
    assert_eq!(size_of::<types::wire_head>(), HEAD_BYTES);
    let define = |name: &str| {
        let line = WIRE
            .lines()
            .find(|line| line.starts_with(&format!("#define {name} ")));
        let value = line.and_then(|line| line.split_whitespace().nth(2));
        value.and_then(|value| value.parse::<u16>().ok())
    };
    assert_eq!(define("WIRE_COMPAT"), Some(COMPAT));
    assert_eq!(define("WIRE_ENTRY_RECORDED"), Some(ENTRY_RECORDED));
    let contexts = ["WIRE_IN_TASK", "WIRE_IN_SOFTIRQ", "WIRE_IN_HARDIRQ"].map(define);
    assert_eq!(contexts, [IN_TASK, IN_SOFTIRQ, IN_HARDIRQ].map(Some));
    assert_eq!(define("WIRE_ELSEWHERE"), Some(ELSEWHERE));
    let counters = [
        ("WIRE_IO_READ", counter::IO_READ),
        ("WIRE_IO_WRITTEN", counter::IO_WRITTEN),
        ("WIRE_IO_CANCELLED", counter::IO_CANCELLED),
    ];
    for (name, place) in counters {
        assert_eq!(define(name).map(u32::from), Some(place), "{name}");
    }
    assert!(WIRE.contains("#define WIRE_PREEMPTED (1u << 31)"));
    assert_eq!(Switch::PREEMPTED, 1 << 31);
}
