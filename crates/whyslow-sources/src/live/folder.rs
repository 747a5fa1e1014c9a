//! Directory of recordings that live for one interval.

use std::path::{Path, PathBuf};

use whyslow_base::failure::Failure;
use whyslow_base::private_folder::PrivateFolder;

const PREFIX: &str = "whyslow-live-";
/// A file system in memory, so that recording every second does not keep a disk busy.
const MEMORY: &str = "/dev/shm";

/// A private directory for spools and recordings of this machine.
#[derive(Debug)]
pub struct LiveFolder(PrivateFolder);

impl LiveFolder {
    /// In memory, if there is a file system in memory.
    pub fn new() -> Result<Self, Failure> {
        PrivateFolder::new(&base(), PREFIX).map(Self)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn spool(&self, number: u64) -> PathBuf {
        self.path().join(format!("{number}.spool"))
    }

    /// Directory of spools that are imported together.
    pub(super) fn together(&self, number: u64) -> PathBuf {
        self.path().join(format!("{number}.together"))
    }

    pub(super) fn recording(&self, number: u64) -> PathBuf {
        self.path().join(format!("{number}.wsl"))
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
