//! Block devices, network interfaces and interrupt lines by name.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use whyslow_model::sort::IndexSort;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;

pub(super) fn block(encoder: &mut Encoder, folder: &Path) {
    for (name, path) in entries(folder) {
        let text = fs::read_to_string(path.join("dev")).unwrap_or_default();
        if let Some(dev) = number(text.trim()) {
            encoder
                .begin(Kind::BlockDevice, clock::monotonic(), (0, 0))
                .u32(dev)
                .text(&name)
                .end();
        }
    }
}

pub(super) fn net(encoder: &mut Encoder, folder: &Path) {
    for (name, path) in entries(folder) {
        let index = fs::read_to_string(path.join("ifindex")).ok();
        let index = index.and_then(|text| text.trim().parse::<u32>().ok());
        encoder
            .begin(Kind::NetInterface, clock::monotonic(), (0, 0))
            .u32(index.unwrap_or(0))
            .u32(0)
            .text(&name)
            .end();
    }
}

pub(super) fn irqs(encoder: &mut Encoder, folder: &Path) {
    for (name, path) in entries(folder) {
        let nr = std::str::from_utf8(&name)
            .ok()
            .and_then(|nr| nr.parse::<u32>().ok());
        let Some(nr) = nr else { continue };
        // Each action of an interrupt line has a directory with its name.
        let actions = entries(&path).into_iter().filter(|(_, path)| path.is_dir());
        if let Some((action, _)) = actions.min() {
            encoder
                .begin(Kind::Irq, clock::monotonic(), (0, 0))
                .u32(nr)
                .text(&action)
                .end();
        }
    }
}

/// `8:1` as a kernel `dev_t` with 20 minor bits.
pub(super) fn number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// Names and paths of the entries of a directory, sorted.
pub(super) fn entries(folder: &Path) -> Vec<(Vec<u8>, std::path::PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries
        .map(|entry| (entry.file_name().as_bytes().to_vec(), entry.path()))
        .collect();
    entries.index_sort();
    entries
}
