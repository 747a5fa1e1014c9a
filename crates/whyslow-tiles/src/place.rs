//! Where tiles of a recording lie.
//!
//! In the recording itself, in `derived/tiles-vN`, where its folder can be written: then they go with
//! it. Else in the user's cache, under the digest of the recording. They are built in a folder beside
//! that nobody else can enter, which one rename puts in its place: two builds at once do not disturb
//! each other, and whoever has the ones before open goes on reading them.

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
use crate::build::{Order, build_within};
use crate::store::reader::{open_folder, read_small};
use crate::{Tiles, TilesError, limits, sweeping};

/// Files of a recording that say what is in all others.
const TELLING: [&str; 2] = ["manifest.json", "checksums"];
/// Folder in a recording for what can be made from it again.
const DERIVED: &str = "derived";
const DIGEST_DIGITS: usize = 32;

/// Where tiles of one recording are looked for, and built.
#[derive(Debug, Clone)]
pub struct Place {
    digest: String,
    inside: PathBuf,
    cached: Option<PathBuf>,
}

impl Place {
    /// Of a recording in a folder; `cache` is the user's folder for what can be made again.
    pub fn of(recording: &Path, cache: Option<&Path>) -> Result<Self, TilesError> {
        let recording = fs::canonicalize(recording)
            .map_err(|error| TilesError::io("find", recording, error))?;
        let handle = open_folder(&recording)?;
        let mut hasher = blake3::Hasher::new();
        for name in TELLING {
            let content = read_small(&handle, &recording, name, limits::TELLING_BYTES_MAX)?;
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

    /// Of the recording: its manifest and checksums.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Tiles that were built before, if any were, of this very recording. Those that cannot be read
    /// are as good as none: they are built again.
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

    /// Builds them, in the recording if its folder can be written, else in the cache; in place of
    /// those of before.
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
        let begun = tempfile::Builder::new()
            .prefix(sweeping::BEGUN)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|error| TilesError::io("create a folder in", &parent, error))?;
        let order = Order {
            recording: &self.digest,
            out: begun.path(),
            held_max: limits::PENDING_BYTES,
        };
        build_within(tables, &order, progress, cancel)?;
        // Before somebody else can put theirs in its place, and remove this.
        let tiles = Tiles::open(begun.path())?;
        put(begun, target)?;
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

/// Puts a build in its place. What was there bears the temporary name then, and goes with it.
fn put(begun: TempDir, target: &Path) -> Result<(), TilesError> {
    let failed = |error: Errno| TilesError::io("rename to", target, error.into());
    let from = begun.path();
    match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => {
            let _ = begun.keep();
            Ok(())
        }
        Err(Errno::EXIST) => {
            renameat_with(CWD, from, CWD, target, RenameFlags::EXCHANGE).map_err(failed)
        }
        // File systems without these flags: what is there has to go first.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if let Err(error) = fs::remove_dir_all(target)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(TilesError::io("remove", target, error));
            }
            renameat(CWD, from, CWD, target).map_err(failed)?;
            let _ = begun.keep();
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

/// The folder that the target lies in, made if it is not there: of this user, and nobody else's.
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
