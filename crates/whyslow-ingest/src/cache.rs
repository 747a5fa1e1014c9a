//! Cache for traces that are queried like recordings: they are imported once, into a private
//! directory.
//!
//! The key of a cached recording is a digest of its input: the list of source files (path, size,
//! modification time) and the format version. Concurrent runs may import the same trace twice; the
//! first to finish wins, because a recording appears by a single rename. If the directory exceeds
//! its size limit, the least recently used recordings are removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whyslow_model::sort::IndexSort;
use whyslow_store::{Existing, StoreError};

use crate::pipeline::{ImportError, ImportOptions, ImportReport, Progress, import};
use crate::{digest, limits};

/// A cached recording.
#[derive(Debug)]
pub struct Cached {
    /// Directory of the recording.
    pub path: PathBuf,
    /// Report of the import, if the sources were imported now.
    pub report: Option<ImportReport>,
}

/// `$XDG_CACHE_HOME/whyslow`, or `~/.cache/whyslow`.
pub fn default_folder() -> Result<PathBuf, ImportError> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|folder| folder.join("whyslow"))
        .ok_or_else(|| ImportError::Cache {
            reason: "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
        })
}

/// Returns the recording of these sources in the cache, importing them if necessary. `output` and
/// `existing` of the options are ignored.
pub fn open(
    folder: &Path,
    sources: &[PathBuf],
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Cached, ImportError> {
    prepare(folder)?;
    let path = folder.join(format!("{}.wsl", key(sources, options)?));
    let found = |report| Cached {
        path: path.clone(),
        report,
    };
    if path.join("manifest.json").is_file() {
        touch(&path);
        return Ok(found(None));
    }
    let options = ImportOptions {
        output: path.clone(),
        existing: Existing::Refuse,
        ..options.clone()
    };
    let report = match import(sources, &options, progress) {
        Ok(report) => Some(report),
        // another run finished first
        Err(ImportError::Store(StoreError::Exists { .. })) => None,
        Err(error) => return Err(error),
    };
    evict(folder, &path, limits::CACHE_BYTES_MAX);
    Ok(found(report))
}

/// Recordings contain names of files and users, so the directory is accessible only to its owner.
fn prepare(folder: &Path) -> Result<(), ImportError> {
    let failed = |error: io::Error| ImportError::Cache {
        reason: format!("{error} (`{}`)", folder.display()),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    let about = fs::symlink_metadata(folder).map_err(failed)?;
    if !about.is_dir() {
        return Err(failed(io::Error::other("not a directory")));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed(io::Error::other("it belongs to another user")));
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

fn key(sources: &[PathBuf], options: &ImportOptions) -> Result<String, ImportError> {
    const KEY_DIGITS: usize = 32;
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(&whyslow_store::FORMAT_VERSION.to_le_bytes());
    for (index, source) in sources.iter().enumerate() {
        let read = |error| ImportError::Read {
            path: source.clone(),
            source: error,
        };
        let shift = options.shifts_ns.get(index).copied().unwrap_or(0);
        let path = fs::canonicalize(source).map_err(read)?;
        hasher.update(&shift.to_le_bytes());
        hash_text(&mut hasher, &path.to_string_lossy());
        for file in digest::files(source).map_err(read)? {
            hash_text(&mut hasher, &file.name);
            hasher.update(&file.bytes.to_le_bytes());
            hasher.update(&file.modified_ns.to_le_bytes());
        }
    }
    Ok(hasher.finalize().to_hex()[..KEY_DIGITS].to_owned())
}

fn hash_text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// Marks a recording as used now. If that fails, it is only evicted earlier.
#[expect(
    clippy::disallowed_methods,
    reason = "used only for the cache, not part of a recording"
)]
fn touch(recording: &Path) {
    if let Ok(file) = File::open(recording) {
        let _ = file.set_modified(SystemTime::now());
    }
}

struct Entry {
    used: SystemTime,
    path: PathBuf,
    bytes: u64,
}

/// Removes the least recently used recordings until the rest fits. Keeps `keep`, and recordings
/// that may be in use.
fn evict(folder: &Path, keep: &Path, bytes_max: u64) {
    let mut entries = entries(folder);
    entries.index_sort_by(|a, b| a.used.cmp(&b.used).then_with(|| a.path.cmp(&b.path)));
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    for entry in entries {
        let age = entry.used.elapsed().unwrap_or(Duration::ZERO).as_secs();
        let is_recording = entry.path.extension().is_some_and(|end| end == "wsl");
        let is_due = if is_recording {
            total > bytes_max && age > limits::CACHE_IN_USE_SECONDS
        } else {
            age > limits::CACHE_LEFTOVER_SECONDS
        };
        if is_due && entry.path != keep && remove(&entry.path).is_ok() {
            total = total.saturating_sub(entry.bytes);
        }
    }
}

/// Renames it first, so that a recording that is being removed cannot be opened.
fn remove(recording: &Path) -> io::Result<()> {
    let mut away = recording.as_os_str().to_owned();
    away.push(".tmp-removed");
    fs::rename(recording, &away)?;
    fs::remove_dir_all(away)
}

/// Recordings, and leftovers of interrupted imports. Unreadable entries are skipped: the cache
/// works without them.
fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(listing) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let entry = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let about = fs::symlink_metadata(&path).ok()?;
        if !about.is_dir() || !name.contains(".wsl") {
            return None;
        }
        let files = digest::files(&path).ok()?;
        Some(Entry {
            used: about.modified().ok()?,
            path,
            bytes: files.iter().map(|file| file.bytes).sum(),
        })
    };
    let paths = listing.filter_map(|listed| listed.ok().map(|listed| listed.path()));
    paths.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "ages are relative to now")]
    fn recording(folder: &Path, name: &str, bytes: usize, age_s: u64) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir(&path).expect("a test");
        fs::write(path.join("x.parquet"), vec![0; bytes]).expect("a test");
        let used = SystemTime::now() - Duration::from_secs(age_s);
        let directory = File::open(&path).expect("a test");
        directory.set_modified(used).expect("a test");
        path
    }

    #[test]
    fn a_trace_is_imported_once_for_its_owner_only() {
        let home = tempfile::tempdir().expect("a test");
        let (folder, source) = (home.path().join("cache"), home.path().join("x.txt"));
        fs::write(&source, "whyslow-text 1\n1.5 [0] free tid=7\n").expect("a test");
        let open = || {
            let options = ImportOptions::new("");
            let cached = open(
                &folder,
                std::slice::from_ref(&source),
                &options,
                &mut |_| {},
            );
            cached.expect("a test")
        };
        let (first, second) = (open(), open());
        assert!(first.report.is_some() && second.report.is_none());
        assert_eq!(first.path, second.path);
        let mode = fs::metadata(&folder).expect("a test").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(&source, "whyslow-text 1\n1.5 [0] free tid=71\n").expect("a test");
        assert_ne!(open().path, first.path);
    }

    #[test]
    fn the_longest_unused_go_first_and_what_may_be_in_use_stays() {
        let home = tempfile::tempdir().expect("a test");
        let folder = home.path();
        let oldest = recording(folder, "a.wsl", 100, 9000);
        let older = recording(folder, "b.wsl", 100, 8000);
        let old = recording(folder, "c.wsl", 100, 7000);
        let in_use = recording(folder, "d.wsl", 100, 1);
        let leftover = recording(folder, "e.wsl.tmp-x", 100, 2 * 24 * 3600);
        let foreign = recording(folder, "other", 100, 2 * 24 * 3600);
        evict(folder, &oldest, 250);
        let left = [oldest, older, old, in_use, leftover, foreign].map(|path| path.exists());
        assert_eq!(left, [true, false, false, true, false, true]);
        evict(folder, folder, 50);
        assert_eq!(entries(folder).len(), 1);
    }
}
