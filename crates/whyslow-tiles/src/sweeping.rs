//! Removes leftovers of killed builds, and the least recently used tiles of the cache.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whyslow_model::sort::IndexSort;

use crate::limits;

/// Prefix of the folders of unfinished builds.
pub(crate) const UNFINISHED_PREFIX: &str = "tiles.tmp-";

/// Marks tiles as used now. If that fails, they are merely removed earlier.
#[expect(
    clippy::disallowed_methods,
    reason = "age of a cache entry, not recorded data"
)]
pub(crate) fn touch(tiles: &Path) {
    if let Ok(file) = File::open(tiles) {
        let _ = file.set_modified(SystemTime::now());
    }
}

struct Entry {
    used: SystemTime,
    path: PathBuf,
    is_unfinished: bool,
    bytes: u64,
}

/// Removes leftovers of killed builds, and the least recently used tiles until the rest fits in
/// `bytes_max`. Never removes `keep`, nor tiles that may be in use. Failures are ignored.
pub(crate) fn sweep(folder: &Path, keep: &Path, bytes_max: u64) {
    let mut entries = entries(folder);
    entries.index_sort_by(|a, b| a.used.cmp(&b.used).then_with(|| a.path.cmp(&b.path)));
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    for entry in entries {
        let age = entry.used.elapsed().unwrap_or(Duration::ZERO).as_secs();
        let is_due = if entry.is_unfinished {
            age > limits::UNFINISHED_SECONDS
        } else {
            total > bytes_max && age > limits::IN_USE_SECONDS
        };
        if is_due && entry.path != keep && fs::remove_dir_all(&entry.path).is_ok() {
            total = total.saturating_sub(entry.bytes);
        }
    }
}

fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(listing) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let entry = |path: PathBuf| -> io::Result<Option<Entry>> {
        let about = fs::symlink_metadata(&path)?;
        if !about.is_dir() {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_unfinished = name.starts_with(UNFINISHED_PREFIX);
        let mut bytes = 0;
        for file in fs::read_dir(&path)? {
            bytes += file?.metadata()?.len();
        }
        Ok(Some(Entry {
            used: about.modified()?,
            is_unfinished,
            bytes,
            path,
        }))
    };
    let paths = listing.filter_map(|listed| listed.ok().map(|listed| listed.path()));
    paths
        .filter_map(|path| entry(path).ok().flatten())
        .collect()
}
