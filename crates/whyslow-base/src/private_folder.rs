//! A temporary directory that other users cannot read and that is removed when it is no longer
//! needed.
//!
//! It is removed when the program exits, also on Ctrl-C. A killed program leaves it behind; the
//! next run removes it if its lock is free.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::interrupt;

const LOCK: &str = "lock";
/// The lock file until it is locked.
const UNNAMED: &str = "lock.new";

/// A directory of mode 0700 that is removed on drop.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    /// Locked while the directory is in use.
    _lock: File,
}

impl PrivateFolder {
    /// Creates it in `base`, with a name that starts with `prefix`, which identifies its purpose.
    pub fn new(base: &Path, prefix: &str) -> Result<Self, Failure> {
        sweep(base, prefix);
        let failed = |error| {
            Failure::writing(base, error)
                .hint("set TMPDIR to another directory: export TMPDIR=/var/tmp")
        };
        let folder = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(base)
            .map_err(failed)?;
        // Locked before it has its name: in between, another program would remove the directory.
        let unnamed = folder.path().join(UNNAMED);
        let lock = File::create_new(&unnamed).map_err(failed)?;
        lock.lock().map_err(failed)?;
        fs::rename(&unnamed, folder.path().join(LOCK)).map_err(failed)?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The same, but also removed when a signal without a handler of its own ends the program.
    pub fn passing(base: &Path, prefix: &str) -> Result<Self, Failure> {
        let folder = Self::new(base, prefix)?;
        interrupt::remove_at_end(folder.path())?;
        Ok(folder)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes directories that killed programs left behind.
fn sweep(base: &Path, prefix: &str) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let has_prefix = entry.file_name().to_string_lossy().starts_with(prefix);
        let is_ours = |entry: &fs::DirEntry| {
            // The metadata of the entry itself, because it may be a symlink.
            let metadata = entry.metadata();
            metadata.is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own)
        };
        if !has_prefix || !is_ours(&entry) {
            continue;
        }
        // Without a lock file it is being created, or does not belong to this program.
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
        let private = PrivateFolder::new(base.path(), PREFIX).expect("it can be created");
        let folder = private.path().to_owned();
        let mode = fs::metadata(&folder).expect("it exists").mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(folder.join("something")).expect("it can be written");
        drop(private);
        assert!(!folder.exists());
    }

    #[test]
    fn programs_that_start_at_the_same_time_keep_their_folders() {
        let base = tempfile::tempdir().expect("a temporary folder");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let made =
                            PrivateFolder::new(base.path(), PREFIX).expect("it can be created");
                        assert!(made.path().join(LOCK).exists());
                    }
                });
            }
        });
    }

    #[test]
    fn what_was_left_is_taken_away_and_what_is_used_stays() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let left = base.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).expect("it can be written");
        fs::write(left.join(LOCK), "").expect("it can be written");
        let young = base.path().join(format!("{PREFIX}young"));
        fs::create_dir(&young).expect("it can be written");
        let other = base.path().join("other");
        fs::create_dir(&other).expect("it can be written");
        let make = || PrivateFolder::new(base.path(), PREFIX).expect("it can be created");
        let (first, second) = (make(), make());
        assert!(!left.exists());
        assert!(young.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
    }
}
