//! Maps the groups and keys of JSON output to the names in the tables of the same tools.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::columns::Scale;

/// Groups whose keys are those of the table without `/s`.
const RATES: [&str; 9] = [
    "process-and-context-switch",
    "swap-pages",
    "paging",
    "io-reads",
    "io-writes",
    "io-discard",
    "serial",
    "softnet",
    "sum-interrupts",
];
/// Keys in these groups that are not rates.
const NO_RATES: [&str; 5] = ["tps", "rtps", "wtps", "dtps", "blg_len"];
/// Values that sar reports twice, in outdated units.
const LEFT_OUT: [&str; 5] = ["rd_sec", "wr_sec", "dc_sec", "avgrq-sz", "avgqu-sz"];
/// Numbers that are part of the subject.
const NUMBERS: [&str; 3] = ["line", "number", "bus_number"];

/// Subject of the values of a group.
pub(super) fn subject(group: &str, values: &Map<String, Value>) -> Option<String> {
    let topic = match group {
        "net-nfs" => Some("nfs"),
        "net-nfsd" => Some("nfsd"),
        "net-etcp" => Some("tcp"),
        _ => None,
    };
    if let Some(topic) = topic {
        return Some(topic.to_owned());
    }
    if let Some(text) = values.values().find_map(Value::as_str) {
        return Some(if group == "node-load" {
            format!("node {text}")
        } else {
            text.to_owned()
        });
    }
    let number = NUMBERS.iter().find_map(|key| values.get(*key)?.as_u64());
    number.map(|number| number.to_string())
}

/// The name in the table, and the scale; none for keys that are not counters.
pub(super) fn named(group: &str, key: &str) -> Option<(String, Scale)> {
    if NUMBERS.contains(&key) || group == "disk" && LEFT_OUT.contains(&key) {
        return None;
    }
    let share = key.strip_suffix("-percent");
    let name: Cow<'_, str> = match group {
        _ if let Some(share) = share => format!("%{share}").into(),
        "avg-cpu" | "cpu-load" | "node-load" => format!("%{key}").into(),
        "disk" => match key {
            "util" | "rrqm" | "wrqm" | "drqm" => format!("%{key}").into(),
            "rkB" | "wkB" | "dkB" => format!("{key}/s").into(),
            key => key.into(),
        },
        "memory" | "hugepages" => match key {
            "inactive" => "kbinact".into(),
            key => format!("kb{key}").into(),
        },
        "interrupts" => return Some((key.to_owned(), Scale::of("intr/s"))),
        "psi-cpu" | "psi-io" | "psi-mem" => pressure(group, key)?.into(),
        "cpu-frequency" => "MHz".into(),
        "cpu-weighted-frequency" => "wghMHz".into(),
        "net-sock" | "net-sock6" => key.into(),
        group if RATES.contains(&group) || group.starts_with("net-") => {
            if NO_RATES.contains(&key) {
                key.into()
            } else {
                format!("{key}/s").into()
            }
        }
        _ => key.into(),
    };
    let scale = Scale::of(&name);
    Some((name.into_owned(), scale))
}

/// `some_avg10` of `psi-io` is `%sio-10`.
fn pressure(group: &str, key: &str) -> Option<String> {
    let (share, time) = key.split_once("_avg")?;
    let letter = share.chars().next()?;
    let of = group.strip_prefix("psi-")?;
    let dash = if time.is_empty() { "" } else { "-" };
    Some(format!("%{letter}{of}{dash}{time}"))
}
