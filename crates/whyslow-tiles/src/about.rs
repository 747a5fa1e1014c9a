//! `about.json`: the recording that tiles belong to. It is written last and marks a build as
//! complete.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::TilesError;
use crate::limits;
use crate::store::reader::read_small;

const FILE_NAME: &str = "about.json";
/// Format version of the file `tiles`, also part of the folder name.
pub(crate) const VERSION: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) version: u32,
    written_by: String,
    /// Digest of the recording.
    pub(crate) recording: String,
    /// Size of the file `tiles`.
    pub(crate) bytes: u64,
}

impl About {
    pub(crate) fn new(recording: &str, bytes: u64) -> Self {
        Self {
            version: VERSION,
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            recording: recording.to_owned(),
            bytes,
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), TilesError> {
        let path = folder.join(FILE_NAME);
        let mut json = serde_json::to_vec_pretty(self).expect("strings and numbers only");
        json.push(b'\n');
        File::create_new(&path)
            .and_then(|mut file| {
                file.write_all(&json)?;
                file.sync_all()
            })
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| TilesError::io("write", &path, error))
    }

    pub(crate) fn read(folder: &OwnedFd, path: &Path) -> Result<Self, TilesError> {
        let json = read_small(folder, path, FILE_NAME, limits::ABOUT_BYTES_MAX)?;
        let unfinished = |reason: String| TilesError::Unfinished {
            path: path.to_path_buf(),
            reason,
        };
        let about: Self = serde_json::from_slice(&json)
            .map_err(|error| unfinished(format!("`{FILE_NAME}` is damaged: {error}")))?;
        if about.version != VERSION {
            let found = about.version;
            return Err(unfinished(format!("version {found}, expected {VERSION}")));
        }
        Ok(about)
    }
}
