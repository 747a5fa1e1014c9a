//! The directory in which a recording is written, and its commit.
//!
//! Everything is written into `NAME.tmp-RANDOM` next to the target, which only the user can access;
//! the manifest comes last, and one rename makes the recording visible. If it is abandoned for any
//! reason, the directory is removed. Files are created relative to the open directory, never
//! through a link, and never overwriting a file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat, renameat_with};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::limits::Limits;
use crate::{StoreError, manifest};

/// What to do if the target exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Fail with [`StoreError::Exists`].
    #[default]
    Refuse,
    /// Replace it if it is a recording; it stays intact until the new one is complete.
    Replace,
}

pub(crate) struct Staging {
    target: PathBuf,
    existing: Existing,
    limits: Limits,
    directory: TempDir,
    handle: Arc<OwnedFd>,
}

/// Creates the files of encoder threads.
#[derive(Clone)]
pub(crate) struct StagedFiles {
    pub(crate) limits: Limits,
    path: PathBuf,
    handle: Arc<OwnedFd>,
}

impl StagedFiles {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn create(&self, name: &str) -> Result<File, StoreError> {
        openat(
            &*self.handle,
            name,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map(File::from)
        .map_err(|error| StoreError::io("create", self.path(name), error.into()))
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Staging {
    pub(crate) fn create(
        target: &Path,
        existing: Existing,
        limits: Limits,
    ) -> Result<Self, StoreError> {
        let Some(name) = target.file_name() else {
            return Err(StoreError::io(
                "create recording",
                target,
                io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"),
            ));
        };
        check_target(target, existing)?;
        let mut prefix = name.to_os_string();
        prefix.push(".tmp-");
        let directory = tempfile::Builder::new()
            .prefix(&prefix)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(parent(target))
            .map_err(|error| StoreError::io("create a directory in", parent(target), error))?;
        let handle = open_directory(directory.path())?;
        Ok(Self {
            target: target.to_path_buf(),
            existing,
            limits,
            directory,
            handle: Arc::new(handle),
        })
    }

    pub(crate) fn files(&self) -> StagedFiles {
        StagedFiles {
            limits: self.limits,
            path: self.directory.path().to_path_buf(),
            handle: Arc::clone(&self.handle),
        }
    }

    /// An unnamed file that disappears with the process.
    pub(crate) fn unnamed(&self) -> Result<File, StoreError> {
        tempfile::tempfile_in(self.directory.path()).map_err(|error| {
            StoreError::io("create a temporary file in", self.directory.path(), error)
        })
    }

    /// Writes a complete file.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let files = self.files();
        let mut file = files.create(name)?;
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .map_err(|error| StoreError::io("write", files.path(name), error))
    }

    /// Moves the recording to the target.
    pub(crate) fn commit(self) -> Result<(), StoreError> {
        sync(&*self.handle, self.directory.path())?;
        check_target(&self.target, self.existing)?;
        let above = parent(&self.target).to_path_buf();
        self.rename()?;
        sync(&open_directory(&above)?, &above)
    }

    fn rename(self) -> Result<(), StoreError> {
        let from = self.directory.path();
        let to = &self.target;
        let failed = |error: Errno| StoreError::io("rename to", to, error.into());
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => {
                let _ = self.directory.keep();
                Ok(())
            }
            Err(Errno::EXIST) if self.existing == Existing::Refuse => {
                Err(StoreError::Exists { path: to.clone() })
            }
            Err(Errno::EXIST) => {
                renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).map_err(failed)?;
                // The old recording has the temporary name now, and is removed with it.
                let old = from.to_path_buf();
                self.directory
                    .close()
                    .map_err(|error| StoreError::io("remove the replaced recording", old, error))
            }
            // On file systems without these flags, a plain rename never replaces a non-empty
            // directory, so at worst replacing a recording fails with this error.
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(CWD, from, CWD, to).map_err(failed)?;
                let _ = self.directory.keep();
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Whether the target may be written: it does not exist, or is a recording that may be replaced.
fn check_target(target: &Path, existing: Existing) -> Result<(), StoreError> {
    let kind = match std::fs::symlink_metadata(target) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("read the metadata of", target, error)),
    };
    if existing == Existing::Refuse {
        return Err(StoreError::Exists {
            path: target.to_path_buf(),
        });
    }
    if !kind.is_dir() {
        return Err(StoreError::NotARecording {
            path: target.to_path_buf(),
            reason: "it exists and is not a directory, so it is not replaced".to_owned(),
        });
    }
    manifest::read(&open_directory(target)?, target).map(drop)
}

pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
        .map_err(|error| StoreError::io("open", path, error.into()))
}

fn sync(directory: impl AsFd, path: &Path) -> Result<(), StoreError> {
    match rustix::fs::fsync(directory) {
        // Some file systems cannot sync a directory; its files have been synced.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(StoreError::io("sync", path, error.into())),
    }
}
