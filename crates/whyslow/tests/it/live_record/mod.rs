//! `record` on this machine: recordings against strace, the kernel's counters and what the programs
//! report themselves.

mod across;
mod bad_disk;
mod blocks;
mod borders;
mod calls;
mod chosen;
mod compiled;
mod contended;
mod counted_lookups;
mod counters;
mod devices;
mod doctor;
mod ends;
mod fills;
mod first_minute;
mod flight;
mod flight_answers;
mod flight_requests;
mod followed;
mod forms;
mod functions;
mod host;
mod host_paths;
mod incidents;
mod ipis;
mod kernel;
mod kills;
mod live;
mod live_outliers;
mod lookups;
mod memory;
mod packets;
mod pressure;
#[cfg(feature = "fleet")]
mod pushed;
mod requests;
mod resolvers;
mod runtimes;
mod segments;
mod served;
mod signals;
mod started;
mod storms;
mod tcp;
mod topic_states;
mod usdt;
mod waits;
mod wakeups;
mod wall;
mod work;

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use crate::common::Place;

/// Locked by tests that flood the machine with more events than a recorder can take, and shared by
/// tests that must lose nothing or finish in time. A file, because each test may be a separate
/// process.
fn flood_lock(lock: fn(&File) -> std::io::Result<()>) -> File {
    let file = |name| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        File::create(path).expect("the target directory is ours")
    };
    // Waiting tests keep the gate locked: else a flood would wait until no other test is left.
    let turn = file("flood.turn");
    turn.lock().expect("a local file can be locked");
    let flood = file("flood.lock");
    lock(&flood).expect("a local file can be locked");
    flood
}

/// Until this is dropped no other test floods the machine or is sensitive to a flood.
#[must_use]
pub(crate) fn floods_alone() -> File {
    flood_lock(File::lock)
}

/// Until this is dropped no test floods the machine.
#[must_use]
pub(crate) fn no_floods() -> File {
    flood_lock(File::lock_shared)
}

/// Whether this machine can be recorded; skips the test otherwise.
pub(crate) fn can_record() -> bool {
    static WHY_NOT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let probed = Place::shared("can-record", |place| {
            place.write("why-not", why_not_recorded().unwrap_or_default());
        });
        let why_not = std::fs::read_to_string(probed.join("why-not")).expect("just written");
        (!why_not.is_empty()).then_some(why_not)
    });
    if let Some(why_not) = why_not {
        skip(
            Need::Live,
            format!("this machine cannot be recorded: {why_not}"),
        );
    }
    why_not.is_none()
}

/// The recorder's message where it cannot record.
fn why_not_recorded() -> Option<String> {
    let place = Place::new();
    let output = place
        .whyslow()
        .args(["record", "-o", "probe.wsl", "--", "true"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // As root on a kernel with BTF, recording must work.
    let ids = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let is_host = ids == Path::new("pid:[4026531836]");
    let is_expected = is_root() && is_host && Path::new("/sys/kernel/btf/vmlinux").exists();
    assert!(output.status.success() || !is_expected, "{said}");
    (!output.status.success()).then_some(said)
}

/// Records a shell command, whatever its exit status, as `rec.wsl`.
pub(crate) fn record(place: &Place, options: &[&str], script: &str) {
    let output = place
        .whyslow()
        .args(["-q", "record", "-o", "rec.wsl"])
        .args(options)
        .args(["--", "/bin/sh", "-c", script])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("error: "), "{said}");
    assert!(place.join("rec.wsl/manifest.json").exists(), "{said}");
}

/// Rows of the first table of an answer.
pub(crate) fn rows(place: &Place, query: &[&str]) -> Vec<Value> {
    answered(place, &[query, &["-n", "0"]].concat())
}

/// The same for a query without a limit.
pub(crate) fn answered(place: &Place, query: &[&str]) -> Vec<Value> {
    let output = place
        .whyslow()
        .args(query)
        .arg("--json")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tables = answer["tables"].as_array().expect("tables");
    let rows = tables.first().and_then(|table| table["rows"].as_array());
    rows.cloned().unwrap_or_default()
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.is_some_and(|uids| uids.split_whitespace().nth(1) == Some("0"))
}
