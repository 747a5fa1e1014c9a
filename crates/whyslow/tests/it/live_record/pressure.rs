//! Work of the kernel that threads wait for: journals, writeback, reclaim; on request packets and
//! page faults. Against the kernel's own counts, on devices of this test.

use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// Creates an ext4 on a loop device, runs the work in it, and removes both. The mount is in a
/// separate namespace. Limits of dirty pages are reset, too: a loop device keeps them for the next
/// file that it gets.
fn in_ext4(work: &str) -> String {
    format!(
        "exec unshare --mount --propagation private /bin/sh -c '
            set -e
            truncate -s 64M disk.img; mkfs.ext4 -q disk.img; mkdir -p mounted
            disk=$(losetup --find --show disk.img)
            limits=/sys/class/bdi/7:${{disk#/dev/loop}}
            forget=\"echo 0 >$limits/strict_limit; echo 100 >$limits/max_ratio\"
            trap \"cd /; umount $PWD/mounted; losetup -d $disk; $forget\" EXIT
            echo $disk >disk; mount $disk mounted; cd mounted
            {work}'"
    )
}

fn can_mount(place: &Place) -> bool {
    let done = Command::new("/bin/sh")
        .args(["-c", &in_ext4("true")])
        .current_dir(place.path())
        .output();
    let can = done.as_ref().is_ok_and(|done| done.status.success());
    if !can {
        skip(
            Need::Isolation,
            format!("no ext4 on a loop device: {done:?}"),
        );
    }
    can
}

fn number(row: &Value, name: &str) -> i64 {
    row[name]
        .as_i64()
        .unwrap_or_else(|| panic!("{name}: {row}"))
}

fn disk(place: &Place) -> String {
    let disk = std::fs::read_to_string(place.join("disk")).expect("the script wrote it");
    disk.trim().trim_start_matches("/dev/").to_owned()
}

#[test]
fn commits_of_a_journal_are_those_that_the_kernel_counts() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    if !can_mount(&place) {
        return;
    }
    let work = "
        cat /proc/fs/jbd2/${disk#/dev/}-8/info >../before
        for i in $(seq 23); do dd if=/dev/zero of=f$i bs=4096 count=43 conv=fsync; done
        cat /proc/fs/jbd2/${disk#/dev/}-8/info >../after";
    record(&place, &[], &in_ext4(work));
    let counted = |name: &str| {
        let text = std::fs::read_to_string(place.join(name)).expect("the script wrote it");
        let count = text
            .split_whitespace()
            .next()
            .and_then(|count| count.parse::<i64>().ok());
        count.unwrap_or_else(|| panic!("{text}"))
    };
    let theirs = counted("after") - counted("before");
    assert!(
        theirs >= 23,
        "each fsync of a new file is a commit: {theirs}"
    );
    let disk = disk(&place);
    let query = [
        "fs",
        "log",
        "rec.wsl",
        "--op",
        "journal_commit",
        "--dev",
        &disk,
    ];
    let ours = rows(&place, &query);
    // The recording also has the commits of mount and umount.
    let count = ours.len() as i64;
    assert!((theirs..=theirs + 4).contains(&count), "{theirs}: {ours:?}");
    let numbers: Vec<i64> = ours.iter().map(|row| number(row, "transaction")).collect();
    let is_next = |pair: &[i64]| pair[1] == pair[0] + 1;
    assert!(numbers.windows(2).all(is_next), "{numbers:?}");
    for commit in &ours {
        let phases = ["locking_ns", "flushing_ns", "logging_ns"];
        let phases: i64 = phases.iter().map(|name| number(commit, name)).sum();
        assert!((1..=number(commit, "dur_ns")).contains(&phases), "{commit}");
        let comm = commit["comm"].as_str().expect("a name");
        assert!(comm.starts_with("jbd2/"), "{commit}");
    }
}

#[test]
fn a_writer_that_is_held_back_is_shown_and_so_is_the_writeback() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    if !can_mount(&place) {
        return;
    }
    let limits = "
        echo 1 >$limits/strict_limit; echo 1048576 >$limits/max_bytes";
    let can_limit = Command::new("/bin/sh")
        .args(["-c", &in_ext4(limits)])
        .current_dir(place.path())
        .output();
    if !can_limit.is_ok_and(|done| done.status.success()) {
        return skip(
            Need::Machine,
            "this kernel has no strict limits of dirty pages by device",
        );
    }
    let work = format!("{limits}\ndd if=/dev/zero of=big bs=65536 count=401");
    record(&place, &[], &in_ext4(&work));
    let disk = disk(&place);
    let log = |op: &str| {
        rows(
            &place,
            &["fs", "log", "rec.wsl", "--op", op, "--dev", &disk],
        )
    };
    let held = log("dirty_throttle");
    assert!(!held.is_empty());
    for wait in &held {
        assert_eq!(wait["comm"], "dd", "{wait}");
        // The kernel sets pauses of whole jiffies, at most 200 ms.
        assert!(number(wait, "dur_ns") > 500_000, "{wait}");
    }
    let pages: i64 = log("writeback")
        .iter()
        .filter_map(|row| row["pages"].as_i64())
        .sum();
    assert!(
        pages * 4096 >= 401 * 65536 / 2,
        "most is written meanwhile: {pages}"
    );
}

/// In a separate network namespace, so that the port gets no other packets.
const PACKETS: &str = "
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(('127.0.0.1', 39119))
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in range(1, 98):
    there.sendto(b'x' * size, ('127.0.0.1', 39119))
    here.recv(100)
try:
    refused = socket.create_connection(('127.0.0.1', 39121), 5)
except ConnectionRefusedError:
    pass
";

#[test]
fn packets_are_counted_with_their_peers() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.join("packets.py"), PACKETS).expect("a temporary folder takes it");
    let script = "exec unshare --net /bin/sh -c 'ip link set lo up && exec python3 packets.py'";
    let can = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(place.path())
        .output();
    if !can.is_ok_and(|done| done.status.success()) {
        return skip(
            Need::Isolation,
            "no network namespace, or neither ip nor python3",
        );
    }
    record(&place, &["--what", "net,sched"], script);
    let packets = rows(&place, &["net", "log", "rec.wsl"]);
    for (kind, above) in [("queue", 14), ("receive", 0)] {
        let of_ours = |row: &&Value| row["kind"] == kind && row["destination"] == "127.0.0.1:39119";
        let ours: Vec<&Value> = packets.iter().filter(of_ours).collect();
        // IP and UDP headers, and the link header where it has not been removed.
        let sizes: Vec<i64> = ours.iter().map(|row| number(row, "bytes")).collect();
        let expected: Vec<i64> = (1..98).map(|size| size + 28 + above).collect();
        assert_eq!(sizes, expected, "{kind}");
        assert!(ours.iter().all(|row| row["protocol"] == "udp"), "{ours:?}");
    }
    let is_refused = |row: &&Value| row["destination"] == "127.0.0.1:39121";
    let refused: Vec<&Value> = packets.iter().filter(is_refused).collect();
    assert!(!refused.is_empty(), "a connection request was sent");
    assert!(refused.iter().all(|row| row["protocol"] == "tcp"));
}

#[test]
fn faults_are_those_that_the_kernel_accounts_to_the_process() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // Touches 1009 new pages between two readings of its own count.
    let program = "
import mmap, resource
count = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
open('/proc/self/comm', 'w').write('toucher')
pages = mmap.mmap(-1, 1009 * 4096)
getattr(pages, 'madvise', lambda advice: None)(getattr(mmap, 'MADV_NOHUGEPAGE', 15))
before = count()
for page in range(1009):
    pages[page * 4096] = 1
open('faults', 'w').write(str(count() - before))
";
    std::fs::write(place.join("touch.py"), program).expect("a temporary folder takes it");
    record(&place, &["--what", "pages,sched"], "exec python3 touch.py");
    let Ok(theirs) = std::fs::read_to_string(place.join("faults")) else {
        return skip(Need::Python, "no python3");
    };
    let theirs: i64 = theirs.parse().expect("a number");
    assert!(theirs >= 1009, "{theirs}");
    let usage = rows(&place, &["mem", "usage", "rec.wsl", "--by", "comm"]);
    let of_ours = usage.iter().find(|row| row["comm"] == "toucher");
    let of_ours = of_ours.unwrap_or_else(|| panic!("{usage:?}"));
    let ours = number(of_ours, "faults_user");
    // It starts before and ends after the readings of the count.
    assert!(
        (theirs..theirs + 3_000).contains(&ours),
        "{ours} of {theirs}"
    );
}

#[test]
fn a_thread_that_frees_memory_for_its_cgroup_is_shown() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let script = "
        group=/sys/fs/cgroup/memory/whyslow-test-$$; mkdir $group || exit 0
        trap 'echo $$ >/sys/fs/cgroup/memory/cgroup.procs; rmdir $group' EXIT
        echo 16777216 >$group/memory.limit_in_bytes && echo $$ >$group/cgroup.procs || exit 0
        dd if=/dev/zero of=large bs=1M count=67 2>/dev/null
        cat $group/memory.failcnt >failures";
    record(&place, &[], script);
    let Ok(failures) = std::fs::read_to_string(place.join("failures")) else {
        return skip(Need::Machine, "no memory cgroup (version 1)");
    };
    if failures.trim() == "0" {
        return skip(
            Need::Machine,
            "the folder for temporary files takes no memory of the page cache",
        );
    }
    let stalls = rows(
        &place,
        &["mem", "log", "rec.wsl", "--op", "cgroup", "-c", "dd"],
    );
    assert!(!stalls.is_empty(), "the limit was met {failures} times");
    let pages: i64 = stalls.iter().map(|row| number(row, "pages")).sum();
    assert!(pages > 0, "{stalls:?}");
    assert!(stalls.iter().all(|row| number(row, "dur_ns") > 0));
}
