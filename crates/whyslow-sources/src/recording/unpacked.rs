//! A packed recording, unpacked while it is used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use whyslow_base::failure::Failure;
use whyslow_base::private_folder::PrivateFolder;
use whyslow_store::packed::{self, Unpacking};

pub(super) const PREFIX: &str = "whyslow-unpacked-";
/// Next to the lock of the directory.
const INSIDE: &str = "recording.wsl";

/// A recording in a directory that is deleted with it.
#[derive(Debug)]
pub(super) struct Unpacked {
    room: PrivateFolder,
}

impl Unpacked {
    pub(super) fn new(packed: &Path) -> Result<Self, Failure> {
        let file = File::open(packed).map_err(|error| Failure::reading(packed, error))?;
        let room = PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?;
        let unpacked = Self { room };
        let inside = unpacked.path();
        fs::create_dir(&inside).map_err(|error| Failure::writing(&inside, error))?;
        // An interruption ends the program, and the directory is deleted.
        let never = AtomicBool::new(false);
        let limits = Unpacking::into(&inside, &never)?;
        packed::unpack(file, packed, &inside, &limits)?;
        Ok(unpacked)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.room.path().join(INSIDE)
    }
}
