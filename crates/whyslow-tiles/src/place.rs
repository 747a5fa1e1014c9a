//! Location of the tiles of a recording.
//!
//! If the recording is writable, tiles are stored in it, in `derived/tiles-vN`, and move with it;
//! otherwise in the cache of the user, under the digest of the recording. They are built in a
//! private temporary folder, which one rename puts in place: concurrent builds do not disturb each
//! other, and readers of the previous tiles keep them open.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, RenameFlags, renameat, renameat_with};
use rustix::io::Errno;
use tempfile::TempDir;
use whyslow_store::Tables;

use crate::about::VERSION;
use crate::build::{BuildOptions, build_within};
use crate::store::reader::{open_folder, read_small};
use crate::{Tiles, TilesError, limits, sweeping};

/// Files of a recording that determine its digest: they describe all other files.
const DIGESTED_FILES: [&str; 2] = ["manifest.json", "checksums"];
/// Folder in a recording for derived data.
const DERIVED: &str = "derived";
const DIGEST_DIGITS: usize = 32;

/// Location of the tiles of one recording.
#[derive(Debug, Clone)]
pub struct Place {
    digest: String,
    inside: PathBuf,
    cached: Option<PathBuf>,
}

impl Place {
    /// Location for the recording in a folder; `cache` is the cache folder of the user.
    pub fn of(recording: &Path, cache: Option<&Path>) -> Result<Self, TilesError> {
        let recording = fs::canonicalize(recording)
            .map_err(|error| TilesError::io("find", recording, error))?;
        let handle = open_folder(&recording)?;
        let mut hasher = blake3::Hasher::new();
        for name in DIGESTED_FILES {
            let content = read_small(&handle, &recording, name, limits::MANIFEST_BYTES_MAX)?;
            hasher.update(&(content.len() as u64).to_le_bytes());
            hasher.update(&content);
        }
        let digest = hasher.finalize().to_hex()[..DIGEST_DIGITS].to_owned();
        let name = format!("tiles-v{VERSION}");
        Ok(Self {
            inside: recording.join(DERIVED).join(&name),
            cached: cache.map(|cache| cache.join(&name).join(&digest)),
            digest,
        })
    }

    /// Digest of the recording, from its manifest and checksums.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Opens existing tiles of exactly this recording. Unreadable ones count as missing: they are
    /// built again.
    pub fn open(&self) -> Option<Tiles> {
        if let Some(tiles) = self.open_at(&self.inside) {
            return Some(tiles);
        }
        let cached = self.cached.as_ref()?;
        let tiles = self.open_at(cached)?;
        sweeping::touch(cached);
        Some(tiles)
    }

    fn open_at(&self, folder: &Path) -> Option<Tiles> {
        let tiles = Tiles::open(folder).ok()?;
        (tiles.recording() == self.digest).then_some(tiles)
    }

    /// Builds tiles, in the recording if it is writable, else in the cache, and replaces existing
    /// ones.
    pub fn build(
        &self,
        tables: &dyn Tables,
        progress: &dyn Fn(f64),
        cancel: &AtomicBool,
    ) -> Result<Tiles, TilesError> {
        let (target, parent) = match (private_parent(&self.inside), &self.cached) {
            (Ok(parent), _) => (&self.inside, parent),
            (Err(_), Some(cached)) => (cached, private_parent(cached)?),
            (Err(error), None) => return Err(error),
        };
        let unfinished = tempfile::Builder::new()
            .prefix(sweeping::UNFINISHED_PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|error| TilesError::io("create a folder in", &parent, error))?;
        let options = BuildOptions {
            recording: &self.digest,
            out: unfinished.path(),
            buffered_max: limits::PENDING_BYTES,
        };
        build_within(tables, &options, progress, cancel)?;
        // Opened before the rename: after it, a concurrent build may replace and remove the folder.
        let tiles = Tiles::open(unfinished.path())?;
        install(unfinished, target)?;
        File::open(&parent)
            .and_then(|parent| parent.sync_all())
            .map_err(|error| TilesError::io("sync", &parent, error))?;
        let bytes_max = if target == &self.inside {
            u64::MAX
        } else {
            limits::CACHE_BYTES_MAX
        };
        sweeping::sweep(&parent, target, bytes_max);
        Ok(tiles.at(target))
    }
}

/// Moves a build in place. Existing tiles are exchanged with it, and removed with the temporary
/// folder.
fn install(unfinished: TempDir, target: &Path) -> Result<(), TilesError> {
    let failed = |error: Errno| TilesError::io("rename to", target, error.into());
    let from = unfinished.path();
    match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => {
            let _ = unfinished.keep();
            Ok(())
        }
        Err(Errno::EXIST) => {
            renameat_with(CWD, from, CWD, target, RenameFlags::EXCHANGE).map_err(failed)
        }
        // The file system does not support these flags: remove the existing tiles first.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if let Err(error) = fs::remove_dir_all(target)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(TilesError::io("remove", target, error));
            }
            renameat(CWD, from, CWD, target).map_err(failed)?;
            let _ = unfinished.keep();
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Creates the parent folder of the target if needed, and makes it private to the current user.
fn private_parent(target: &Path) -> Result<PathBuf, TilesError> {
    let parent = target.parent().unwrap_or(Path::new("."));
    let refused = |reason: String| TilesError::NoPlace { reason };
    let failed = |error: io::Error| refused(format!("{error} (`{}`)", parent.display()));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent)
        .map_err(failed)?;
    let about = fs::symlink_metadata(parent).map_err(failed)?;
    if !about.is_dir() {
        return Err(failed(io::Error::other("not a directory")));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed(io::Error::other("it belongs to another user")));
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(parent, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(parent.to_path_buf())
}
