//! Where tiles of a recording lie.
//!
//! In the recording itself, in `derived/tiles-vN`, where its folder can be written: then they go with
//! it. Else in the user's cache, under the digest of the recording. They are built in a folder beside
//! that nobody else can enter, which one rename puts in its place: two builds at once do not disturb
//! each other, and the first one done stays.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, RenameFlags, renameat, renameat_with};
use rustix::io::Errno;
use whyslow_store::Tables;

use crate::about::VERSION;
use crate::build::build_of;
use crate::store::reader::{open_folder, read_small};
use crate::{Tiles, TilesError};

/// Files of a recording that say what is in all others.
const TELLING: [&str; 2] = ["manifest.json", "checksums"];
const TELLING_BYTES_MAX: u64 = 1 << 30;
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
        let handle = open_folder(
            &fs::canonicalize(recording)
                .map_err(|error| TilesError::io("find", recording, error))?,
        )?;
        let mut hasher = blake3::Hasher::new();
        for name in TELLING {
            let content = read_small(&handle, recording, name, TELLING_BYTES_MAX)?;
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
        [Some(&self.inside), self.cached.as_ref()]
            .into_iter()
            .flatten()
            .find_map(|folder| self.open_at(folder))
    }

    fn open_at(&self, folder: &Path) -> Option<Tiles> {
        let tiles = Tiles::open(folder).ok()?;
        (tiles.recording() == self.digest).then_some(tiles)
    }

    /// Builds them, in the recording if its folder can be written, else in the cache.
    pub fn build(
        &self,
        tables: &dyn Tables,
        progress: &dyn Fn(f64),
        cancel: &AtomicBool,
    ) -> Result<Tiles, TilesError> {
        let inside = private_parent(&self.inside);
        let (target, parent) = match (inside, &self.cached) {
            (Ok(parent), _) => (&self.inside, parent),
            (Err(_), Some(cached)) => (cached, private_parent(cached)?),
            (Err(error), None) => return Err(error),
        };
        let begun = tempfile::Builder::new()
            .prefix("tiles.tmp-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|error| TilesError::io("create a folder in", &parent, error))?;
        build_of(tables, &self.digest, begun.path(), progress, cancel)?;
        self.put(begun, target)?;
        let synced = File::open(&parent).and_then(|parent| parent.sync_all());
        synced.map_err(|error| TilesError::io("sync", &parent, error))?;
        Tiles::open(target)
    }

    /// In its place: instead of what is there, unless that is as good.
    fn put(&self, begun: tempfile::TempDir, target: &Path) -> Result<(), TilesError> {
        let failed = |error: Errno| TilesError::io("rename to", target, error.into());
        let from = begun.path();
        match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {
                let _ = begun.keep();
                Ok(())
            }
            Err(Errno::EXIST) if self.open_at(target).is_some() => Ok(()),
            // What was there bears the temporary name then, and goes with it.
            Err(Errno::EXIST) => {
                renameat_with(CWD, from, CWD, target, RenameFlags::EXCHANGE).map_err(failed)
            }
            // File systems without these flags: a folder that holds something is not replaced.
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(CWD, from, CWD, target).map_err(failed)?;
                let _ = begun.keep();
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
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
        return Err(refused(format!("`{}` is no folder", parent.display())));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        let reason = format!("`{}` belongs to another user", parent.display());
        return Err(refused(reason));
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(parent, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(parent.to_path_buf())
}
