//! Room for tiles: what a build that was killed has left goes, and of the cache what was not used for
//! the longest time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whyslow_model::sort::IndexSort;

use crate::limits;

/// Names of folders in which something is built begin so.
pub(crate) const BEGUN: &str = "tiles.tmp-";

/// Marks tiles as used now. Where that fails, they only go earlier.
#[expect(
    clippy::disallowed_methods,
    reason = "of the cache only, no part of a recording"
)]
pub(crate) fn touch(tiles: &Path) {
    if let Ok(file) = File::open(tiles) {
        let _ = file.set_modified(SystemTime::now());
    }
}

struct Entry {
    used: SystemTime,
    path: PathBuf,
    is_begun: bool,
    bytes: u64,
}

/// Removes what is in this folder longest until the rest fits. Never `keep`, nor what may be in use.
/// What cannot be removed stays: tiles work without.
pub(crate) fn sweep(folder: &Path, keep: &Path, bytes_max: u64) {
    let mut entries = entries(folder);
    entries.index_sort_by(|a, b| a.used.cmp(&b.used).then_with(|| a.path.cmp(&b.path)));
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    for entry in entries {
        let age = entry.used.elapsed().unwrap_or(Duration::ZERO).as_secs();
        let is_due = if entry.is_begun {
            age > limits::BEGUN_SECONDS
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
        let is_begun = name.starts_with(BEGUN);
        let mut bytes = 0;
        for file in fs::read_dir(&path)? {
            bytes += file?.metadata()?.len();
        }
        Ok(Some(Entry {
            used: about.modified()?,
            is_begun,
            bytes,
            path,
        }))
    };
    let paths = listing.filter_map(|listed| listed.ok().map(|listed| listed.path()));
    paths
        .filter_map(|path| entry(path).ok().flatten())
        .collect()
}
