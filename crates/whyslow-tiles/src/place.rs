//! Where tiles of a recording lie.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use whyslow_store::Tables;

use crate::{Tiles, TilesError};

/// Builds into an empty folder that only this user can enter.
pub fn build(
    _tables: &dyn Tables,
    out: &Path,
    progress: &dyn Fn(f64),
    _cancel: &AtomicBool,
) -> Result<(), TilesError> {
    progress(1.0);
    Err(TilesError::Unfinished {
        path: out.to_path_buf(),
        reason: "nothing is built yet".into(),
    })
}

/// Where tiles of one recording are looked for, and built.
#[derive(Debug, Clone)]
pub struct Place {
    recording: PathBuf,
    cache: Option<PathBuf>,
    digest: String,
}

impl Place {
    /// Of a recording in a folder; `cache` is the user's folder for what can be made again.
    pub fn of(recording: &Path, cache: Option<&Path>) -> Result<Self, TilesError> {
        Ok(Self {
            recording: recording.to_path_buf(),
            cache: cache.map(Path::to_path_buf),
            digest: String::new(),
        })
    }

    /// Of the recording: its manifest and checksums.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Tiles that were built before, if any were, of this very recording.
    pub fn open(&self) -> Result<Option<Tiles>, TilesError> {
        Ok(None)
    }

    /// Builds them, in the recording if its folder can be written, else in the cache.
    pub fn build(
        &self,
        _tables: &dyn Tables,
        _progress: &dyn Fn(f64),
        _cancel: &AtomicBool,
    ) -> Result<Tiles, TilesError> {
        let reason = format!("{} {:?}", self.recording.display(), self.cache);
        Err(TilesError::NoPlace { reason })
    }
}
