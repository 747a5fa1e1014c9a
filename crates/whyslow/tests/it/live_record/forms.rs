//! Recordings on kernels that refuse some BPF programs: the same data, as far as the fallback
//! programs provide it.

use std::collections::BTreeMap;

use whyslow_testkit::{Need, skip};

use super::kernel::with_mounts;
use super::{can_record, rows};
use crate::common::Place;

/// Processes that sleep, and direct writes to a device of this test. `$1` are the options.
const RECORD: &str = r#"
    [ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing
    cat >load <<'END'
    truncate -s 64M disk.img; mkfs.ext4 -q disk.img; mkdir -p mounted
    disk=$(losetup --find --show disk.img) || exit 0
    trap "umount mounted; losetup -d $disk" EXIT
    echo ${disk#/dev/} >disk; mount $disk mounted || exit 0
    cp $(command -v sleep) naps83
    for i in $(seq 37); do ./naps83 0.003; done
    dd if=/dev/zero of=mounted/direct bs=8192 count=97 oflag=direct 2>/dev/null
    touch done
END
    exec "$WHYSLOW" -q record --what syscalls,sched,block --stacks off --force -o rec.wsl OPTIONS -- /bin/sh load"#;

#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    /// Counts of the sleeping processes, by name.
    calls: BTreeMap<String, i64>,
    processes: usize,
    sleeps: usize,
    writes: usize,
    completed: usize,
}

fn held(options: &str) -> Option<Recorded> {
    let place = Place::new();
    let output = with_mounts(&place, &RECORD.replace("OPTIONS", options))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    if !place.join("done").exists() {
        skip(Need::Isolation, "no ext4 on a loop device");
        return None;
    }
    let disk = std::fs::read_to_string(place.join("disk")).expect("the script wrote it");
    let ours = |query: &[&str]| rows(&place, &[query, &["-c", "naps83"]].concat());
    let calls = ours(&["syscalls", "stats", "rec.wsl", "--by", "name", "--waits"]);
    let call = |row: &serde_json::Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, row["count"].as_i64().expect("a count"))
    };
    let states = ours(&["states", "log", "rec.wsl"]);
    let is_sleep = |row: &&serde_json::Value| {
        row["state"] == "sleeping" && row["dur_ns"].as_i64() > Some(2_500_000)
    };
    let log = ["block", "log", "rec.wsl", "-c", "dd", "--dev", disk.trim()];
    let blocks = rows(&place, &log);
    let is_write = |row: &&serde_json::Value| row["bytes"] == 8192;
    let writes: Vec<_> = blocks.iter().filter(is_write).collect();
    let is_complete = |row: &&&serde_json::Value| row["dur_ns"].as_i64() > Some(0);
    Some(Recorded {
        calls: calls.iter().map(call).collect(),
        processes: ours(&["threads", "list", "rec.wsl"]).len(),
        sleeps: states.iter().filter(is_sleep).count(),
        writes: writes.len(),
        completed: writes.iter().filter(is_complete).count(),
    })
}

#[test]
fn programs_of_every_form_tell_the_same() {
    if !can_record() {
        return;
    }
    let Some(typed) = held("") else { return };
    // A thread preempted on its way to sleep is reported as runnable first.
    const SLEEPS: std::ops::RangeInclusive<usize> = 34..=37;
    assert_eq!(typed.processes, 37, "{typed:?}");
    assert!(SLEEPS.contains(&typed.sleeps), "{typed:?}");
    assert_eq!((typed.writes, typed.completed), (97, 97), "{typed:?}");
    assert_eq!(typed.calls.get("clock_nanosleep"), Some(&37), "{typed:?}");
    for refused in ["typed", "typed,raw"] {
        let Some(mut found) = held(&format!("--refuse {refused}")) else {
            return;
        };
        assert!(SLEEPS.contains(&found.sleeps), "{found:?}");
        found.sleeps = typed.sleeps;
        assert_eq!(found, typed, "without {refused}");
    }
}
