//! Stacking of block devices: partitions on disks, volumes and arrays on their members, loop
//! devices on the device of their file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use whyslow_model::spool::{Encoder, Kind};

use super::devices::{entries, number};
use crate::clock;

/// Sector size, the same for every device.
const SECTOR: u64 = 512;

/// Devices of `/sys/class/block`.
pub(super) fn all(encoder: &mut Encoder, folder: &Path) {
    for (_, path) in entries(folder) {
        if let Some(dev) = dev(&path) {
            device(encoder, &path, dev);
            links(encoder, &path, (folder, dev));
        }
    }
}

fn word(path: &Path) -> Option<Vec<u8>> {
    let text = fs::read(path).ok()?.trim_ascii().to_vec();
    (!text.is_empty()).then_some(text)
}

fn dev(path: &Path) -> Option<u32> {
    number(std::str::from_utf8(&word(&path.join("dev"))?).ok()?)
}

fn device(encoder: &mut Encoder, path: &Path, dev: u32) {
    let sectors =
        word(&path.join("size")).and_then(|text| String::from_utf8(text).ok()?.parse().ok());
    // A partition has the queue of its disk.
    let queues = [path.join("queue"), path.join("../queue")];
    let rotational = queues
        .iter()
        .find_map(|queue| word(&queue.join("rotational")));
    let rotational = match rotational.as_deref() {
        Some(b"0") => 0,
        Some(b"1") => 1,
        _ => u32::MAX,
    };
    encoder
        .begin(Kind::DeviceAbout, clock::monotonic(), (0, 0))
        .u32(dev)
        .u32(rotational)
        .u64(sectors.map_or(u64::MAX, |sectors: u64| sectors.saturating_mul(SECTOR)))
        .text(&kind(path))
        .text(&word(&path.join("dm/name")).unwrap_or_default())
        .text(&backing(path).unwrap_or_default())
        .end();
}

/// The file of a loop device.
fn backing(path: &Path) -> Option<Vec<u8>> {
    word(&path.join("loop/backing_file"))
}

/// Type of the device, with the names of lsblk.
fn kind(path: &Path) -> Vec<u8> {
    if path.join("partition").exists() {
        return b"part".to_vec();
    }
    if let Some(uuid) = word(&path.join("dm/uuid")) {
        // `LVM-…`, `CRYPT-LUKS2-…`, `part1-mpath-…`
        let owner = uuid.split(|byte| *byte == b'-').next().unwrap_or_default();
        let owner = owner.to_ascii_lowercase();
        return if owner.starts_with(b"part") {
            b"part".to_vec()
        } else {
            owner
        };
    }
    if path.join("dm").exists() {
        return b"dm".to_vec();
    }
    if let Some(level) = word(&path.join("md/level")) {
        return level;
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if name.starts_with("loop") {
        return b"loop".to_vec();
    }
    match word(&path.join("device/type")).as_deref() {
        Some(b"5") => b"rom".to_vec(),
        _ => b"disk".to_vec(),
    }
}

/// The underlying devices.
fn links(encoder: &mut Encoder, path: &Path, (folder, of): (&Path, u32)) {
    let mut link = |kind: &str, below: u32| {
        encoder
            .begin(Kind::DeviceLink, clock::monotonic(), (0, 0))
            .u32(of)
            .u32(below)
            .text(kind.as_bytes())
            .end();
    };
    if path.join("partition").exists() {
        // The directory of a partition is in that of its disk.
        let disk = fs::canonicalize(path).ok();
        if let Some(below) = disk.as_deref().and_then(Path::parent).and_then(dev) {
            link("partition", below);
        }
    }
    for (member, _) in entries(&path.join("slaves")) {
        let member = std::str::from_utf8(&member)
            .ok()
            .map(|name| folder.join(name));
        if let Some(below) = member.as_deref().and_then(dev) {
            link("member", below);
        }
    }
    if let Some(file) = backing(path)
        && let Ok(file) = std::str::from_utf8(&file)
        && let Ok(about) = fs::metadata(file)
    {
        let (major, minor) = (
            rustix::fs::major(about.dev()),
            rustix::fs::minor(about.dev()),
        );
        link("file", major << 20 | minor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use whyslow_model::spool::{HostRecord, Record, records};

    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a disk");
            fs::write(path, text).expect("a disk");
        }
        folder
    }

    #[test]
    fn disks_partitions_volumes_and_arrays_are_told() {
        let folder = made(&[
            ("dev/sda/dev", "8:0\n"),
            ("dev/sda/size", "100\n"),
            ("dev/sda/queue/rotational", "1\n"),
            ("dev/sda/sda1/dev", "8:1\n"),
            ("dev/sda/sda1/partition", "1\n"),
            ("dev/sda/sda1/size", "18446744073709551615\n"),
            ("dev/dm-0/dev", "253:0\n"),
            ("dev/dm-0/dm/name", "vg-a b\n"),
            ("dev/dm-0/dm/uuid", "LVM-xyz\n"),
            ("dev/dm-0/slaves/sda1/dev", "8:1\n"),
            ("dev/dm-0/slaves/gone/dev", "\n"),
            ("dev/md0/dev", "9:0\n"),
            ("dev/md0/md/level", "raid1\n"),
            ("dev/md0/size", "many\n"),
            ("dev/odd/dev", "nonsense\n"),
        ]);
        let class = folder.path().join("class");
        fs::create_dir(&class).expect("a disk");
        for (name, path) in [
            ("sda", "sda"),
            ("sda1", "sda/sda1"),
            ("dm-0", "dm-0"),
            ("md0", "md0"),
            ("odd", "odd"),
        ] {
            symlink(folder.path().join("dev").join(path), class.join(name)).expect("a disk");
        }
        let mut encoder = Encoder::default();
        all(&mut encoder, &class);
        let mut recorded = Vec::new();
        for (_, record) in records(encoder.payload()) {
            let Ok((_, Record::Host(record))) = record else {
                panic!("{record:?}");
            };
            recorded.push(match record {
                HostRecord::DeviceAbout(about) => format!(
                    "{} {} {:?} {:?} {}",
                    about.dev,
                    String::from_utf8_lossy(about.kind),
                    about.size,
                    about.rotational,
                    String::from_utf8_lossy(about.label)
                ),
                HostRecord::DeviceLink { dev, below, kind } => {
                    format!("{dev} on {below} {}", String::from_utf8_lossy(kind))
                }
                other => panic!("{other:?}"),
            });
        }
        let (sda, sda1, dm, md) = (8 << 20, 8 << 20 | 1, 253 << 20, 9 << 20);
        let expected = [
            format!("{dm} lvm None None vg-a b"),
            format!("{dm} on {sda1} member"),
            format!("{md} raid1 None None "),
            format!("{sda} disk Some(51200) Some(true) "),
            format!("{sda1} part None Some(true) "),
            format!("{sda1} on {sda} partition"),
        ];
        assert_eq!(recorded, expected);
    }
}
