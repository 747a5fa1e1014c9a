//! A folder that nobody else may look into, for what lives as long as one interval.
//!
//! It goes when we end. Who is killed leaves it; the next one takes it away, which it may when nobody
//! holds its lock.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::failure::Failure;

const PREFIX: &str = "whyslow-live-";
const LOCK: &str = "lock";
/// A file system in memory: what is recorded every second should not keep a disk busy.
const MEMORY: &str = "/dev/shm";

#[derive(Debug)]
pub(crate) struct Room {
    folder: TempDir,
    /// Held as long as the folder is used.
    _lock: File,
}

impl Room {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::below(&base())
    }

    fn below(base: &Path) -> Result<Self, Failure> {
        sweep(base);
        let failed = |error| Failure::writing(base, error).hint("TMPDIR names another place");
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
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

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn spool(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("{number}.spool"))
    }

    /// Where spools lie together that are imported as one.
    pub(super) fn together(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("{number}.together"))
    }

    pub(super) fn recording(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("{number}.wsl"))
    }
}

fn base() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|name| !name.is_empty());
    let memory = || {
        let memory = Path::new(MEMORY);
        let is_there = rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok();
        is_there.then(|| memory.to_owned())
    };
    named
        .map(PathBuf::from)
        .or_else(memory)
        .unwrap_or_else(std::env::temp_dir)
}

/// Takes away what those left who were killed.
fn sweep(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_room = entry.file_name().to_string_lossy().starts_with(PREFIX);
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

    #[test]
    fn a_room_is_private_and_goes_with_its_owner() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let room = Room::below(base.path()).expect("it can be made");
        let folder = room.folder.path().to_owned();
        let mode = fs::metadata(&folder).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(room.spool(3)).expect("there is room");
        drop(room);
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
        let first = Room::below(base.path()).expect("it can be made");
        let second = Room::below(base.path()).expect("it can be made");
        assert!(!left.exists());
        assert!(young.exists() && other.exists());
        assert!(first.folder.path().exists() && second.folder.path().exists());
    }
}
