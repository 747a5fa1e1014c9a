//! `iostat -o JSON`, `mpstat -o JSON`, `sadf -j`.
//!
//! Groups of values lie in groups; a value that is a text says whose they are. Names are those of the
//! text forms where they say what they count, elsewhere the group stands before them.

use serde_json::{Map, Value};
use whyslow_model::Ns;

use super::super::stamp::{self, SECOND_NS, Stamp};
use super::columns::Scale;
use super::{Of, Teller};

/// Ends that are tried of a file that nobody finished.
const ENDS_MAX: usize = 64;
/// Groups in groups.
const DEPTH_MAX: usize = 12;

pub(super) fn read(report: &str, teller: &mut Teller) {
    let whole = match serde_json::from_str::<Value>(report) {
        Ok(whole) => whole,
        Err(error) => {
            let what = format!(
                "JSON that breaks off or is damaged ({error}); what stands before was used"
            );
            teller.bad(error.line(), report.len(), what);
            let Some(begin) = mended(report) else { return };
            begin
        }
    };
    let hosts = whole["sysstat"]["hosts"].as_array();
    for host in hosts.into_iter().flatten() {
        if let Some(name) = host["nodename"].as_str() {
            teller.fact("hostname", name);
        }
        if let Some(release) = host["release"].as_str() {
            teller.fact("kernel_release", release);
        }
        let date = host["date"]
            .as_str()
            .and_then(|date| stamp::date(date, teller.written));
        if let Some(date) = date {
            teller.clock.set_date(date);
        }
        let mut before = None;
        for (number, statistics) in host["statistics"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let Value::Object(groups) = statistics else {
                continue;
            };
            if let Err(what) = one(groups, (number == 0, &mut before), teller) {
                teller.bad(1, 0, format!("statistics {}: {what}", number + 1));
            }
        }
    }
}

/// What was measured at one time.
fn one(
    groups: &Map<String, Value>,
    (is_first, before): (bool, &mut Option<Ns>),
    teller: &mut Teller,
) -> Result<(), String> {
    let (time, told) = groups
        .get("timestamp")
        .and_then(|time| time_of(time, teller.written))
        .ok_or("no time that is known (iostat -t)")?;
    let at = teller.at(time);
    let is_iostat = groups.contains_key("avg-cpu") || told.is_none() && groups.contains_key("disk");
    let tool = match told {
        Some(_) => "sar",
        None if is_iostat => "iostat",
        None => "mpstat",
    };
    if is_iostat && is_first {
        teller.done.since_boot += 1;
        *before = Some(at);
        return Ok(());
    }
    let interval = told.or_else(|| before.map(|before| at.saturating_sub(before)));
    *before = Some(at);
    for (name, group) in groups {
        if name != "timestamp" {
            walk((name, group, 0), (tool, at, interval), teller)?;
        }
    }
    Ok(())
}

/// The time, and the length of the interval where it is told.
fn time_of(time: &Value, near: Option<Ns>) -> Option<(Stamp, Option<Ns>)> {
    let whole = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (stamp, taken) = stamp::stamp(&words, near)?;
        (taken == words.len()).then_some(stamp)
    };
    if let Some(text) = time.as_str() {
        return Some((whole(text)?, None));
    }
    let (date, of_day) = (time["date"].as_str()?, time["time"].as_str()?);
    let stamp = whole(&format!("{date} {of_day}"))?;
    let is_utc = time["utc"].as_i64() == Some(1);
    let stamp = match stamp {
        Stamp::Wall(at) if is_utc => Stamp::Epoch(at),
        stamp => stamp,
    };
    let interval = time["interval"].as_i64().unwrap_or(0);
    Some((stamp, Some(interval.saturating_mul(SECOND_NS))))
}

fn walk(
    (name, group, depth): (&str, &Value, usize),
    (tool, at, interval): (&str, Ns, Option<Ns>),
    teller: &mut Teller,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("groups in too many groups".to_owned());
    }
    match group {
        Value::Array(items) => {
            for item in items {
                walk((name, item, depth + 1), (tool, at, interval), teller)?;
            }
        }
        Value::Object(values) => {
            let mut told = String::new();
            let subject = values.values().find_map(Value::as_str);
            for (key, value) in values {
                match value {
                    Value::Number(number) => {
                        let (name, scale) = named(name, key);
                        scale.push(&mut told, &name, &number.to_string())?;
                    }
                    Value::Array(_) | Value::Object(_) => {
                        walk((key, value, depth + 1), (tool, at, interval), teller)?;
                    }
                    _ => {}
                }
            }
            let of = Of {
                tool,
                subject,
                ..Of::default()
            };
            teller.row(&of, (at, interval), &told);
        }
        _ => {}
    }
    Ok(())
}

/// The name that the text form has, and what it counts.
fn named(group: &str, key: &str) -> (String, Scale) {
    const RATES: [&str; 8] = [
        "process-and-context-switch",
        "swap-pages",
        "paging",
        "io-reads",
        "io-writes",
        "io-discard",
        "net-dev",
        "net-edev",
    ];
    const SIZES: [&str; 2] = ["memory", "hugepages"];
    let text = match group {
        _ if key.ends_with("-percent") => format!("%{}", key.trim_end_matches("-percent")),
        "avg-cpu" | "cpu-load" | "node-load" => format!("%{key}"),
        "disk" => match key {
            "util" | "rrqm" | "wrqm" | "drqm" => format!("%{key}"),
            "rkB" | "wkB" | "dkB" => format!("{key}/s"),
            key => key.to_owned(),
        },
        group if RATES.contains(&group) && key != "tps" => format!("{key}/s"),
        group if SIZES.contains(&group) => format!("kb{key}"),
        "interrupts" => return (key.to_owned(), Scale::of("intr/s")),
        "io" | "kernel" | "queue" | "filesystems" | "net-sock" | "net-sock6" => key.to_owned(),
        "psi-cpu" | "psi-io" | "psi-mem" => format!("%{}.{key}", group),
        "cpu-frequency" => return ("MHz".to_owned(), Scale::of("MHz")),
        group => format!("{group}.{key}"),
    };
    let scale = Scale::of(&text);
    (text, scale)
}

/// As much of it as is whole, with what closes it.
fn mended(report: &str) -> Option<Value> {
    let mut open: Vec<u8> = Vec::new();
    let mut ends: std::collections::VecDeque<(usize, Vec<u8>)> = std::collections::VecDeque::new();
    let (mut is_text, mut is_escaped) = (false, false);
    for (at, byte) in report.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    break;
                }
                if byte == b'}' {
                    ends.push_back((at + 1, open.clone()));
                    if ends.len() > ENDS_MAX {
                        ends.pop_front();
                    }
                }
            }
            _ => {}
        }
        if open.len() > DEPTH_MAX + 8 {
            break;
        }
    }
    ends.iter().rev().find_map(|(end, open)| {
        let closing: String = open.iter().rev().map(|byte| char::from(*byte)).collect();
        serde_json::from_str(&format!("{}{closing}", report.get(..*end)?)).ok()
    })
}
