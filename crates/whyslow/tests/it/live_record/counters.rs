//! Counters, against what the kernel reports elsewhere: `/proc`, `df`, and a process about itself.

use std::fs;
use std::process::Command;

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// What a tool prints about the recording.
fn shown_as(place: &Place, words: &[&str]) -> String {
    let output = place
        .whyslow()
        .arg("as")
        .args(words)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn room_in_file_systems_is_that_of_df() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // A separate mount namespace, whose mounts vanish with it and are written by this test only.
    let script = format!(
        "set -e; mkdir memory disk; mount -t tmpfs -o size=37m,nr_inodes=1009 mine memory; \
         head -c 5300000 /dev/urandom >memory/file; \
         truncate -s 61M image; mkfs.ext4 -q -F image; mount -o loop image disk; \
         head -c 7100000 /dev/urandom >disk/file; sync -f disk; \
         {whyslow} -q record -o rec.wsl -- true; \
         df -kT memory disk >bytes.txt; df -iT memory disk >inodes.txt; umount disk memory",
        whyslow = env!("CARGO_BIN_EXE_whyslow"),
    );
    let output = Command::new("timeout")
        .args(["60", "unshare", "--mount", "/bin/sh", "-c", &script])
        .current_dir(place.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return skip(
            Need::Isolation,
            format!("no file system can be mounted here: {said}"),
        );
    }
    let lines = |text: &str| -> Vec<String> {
        let root = place.path().canonicalize().expect("it is there");
        let root = root.to_str().expect("UTF-8");
        let ours = text.lines().filter(|line| line.contains(root));
        let mut lines: Vec<String> = ours
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        lines.sort();
        lines
    };
    for (option, file) in [("-T", "bytes.txt"), ("-iT", "inodes.txt")] {
        let theirs = fs::read_to_string(place.join(file)).expect("it wrote it");
        let theirs = lines(&theirs);
        assert_eq!(theirs.len(), 2, "{theirs:?}");
        assert_eq!(lines(&shown_as(&place, &["df", "rec.wsl", option])), theirs);
    }
}

/// Dirties pages, cancels them, and prints what the kernel counted for it.
const DIRTY: &str = "\
import os, sys
f = open('dirtied', 'wb', 0)
f.write(b'x' * 8192 * 89)
os.ftruncate(f.fileno(), 0)
own = dict(line.split(': ') for line in open('/proc/self/io').read().splitlines())
os.write(1, own['cancelled_write_bytes'].encode())";

#[test]
fn what_was_never_written_is_what_the_kernel_counts() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    fs::write(place.join("dirty.py"), DIRTY).expect("a temporary folder takes it");
    let mut bytes = 0;
    // The kernel may write some of it before; then there is less to cancel.
    for _ in 0..5 {
        let _ = fs::remove_dir_all(place.join("rec.wsl"));
        record(
            &place,
            &[],
            "python3 -B dirty.py >printed.txt || touch missing",
        );
        if place.join("missing").exists() {
            return skip(Need::Python, "python3 is not installed");
        }
        let text = fs::read_to_string(place.join("printed.txt")).expect("it wrote it");
        bytes = text.parse().expect("a number");
        if bytes == 8192 * 89 {
            break;
        }
    }
    if bytes == 0 {
        return skip(Need::Machine, "what is written here goes to no disk");
    }
    let values = rows(
        &place,
        &[
            "counters",
            "rec.wsl",
            "--name",
            "io_cancelled",
            "--comm",
            "python*",
        ],
    );
    // Other processes may run Python, too.
    let mut found = values
        .iter()
        .filter(|row| row["value"].as_i64() == Some(bytes));
    let last = found
        .next()
        .unwrap_or_else(|| panic!("{bytes} among {values:?}"));
    let pid = last["pid"].to_string();
    let report = shown_as(&place, &["pidstat", "rec.wsl", "-d", "-p", &pid]);
    let line = report.lines().find(|line| line.contains("python"));
    let words: Vec<&str> = line.expect("a line of it").split_whitespace().collect();
    let rate = |at: usize| words[at].parse::<f64>().expect("a number");
    assert_eq!((words[1], words[2]), ("0", pid.as_str()), "{report}");
    // It wrote what was not cancelled, and the number.
    let written = (8192 * 89 + bytes.to_string().len()) as f64;
    let expected = rate(4) * bytes as f64 / written;
    let tolerance = expected / 1000.0 + 0.02;
    assert!(
        (rate(5) - expected).abs() <= tolerance,
        "{expected}: {report}"
    );
}

fn number_of(file: &str, name: &str) -> i64 {
    let text = fs::read_to_string(file).expect("the kernel has it");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).expect("a number")
}

/// The load average of the last fifteen minutes, which changes slowly.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").expect("the kernel has it");
    let word = text.split_whitespace().nth(2).expect("three of them");
    word.parse().expect("a number")
}

/// Holds memory until it has been sampled, and prints how much it has.
const HOLD: &str = "\
import os, time
held = bytearray(os.urandom(1 << 20) * 41)
time.sleep(2.5)
own = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
print(own['VmRSS'].split()[0])";

#[test]
fn load_and_memory_are_those_of_the_kernel() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    fs::write(place.join("hold.py"), HOLD).expect("a temporary folder takes it");
    let (load_before, free_before) = (load(), number_of("/proc/meminfo", "MemAvailable:"));
    record(&place, &[], "python3 hold.py >printed.txt || touch missing");
    let (load_after, free_after) = (load(), number_of("/proc/meminfo", "MemAvailable:"));
    if place.join("missing").exists() {
        return skip(Need::Python, "python3 is not installed");
    }
    let top = shown_as(&place, &["top", "rec.wsl", "-b"]);
    let words = |begin: &str| -> Vec<&str> {
        let line = top.lines().find(|line| line.starts_with(begin));
        line.expect("a line of it").split_whitespace().collect()
    };
    let shown: f64 = words("top -")
        .last()
        .and_then(|word| word.parse().ok())
        .expect("a load");
    let (low, high) = (load_before.min(load_after), load_before.max(load_after));
    assert!(
        low - 0.05 <= shown && shown <= high + 0.05,
        "{low} {high}: {top}"
    );
    let total = number_of("/proc/meminfo", "MemTotal:") as f64 / 1024.0;
    let memory: Vec<f64> = words("MiB Mem")
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!((memory[0] - total).abs() <= 0.06, "{top}");
    let swap: Vec<f64> = words("MiB Swap")
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    let available = swap[3] * 1024.0;
    // Other processes allocate and free memory meanwhile.
    let (low, high) = (
        free_before.min(free_after) as f64,
        free_before.max(free_after) as f64,
    );
    let tolerance = total * 1024.0 / 5.0;
    assert!(
        low - tolerance <= available && available <= high + tolerance,
        "{top}"
    );
    // RES in kilobytes.
    let bytes = fs::read_to_string(place.join("printed.txt")).expect("it wrote it");
    let bytes: i64 = bytes.trim().parse().expect("a number");
    // Other processes may run programs of that name, too.
    let mut lines = top.lines().filter(|line| line.ends_with(" python3"));
    let is_it = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let res: i64 = words[5].parse().unwrap_or_default();
        (res - bytes).abs() <= 2048 && words[1] == "root"
    };
    assert!(lines.any(is_it), "{bytes}: {top}");
}
