//! Stacking of block devices, against lsblk, on a loop device of this test.

use std::fs;
use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{answered, can_record, rows};
use crate::common::Place;

const SECTOR: u64 = 512;
const DISK_BYTES: u64 = 96 << 20;
const PART_FIRST: u32 = 2048;
const PART_SECTORS: u32 = 131_072;

/// A loop device with one partition, detached on drop.
struct Loop {
    name: String,
}

impl Loop {
    fn new(place: &Place) -> Option<Self> {
        let image = place.join("disk.img");
        let mut table = vec![0; SECTOR as usize];
        table[450] = 0x83;
        table[454..458].copy_from_slice(&PART_FIRST.to_le_bytes());
        table[458..462].copy_from_slice(&PART_SECTORS.to_le_bytes());
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        fs::write(&image, table).expect("a temporary folder takes it");
        let file = fs::OpenOptions::new().write(true).open(&image);
        let file = file.expect("it was just written");
        file.set_len(DISK_BYTES).expect("a sparse file");
        let output = Command::new("losetup")
            .args(["--partscan", "--find", "--show"])
            .arg(&image)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let path = String::from_utf8(output.stdout).expect("a path");
        let name = path.trim().strip_prefix("/dev/")?.to_owned();
        Some(Self { name })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .args(["-d", &format!("/dev/{}", self.name)])
            .status();
    }
}

/// Name, number, size, type and mount points of a device and those on it, from lsblk.
fn flat(device: &Value, found: &mut Vec<(String, String, i64, String, Vec<String>)>) {
    let text = |name: &str| device[name].as_str().unwrap_or_default().trim().to_owned();
    let points = device["mountpoints"].as_array().expect("a list");
    let points = points
        .iter()
        .filter_map(|point| Some(point.as_str()?.to_owned()));
    let size = device["size"].as_i64().expect("a number");
    found.push((
        text("name"),
        text("maj:min"),
        size,
        text("type"),
        points.collect(),
    ));
    for child in device["children"].as_array().into_iter().flatten() {
        flat(child, found);
    }
}

#[test]
fn the_tree_of_devices_is_that_of_lsblk() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(disk) = Loop::new(&place) else {
        return skip(Need::Isolation, "there is no loop device to be had");
    };
    // Without udev, partitions are not created and the file system is on the whole disk.
    let script = format!(
        "set -e; part=/dev/{name}p1; [ -b $part ] || part=/dev/{name}; \
         mkfs.ext4 -q -F $part; mkdir 'a b'; mount $part 'a b'; \
         {whyslow} -q record -o rec.wsl -- \
             dd if=/dev/zero of='a b/file' bs=64k count=7 conv=fsync status=none; \
         lsblk -b --json -o NAME,MAJ:MIN,SIZE,TYPE,MOUNTPOINTS /dev/{name} >lsblk.json; \
         umount 'a b'",
        name = disk.name,
        whyslow = env!("CARGO_BIN_EXE_whyslow"),
    );
    // A separate mount namespace, whose mounts vanish with it.
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
    let text = fs::read_to_string(place.join("lsblk.json")).expect("it wrote it");
    let theirs: Value = serde_json::from_str(&text).expect("JSON");
    let mut expected = Vec::new();
    flat(&theirs["blockdevices"][0], &mut expected);
    let ours = answered(&place, &["info", "rec.wsl", "--devices"]);
    let is_ours = |row: &&Value| {
        let path = row["path"].as_str().unwrap_or_default();
        path.split('/').next() == Some(&disk.name)
    };
    let shown: Vec<_> = ours
        .iter()
        .filter(is_ours)
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let points = row["mount_points"].as_array().into_iter().flatten();
            let points = points.filter_map(|point| Some(point.as_str()?.to_owned()));
            let size = row["size_bytes"].as_i64().expect("a number");
            (
                text("name"),
                text("number"),
                size,
                text("kind"),
                points.collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(shown, expected);
    let mounted = place
        .path()
        .canonicalize()
        .expect("it is there")
        .join("a b");
    let points = expected.iter().flat_map(|(.., points)| points);
    assert_eq!(
        points.collect::<Vec<_>>(),
        [mounted.to_str().expect("UTF-8")]
    );
    // Writes went to the whole disk, which is not mounted itself.
    let devices = rows(&place, &["block", "usage", "rec.wsl", "-d", &disk.name]);
    let [used] = devices.as_slice() else {
        panic!("{devices:?}");
    };
    assert!(used["write_bytes"].as_i64() >= Some(7 << 16), "{used}");
    assert_eq!(used["mounted"], serde_json::json!([mounted]));
    let backing = ours.iter().find(is_ours).map(|row| row["backing"].clone());
    let image = place
        .path()
        .canonicalize()
        .expect("it is there")
        .join("disk.img");
    assert_eq!(backing.as_ref().and_then(Value::as_str), image.to_str());
}
