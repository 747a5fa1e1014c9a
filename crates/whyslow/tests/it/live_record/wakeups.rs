//! Causes of wakeups: against the kernel's own trace of wakeups, and against the number of requests
//! that were waited for.

use std::collections::BTreeMap;

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// Waits for a given number of requests to a loop device, one after another, while the kernel
/// traces each wakeup of the waiting thread.
const IO: &str = "
    tracing=$PWD/tracing
    mkdir $tracing && mount -t tracefs tracefs $tracing || exit 0
    mine=$tracing/instances/whyslow-wakeups-$$
    disk=
    trap 'test -z $disk || losetup -d $disk; rmdir $mine; umount $tracing' EXIT
    mkdir $mine && echo 4096 >$mine/buffer_size_kb || exit 0
    truncate -s 4M disk.img
    disk=$(losetup --find --show disk.img) || exit 0
    cp $(command -v dd) waits-97
    echo 'comm == \"waits-97\"' >$mine/events/sched/sched_waking/filter || exit 0
    echo 1 >$mine/events/sched/sched_waking/enable
    ./waits-97 if=/dev/zero of=$disk bs=8192 count=97 oflag=direct 2>/dev/null || exit 0
    echo 0 >$mine/events/enable
    grep sched_waking $mine/trace >woken
    echo ${disk#/dev/} >disk";

/// Lines like `<idle>-0     [001] d.s2.  1.5: sched_waking: …`: the third letter is the context.
fn by_context(lines: &str) -> BTreeMap<String, usize> {
    let mut contexts = BTreeMap::new();
    for line in lines.lines() {
        let (_, flags) = line.split_once("] ").expect(line);
        let context = match flags.as_bytes().get(2) {
            Some(b'.') => "task",
            Some(b's') => "softirq",
            Some(b'h' | b'H' | b'z' | b'Z') => "irq",
            _ => panic!("{line}"),
        };
        *contexts.entry(context.to_owned()).or_default() += 1;
    }
    contexts
}

#[test]
fn who_waits_for_a_request_is_woken_by_the_end_of_it() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &["--what", "sched,block,syscalls"], IO);
    let file = |name: &str| std::fs::read_to_string(place.join(name));
    let (Ok(woken), Ok(disk)) = (file("woken"), file("disk")) else {
        return skip(
            Need::Isolation,
            "no tracer, no loop devices, or none that can be written directly",
        );
    };
    let of_command = ["rec.wsl", "--comm", "waits-97"];
    let query = |query: &[&str]| rows(&place, &[query, &of_command].concat());
    let states = query(&["states", "log"]);
    // Each wait is for one distinct request, to that disk.
    let requests: BTreeMap<String, String> = query(&["block", "log"])
        .iter()
        .filter(|row| row["dev"] == disk.trim())
        .map(|row| (row["id"].to_string(), row["bytes"].to_string()))
        .collect();
    assert_eq!(requests.len(), 97, "{requests:?}");
    let waited: Vec<_> = states
        .iter()
        .filter(|row| row["state"] == "uninterruptible" && !row["request"].is_null())
        .filter(|row| requests.contains_key(&row["request"].to_string()))
        .collect();
    // A request that ends before its thread sleeps is not waited for: rare, only on busy machines.
    assert!((90..=97).contains(&waited.len()), "{}", waited.len());
    // The kernel's trace has each wakeup, in the same context.
    let mut contexts: BTreeMap<String, usize> = BTreeMap::new();
    let asleep = ["uninterruptible", "sleeping"];
    for row in &states {
        let Some(context) = row["wake_context"].as_str() else {
            continue;
        };
        if asleep.iter().any(|state| row["state"] == *state) {
            *contexts.entry(context.to_owned()).or_default() += 1;
        }
    }
    // Also wakeups before the thread slept: at most as many as there are missing waits.
    let mut of_kernel = by_context(&woken);
    for (context, count) in &contexts {
        let left = of_kernel.get_mut(context).expect(context);
        *left = left.checked_sub(*count).expect(context);
    }
    let early: usize = of_kernel.values().sum();
    let missing = 97 - waited.len();
    assert!(early <= missing, "{of_kernel:?}, {missing}: {woken}");
}
