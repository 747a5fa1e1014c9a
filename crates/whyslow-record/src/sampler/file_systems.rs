//! Space in file systems, of the mounts that the recorder itself sees.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use whyslow_model::counter as c;
use whyslow_model::spool::Encoder;

use super::machine::Value;
use crate::snapshot::{self, Mount};

/// Maximum number of mounts.
const MOUNTS_MAX: usize = 500;
/// Local file systems: statvfs on a network or FUSE file system may block forever.
const LOCAL: [&[u8]; 20] = [
    b"ext2",
    b"ext3",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"f2fs",
    b"jfs",
    b"reiserfs",
    b"nilfs2",
    b"bcachefs",
    b"zfs",
    b"vfat",
    b"exfat",
    b"ntfs3",
    b"iso9660",
    b"udf",
    b"squashfs",
    b"tmpfs",
    b"devtmpfs",
    b"overlay",
];

#[derive(Debug, Default)]
pub(super) struct FileSystems {
    /// The last content of mountinfo.
    text: Vec<u8>,
    values: BTreeMap<u32, Vec<Value>>,
}

impl FileSystems {
    pub(super) fn round(&mut self, encoder: &mut Encoder, proc: &Path) {
        let own = proc.join("self");
        let Some(ns) = snapshot::mount_ns(&own) else {
            return;
        };
        let text = fs::read(own.join("mountinfo")).unwrap_or_default();
        let mounts = visible(&text);
        if text != self.text {
            for mount in mounts.values().take(MOUNTS_MAX) {
                mount.put(encoder, ns);
            }
            self.text = text;
        }
        let is_local = |mount: &&Mount| LOCAL.contains(&&mount.kind[..]);
        for mount in mounts.values().filter(is_local).take(MOUNTS_MAX) {
            let values = space(Path::new(OsStr::from_bytes(&mount.point)));
            let known = self.values.entry(mount.id).or_default();
            if *known != values {
                super::put_of(encoder, (0, ns, mount.id, &mount.point), &values);
                *known = values;
            }
        }
    }
}

/// A path refers to the last mount on it.
fn visible(text: &[u8]) -> BTreeMap<Vec<u8>, Mount> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(Mount::parse);
    lines.map(|mount| (mount.point.clone(), mount)).collect()
}

fn space(path: &Path) -> Vec<Value> {
    let Ok(stat) = rustix::fs::statvfs(path) else {
        return Vec::new();
    };
    let bytes =
        |blocks: u64| i64::try_from(blocks.saturating_mul(stat.f_frsize)).unwrap_or(i64::MAX);
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    vec![
        (c::FS_SIZE, bytes(stat.f_blocks)),
        (c::FS_FREE, bytes(stat.f_bfree)),
        (c::FS_AVAILABLE, bytes(stat.f_bavail)),
        (c::FS_INODES, count(stat.f_files)),
        (c::FS_INODES_FREE, count(stat.f_ffree)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_on_another_one_hides_it() {
        let text = b"1 0 0:3 / /a rw - tmpfs x rw\n2 1 0:4 / /a rw - ext4 y rw\n3 1 0:5 / /a\\040b rw - xfs z rw\nbad\n";
        let found: Vec<_> = visible(text).values().map(|mount| mount.id).collect();
        assert_eq!(found, [2, 3]);
    }

    #[test]
    fn the_root_has_room() {
        let values = space(Path::new("/"));
        assert!(
            values
                .iter()
                .any(|(place, bytes)| *place == c::FS_SIZE && *bytes > 0)
        );
        assert_eq!(space(Path::new("/no/such/place")), []);
    }
}
