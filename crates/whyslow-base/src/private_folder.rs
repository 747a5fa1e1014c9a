//! A folder that nobody else may look into, and that goes when it is not needed any more.
//!
//! It goes when we end, by Ctrl-C too. Who is killed leaves it; the next one takes it away, which it
//! may when nobody holds its lock.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::interrupt;

const LOCK: &str = "lock";

/// A folder of mode 0700 that is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    /// Held as long as the folder is used.
    _lock: File,
}

impl PrivateFolder {
    /// In `base`, under a name that begins with `prefix`, as all of one purpose do.
    pub fn new(base: &Path, prefix: &str) -> Result<Self, Failure> {
        sweep(base, prefix);
        let failed = |error| Failure::writing(base, error).hint("TMPDIR names another place");
        let folder = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(base)
            .map_err(failed)?;
        let lock = File::create_new(folder.path().join(LOCK)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The same; it also goes when a signal ends the program that nobody waits for.
    pub fn passing(base: &Path, prefix: &str) -> Result<Self, Failure> {
        let folder = Self::new(base, prefix)?;
        interrupt::remove_at_end(folder.path())?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Takes away what those left who were killed.
fn sweep(base: &Path, prefix: &str) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_room = entry.file_name().to_string_lossy().starts_with(prefix);
        let is_ours = |entry: &fs::DirEntry| {
            // Of the entry itself: it may be a link.
            let metadata = entry.metadata();
            metadata.is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own)
        };
        if !is_room || !is_ours(&entry) {
            continue;
        }
        // Without a lock it is being made, or somebody else's.
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "whyslow-test-";

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let private = PrivateFolder::new(base.path(), PREFIX).expect("it can be made");
        let folder = private.path().to_owned();
        let mode = fs::metadata(&folder).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(folder.join("something")).expect("there is room");
        drop(private);
        assert!(!folder.exists());
    }

    #[test]
    fn what_was_left_is_taken_away_and_what_is_used_stays() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let left = base.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).expect("there is room");
        fs::write(left.join(LOCK), "").expect("there is room");
        let young = base.path().join(format!("{PREFIX}young"));
        fs::create_dir(&young).expect("there is room");
        let other = base.path().join("other");
        fs::create_dir(&other).expect("there is room");
        let make = || PrivateFolder::new(base.path(), PREFIX).expect("it can be made");
        let (first, second) = (make(), make());
        assert!(!left.exists());
        assert!(young.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
    }
}
