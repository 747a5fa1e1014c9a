//! Page-cache fills, against the sizes of files, the kernel's count of disk reads, and what the
//! kernel reports as resident.

use std::fs;
use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

const PAGE: i64 = 4096;
/// A prime number of pages, the last of which is partial.
const COLD_PAGES: i64 = 1009;
const COLD_BYTES: i64 = COLD_PAGES * PAGE - 977;
const MAPPED_PAGES: i64 = 499;
const TOUCHED: i64 = 53;
const DIRECT_BYTES: i64 = 101 * PAGE;
const SHARED_BYTES: i64 = 31 * PAGE;
/// What a file system reads to find four files.
const METADATA_BYTES_MAX: i64 = 1 << 20;

const PROGRAM: &str = include_str!("fills.c");

/// A disk with files that are not in memory, and a tmpfs, unmounted on drop.
struct Disk {
    place: Place,
    device: String,
}

impl Disk {
    /// `None`, with a skip message, if a program is missing or mounting is not permitted.
    fn new() -> Option<Self> {
        let place = Place::new();
        place.write("touch.c", PROGRAM);
        let made = Command::new("cc")
            .args(["-O1", "-o", "touch", "touch.c"])
            .current_dir(place.path())
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip(Need::Compiler, "there is no C compiler");
            return None;
        }
        let script = format!(
            "truncate -s 64M disk.img && mkfs.ext4 -q -b {PAGE} disk.img && mkdir mounted shared || exit 1
             mount -t tmpfs none shared || exit 1
             disk=$(losetup --find --show disk.img) || exit 1
             echo $disk >device
             mount $disk mounted || exit 1
             head -c {COLD_BYTES} /dev/urandom >mounted/cold
             head -c {} /dev/urandom >mounted/mapped
             head -c {DIRECT_BYTES} /dev/urandom >mounted/direct
             head -c {SHARED_BYTES} /dev/urandom >shared/file
             cp touch mounted/program
             umount mounted && mount $disk mounted",
            MAPPED_PAGES * PAGE
        );
        let done = Command::new("/bin/sh")
            .args(["-c", &script])
            .current_dir(place.path())
            .output();
        let device = fs::read_to_string(place.join("device")).unwrap_or_default();
        let device = device.trim().trim_start_matches("/dev/").to_owned();
        let disk = Self { place, device };
        if !done.is_ok_and(|done| done.status.success()) {
            skip(Need::Isolation, "no disk can be made of a file here");
            return None;
        }
        Some(disk)
    }

    fn read_bytes(&self) -> i64 {
        let all = fs::read_to_string("/proc/diskstats").expect("Linux has it");
        let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let mut lines = all.lines().map(fields);
        let own = lines.find(|fields: &Vec<String>| fields[2] == self.device);
        512 * own.expect("the device")[5].parse::<i64>().expect("sectors")
    }

    fn file(&self, name: &str) -> Value {
        let path = self.place.join(name).display().to_string();
        let query = ["files", "usage", "rec.wsl", "--file", &path];
        let rows = rows(&self.place, &query);
        assert_eq!(rows.len(), 1, "{path}: {rows:?}");
        // Another view of the same sums.
        let top = super::rows(&self.place, &["files", "top", "rec.wsl", "--file", &path]);
        for column in [
            "read_bytes",
            "filled_bytes",
            "mapped_fill_bytes",
            "cached_bytes",
        ] {
            assert_eq!(rows[0][column], top[0][column], "{path} {column}");
        }
        rows[0].clone()
    }

    /// All fills, whatever their kind, with losses and mounts.
    fn all_fills(&self) -> String {
        let queries = [
            "SELECT comm, tid, path, dev, inode, cause, bytes, ts, dur FROM cache_fill ORDER BY ts",
            "SELECT * FROM lost_events",
            "SELECT * FROM mount",
            "SELECT pid, comm, mount_ns FROM process",
        ];
        let answers = queries.map(|query| {
            let mut command = self.place.whyslow();
            let out = command.args(["sql", "rec.wsl", "--csv", query]).output();
            let out = out.expect("it starts");
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
        });
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        answers.join("\n") + &mounts
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let script = "umount mounted; umount shared; losetup -d $(cat device)";
        let _ = Command::new("/bin/sh")
            .args(["-c", script])
            .current_dir(self.place.path())
            .output();
    }
}

/// Bytes filled, filled by mappings, and read from the cache.
fn fill_bytes(row: &Value) -> [Option<i64>; 3] {
    ["filled_bytes", "mapped_fill_bytes", "cached_bytes"].map(|column| row[column].as_i64())
}

#[test]
fn what_was_read_came_from_the_disk_or_was_in_the_page_cache() {
    if !can_record() {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let what = ["--what", "syscalls,pages"];
    let before = disk.read_bytes();
    let script = format!(
        "cat mounted/cold mounted/cold mounted/cold >/dev/null
         ./touch mounted/mapped {TOUCHED} >touched
         dd if=mounted/direct of=/dev/null bs=4096 iflag=direct status=none
         cat shared/file >/dev/null
         mounted/program shared/file 1 >/dev/null"
    );
    record(&disk.place, &what, &script);
    let from_disk = disk.read_bytes() - before;

    let cold = disk.file("mounted/cold");
    assert_eq!(cold["read_bytes"], 3 * COLD_BYTES);
    let filled = COLD_PAGES * PAGE;
    let expected = [Some(filled), Some(0), Some(3 * COLD_BYTES - filled)];
    assert_eq!(fill_bytes(&cold), expected, "{cold:?}");

    let said = fs::read_to_string(disk.place.join("touched")).expect("it said something");
    let resident: i64 = said
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .expect("pages");
    assert_eq!(resident, TOUCHED);
    let mapped = disk.file("mounted/mapped");
    let filled = TOUCHED * PAGE;
    assert_eq!(
        fill_bytes(&mapped),
        [Some(filled), Some(filled), None],
        "{mapped:?}: {}",
        disk.all_fills()
    );

    // Direct reads bypass the cache and are no reads from it.
    let direct = disk.file("mounted/direct");
    assert_eq!(direct["read_bytes"], DIRECT_BYTES);
    assert_eq!(fill_bytes(&direct), [Some(0), Some(0), None], "{direct:?}");

    let shared = disk.file("shared/file");
    let expected = [Some(0), Some(0), Some(SHARED_BYTES)];
    assert_eq!(fill_bytes(&shared), expected, "{shared:?}");

    // No call opened the program: its path comes from the kernel and the mounts.
    let program = disk.file("mounted/program");
    let of_program = program["filled_bytes"].as_i64().expect("known");
    let size = fs::metadata(disk.place.join("mounted/program"))
        .expect("a file")
        .len() as i64;
    assert!(of_program > 0 && of_program <= size + PAGE, "{program:?}");

    // All disk reads are fills, except metadata of the file system.
    let known = (COLD_PAGES + TOUCHED) * PAGE + DIRECT_BYTES + of_program;
    assert!(
        (known..known + METADATA_BYTES_MAX).contains(&from_disk),
        "{known} of {from_disk}"
    );

    // Once more: no fills, except of pages that were evicted meanwhile and read again.
    let before = disk.read_bytes();
    let once = "cat mounted/cold >/dev/null";
    record(&disk.place, &[&["--force"], &what[..]].concat(), once);
    let again = disk.read_bytes() - before;
    let warm = disk.file("mounted/cold");
    let [filled, mapped, cached] = fill_bytes(&warm).map(|bytes| bytes.expect("known"));
    assert!(
        filled <= again && again < COLD_BYTES / 2,
        "{again}: {warm:?}"
    );
    assert_eq!((mapped, cached), (0, COLD_BYTES - filled), "{warm:?}");
}

#[test]
fn without_pages_nobody_can_tell_what_was_in_the_page_cache() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    place.write("file", "some bytes");
    record(&place, &["--what", "syscalls"], "cat file >/dev/null");
    let path = place.join("file").display().to_string();
    let query = ["files", "usage", "rec.wsl", "--file", &path];
    let rows = rows(&place, &query);
    assert_eq!(rows[0]["read_bytes"], 10, "{rows:?}");
    assert_eq!(fill_bytes(&rows[0]), [None, None, None]);
    let output = place.whyslow().args(query).arg("--wide").output();
    let output = output.expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("page cache hits unavailable"), "{said}");
}
