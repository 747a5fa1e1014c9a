//! Workqueue items, against the kernel's own trace of them.

use std::collections::BTreeMap;

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// Reads and writes a loop device, block by block. Its requests are workqueue items, and so is each
/// flush.
const IO: &str = "
    tracing=$PWD/tracing
    mkdir $tracing && mount -t tracefs tracefs $tracing || exit 0
    mine=$tracing/instances/whyslow-work-$$
    disk=
    trap 'test -z $disk || losetup -d $disk; rmdir $mine; umount $tracing' EXIT
    mkdir $mine && echo 4096 >$mine/buffer_size_kb || exit 0
    echo 1 >$mine/events/workqueue/workqueue_queue_work/enable || exit 0
    truncate -s 4M disk.img
    disk=$(losetup --find --show disk.img) || exit 0
    name=${disk#/dev/}
    dd if=$disk of=/dev/null bs=4096 count=101 iflag=direct 2>/dev/null || exit 0
    dd if=/dev/zero of=$disk bs=4096 count=103 oflag=direct,dsync 2>/dev/null || exit 0
    # Gives the recorder time to read thread names.
    sleep 2
    losetup -d $disk; disk=
    sleep 0.2
    echo 0 >$mine/events/enable
    grep \"workqueue=$name \" $mine/trace >queued
    echo $name >disk";

/// How often each thread queued an item: lines like `dd-17  [001] d..2. 1.5: …`.
fn by_thread(lines: &str) -> BTreeMap<i64, usize> {
    let mut threads = BTreeMap::new();
    for line in lines.lines() {
        let (task, _) = line.split_once(" [").expect(line);
        let (_, tid) = task.rsplit_once('-').expect(line);
        *threads.entry(tid.trim().parse().expect(line)).or_default() += 1;
    }
    threads
}

#[test]
fn work_of_a_disks_queue_is_that_which_the_kernel_tells_of() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &["--what", "work,sched,syscalls"], IO);
    let file = |name: &str| std::fs::read_to_string(place.join(name));
    let (Ok(queued), Ok(disk)) = (file("queued"), file("disk")) else {
        return skip(
            Need::Isolation,
            "no tracer, no loop devices, or none that can be read directly",
        );
    };
    let theirs = by_thread(&queued);
    assert!(theirs.values().sum::<usize>() >= 103, "{queued}");
    let ours = rows(&place, &["work", "log", "rec.wsl"]);
    let is_of_disk = |row: &&serde_json::Value| row["workqueue"] == disk.trim();
    let ours: Vec<_> = ours.iter().filter(is_of_disk).collect();
    let mut threads: BTreeMap<i64, usize> = BTreeMap::new();
    for row in &ours {
        *threads
            .entry(row["tid"].as_i64().unwrap_or(-1))
            .or_default() += 1;
    }
    assert_eq!(threads, theirs);
    assert!(ours.iter().any(|row| row["comm"] == "dd"), "{ours:?}");
    let count_of_all = ours.len() as i64;
    let number = |row: &serde_json::Value, name: &str| row[name].as_i64().unwrap_or(-1);
    for item in ours {
        let function = item["function"].as_str().unwrap_or_default();
        assert!(
            function.starts_with("loop_") && function.ends_with("workfn"),
            "{item}"
        );
        // Names of threads that are older than the recording arrive a little later.
        let worker = item["worker_comm"].as_str().unwrap_or("kworker/?");
        assert!(worker.starts_with("kworker/"), "{item}");
        let (queue, run) = (number(item, "queue_ns"), number(item, "run_ns"));
        assert!(queue >= 0 && run > 0, "{item}");
        assert_eq!(queue + run, number(item, "dur_ns"), "{item}");
    }
    let stats = rows(&place, &["work", "stats", "rec.wsl", "--by", "workqueue"]);
    let of_disk = stats.iter().find(|row| row["workqueue"] == disk.trim());
    let count = of_disk.map_or(-1, |row| number(row, "count"));
    assert_eq!(count, count_of_all, "{stats:?}");
    for verb in ["usage", "hist", "top", "heat"] {
        assert!(
            !rows(&place, &["work", verb, "rec.wsl"]).is_empty(),
            "{verb}"
        );
    }
}
