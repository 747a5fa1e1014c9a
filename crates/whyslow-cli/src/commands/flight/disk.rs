//! Whether the disk has space for the data to save.

use std::fs;
use std::io;
use std::path::Path;

use super::place::Place;

/// Space that is left free: the smaller of the two.
const FREE_PERCENT: u64 = 5;
const FREE_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, Copy)]
pub(super) struct Disk {
    pub(super) free: u64,
    pub(super) total: u64,
    /// Size of all recordings saved under the same name.
    pub(super) saved: u64,
}

impl Disk {
    pub(super) fn of(place: &Place) -> io::Result<Self> {
        let disk = rustix::fs::statvfs(&place.folder)?;
        Ok(Self {
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
            total: disk.f_blocks.saturating_mul(disk.f_frsize),
            saved: saved(place)?,
        })
    }

    /// Why `bytes` more cannot be saved, if they cannot.
    pub(super) fn refuses(&self, bytes: u64, saved_max: u64) -> Option<String> {
        let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        if self.saved.saturating_add(bytes) > saved_max {
            return Some(format!(
                "about {:.1} MiB in addition to the {:.1} MiB saved so far would exceed --max-disk",
                mib(bytes),
                mib(self.saved)
            ));
        }
        let keep = (self.total / 100 * FREE_PERCENT).min(FREE_BYTES);
        if self.free < bytes.saturating_add(keep) {
            return Some(format!(
                "the disk has {:.1} MiB free, of which {:.1} MiB are reserved, and about {:.1} MiB are needed",
                mib(self.free),
                mib(keep),
                mib(bytes)
            ));
        }
        None
    }
}

/// Total size of all recordings saved there, in this run or before.
fn saved(place: &Place) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(&place.folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_ours(name, &place.stem)) {
            bytes += size(&entry.path(), 0);
        }
    }
    Ok(bytes)
}

/// `web-20260102-030405.wsl`, or its spool.
pub(super) fn is_ours(name: &str, stem: &str) -> bool {
    let rest = name
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_prefix('-'));
    let Some((time, ending)) = rest.and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let is_time = time.len() >= 15
        && time
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_time && ["wsl", "wsl.spool"].contains(&ending)
}

/// Size of a file, or of all files below a directory; recordings are not deep.
fn size(path: &Path, depth: u32) -> u64 {
    const DEPTH_MAX: u32 = 8;
    let Ok(about) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !about.is_dir() || depth >= DEPTH_MAX {
        return about.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path(), depth + 1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn some_of_the_disk_stays_free() {
        let disk = |free, total| Disk {
            free,
            total,
            saved: 0,
        };
        // A large disk: 1 GiB stays free.
        assert_eq!(disk(2 * GIB, 1000 * GIB).refuses(1000 * MIB, GIB), None);
        let why = disk(GIB + 10 * MIB, 1000 * GIB).refuses(20 * MIB, GIB);
        assert!(why.is_some_and(|why| why.contains("1024.0 MiB are reserved")));
        // A small disk: 5 % stay free.
        assert_eq!(disk(70 * MIB, 1000 * MIB).refuses(20 * MIB, GIB), None);
        assert!(disk(60 * MIB, 1000 * MIB).refuses(20 * MIB, GIB).is_some());
        assert!(disk(u64::MAX, u64::MAX).refuses(u64::MAX, GIB).is_some());
    }

    #[test]
    fn what_was_saved_before_counts() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let place = Place {
            folder: folder.path().to_owned(),
            stem: "web".into(),
        };
        fs::create_dir_all(folder.path().join("web-20260102-030405.wsl/tables")).expect("a disk");
        let write = |name: &str, bytes: usize| {
            fs::write(folder.path().join(name), vec![0; bytes]).expect("a disk");
        };
        write("web-20260102-030405.wsl/tables/a", 300);
        write("web-20260102-030406.wsl.spool", 20);
        write("web-20260102-030406-2.wsl", 5);
        for other in [
            "web.wsl",
            "webs-20260102-030405.wsl",
            "web-1.wsl",
            "web-20260102-030405.txt",
        ] {
            write(other, 1000);
        }
        let disk = Disk::of(&place).expect("a disk");
        assert_eq!(disk.saved, 325);
        assert!(
            disk.refuses(100, 424)
                .is_some_and(|why| why.contains("--max-disk"))
        );
    }
}
