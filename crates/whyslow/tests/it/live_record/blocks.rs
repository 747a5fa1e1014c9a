//! Block I/O, against the kernel's own counters, on a loop device of this test.

use std::process::Command;

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// A loop device, detached on drop.
pub(crate) struct Loop {
    pub(crate) name: String,
}

impl Loop {
    pub(crate) fn new(place: &Place) -> Option<Self> {
        let image = place.join("disk.img");
        let file = std::fs::File::create(&image).expect("a temporary folder takes it");
        file.set_len(64 << 20).expect("a sparse file");
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let path = String::from_utf8(output.stdout).expect("a path");
        let name = path.trim().strip_prefix("/dev/")?.to_owned();
        Some(Self { name })
    }

    /// Completed writes and written sectors so far.
    pub(crate) fn writes(&self) -> (i64, i64) {
        let counters = self.counters();
        (counters[4], counters[6])
    }

    /// The kernel's counters so far: reads, merged reads, sectors read, ms reading, the same of
    /// writes, and more.
    pub(crate) fn counters(&self) -> Vec<i64> {
        let stats = std::fs::read_to_string("/proc/diskstats").expect("the kernel has it");
        let words = stats.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.get(2) == Some(&self.name.as_str())).then_some(words)
        });
        let words = words.expect("the device is there");
        let numbers = words[3..].iter();
        numbers
            .map(|word| word.parse().expect("a number"))
            .collect()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .args(["-d", &format!("/dev/{}", self.name)])
            .status();
    }
}

#[test]
fn requests_and_bytes_equal_the_counters_of_the_kernel() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(disk) = Loop::new(&place) else {
        return skip(Need::Isolation, "there is no loop device to be had");
    };
    let before = disk.writes();
    let script = format!(
        "dd if=/dev/zero of=/dev/{} bs=8192 count=97 oflag=direct 2>/dev/null",
        disk.name
    );
    record(&place, &[], &script);
    let after = disk.writes();
    let theirs = (after.0 - before.0, (after.1 - before.1) * 512);
    assert_eq!(theirs, (97, 97 * 8192), "no other process writes there");
    let stats = rows(
        &place,
        &[
            "block", "stats", "rec.wsl", "--dev", &disk.name, "--op", "write",
        ],
    );
    let [write] = stats.as_slice() else {
        panic!("{stats:?}");
    };
    let number = |name: &str| write[name].as_i64().expect("a number");
    assert_eq!((number("count"), number("bytes")), theirs);
    // The submitter is the process, although a kernel thread does the work.
    let usage = rows(&place, &["block", "top", "rec.wsl", "--dev", &disk.name]);
    assert!(usage.iter().all(|row| row["comm"] == "dd"), "{usage:?}");
    assert_eq!(usage.len(), 97);
}
