//! `manifest.json`: the description of a recording, as [`RecordingInfo`] in JSON.
//!
//! It is written last, so a directory without it is not a recording. Its file names are checked
//! before anything is opened: files must be in the recording itself.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use serde::Deserialize;

use crate::checksums::{self, ByFile};
use crate::{RecordingInfo, StoreError, limits, renamed};

pub(crate) const FILE_NAME: &str = "manifest.json";
/// Raised when an older program could misread the new format.
pub const FORMAT_VERSION: u32 = 3;
/// Older versions lack columns that queries need. Names of version 2 are translated by
/// [`renamed`].
const OLDEST_VERSION: u32 = 2;

pub(crate) fn to_json(recording: &RecordingInfo) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(recording).expect("strings and numbers only");
    json.push(b'\n');
    json
}

/// Opens a file of a recording, but never a link or anything else than a regular file.
pub(crate) fn open_file(
    directory: &OwnedFd,
    path: &Path,
    name: &str,
) -> Result<(File, u64), StoreError> {
    let full = path.join(name);
    // Non-blocking: opening a planted FIFO would block forever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(directory, name, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| match error {
            Errno::LOOP => StoreError::NotARecording {
                path: path.to_path_buf(),
                reason: format!("`{name}` is a symbolic link"),
            },
            error => StoreError::io("open", &full, error.into()),
        })?;
    let metadata = file
        .metadata()
        .map_err(|error| StoreError::io("read the metadata of", &full, error))?;
    if !metadata.is_file() {
        return Err(StoreError::NotARecording {
            path: path.to_path_buf(),
            reason: format!("`{name}` is not a file"),
        });
    }
    Ok((file, metadata.len()))
}

/// Reads a small file; `None` if it does not exist.
fn read_file(
    directory: &OwnedFd,
    path: &Path,
    name: &str,
    bytes_max: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let (file, bytes) = match open_file(directory, path, name) {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        opened => opened?,
    };
    if bytes > bytes_max {
        return Err(StoreError::NotARecording {
            path: path.to_path_buf(),
            reason: format!("`{name}` has {bytes} bytes"),
        });
    }
    let mut content = Vec::new();
    file.take(bytes_max)
        .read_to_end(&mut content)
        .map_err(|error| StoreError::io("read", path.join(name), error))?;
    Ok(Some(content))
}

/// The files that describe all others: manifest and checksums.
pub(crate) fn describing_files(
    directory: &OwnedFd,
    path: &Path,
) -> Result<[Vec<u8>; 2], StoreError> {
    let read = |name: &str, bytes_max| {
        let missing = || StoreError::NotARecording {
            path: path.to_path_buf(),
            reason: format!("it has no `{name}`"),
        };
        read_file(directory, path, name, bytes_max)?.ok_or_else(missing)
    };
    Ok([
        read(FILE_NAME, limits::MANIFEST_BYTES)?,
        read(checksums::FILE_NAME, limits::CHECKSUMS_BYTES)?,
    ])
}

/// The checksums of all files of a recording.
pub(crate) fn read_checksums(directory: &OwnedFd, path: &Path) -> Result<ByFile, StoreError> {
    let name = checksums::FILE_NAME;
    let broken = |reason: &str| StoreError::NotARecording {
        path: path.to_path_buf(),
        reason: format!("{reason} `{name}`"),
    };
    let content = read_file(directory, path, name, limits::CHECKSUMS_BYTES)?;
    let content = content.ok_or_else(|| broken("it has no"))?;
    checksums::decode(&content).ok_or_else(|| broken("it has a damaged"))
}

pub(crate) fn read(directory: &OwnedFd, path: &Path) -> Result<RecordingInfo, StoreError> {
    let broken = |reason: String| StoreError::NotARecording {
        path: path.to_path_buf(),
        reason,
    };
    let Some(json) = read_file(directory, path, FILE_NAME, limits::MANIFEST_BYTES)? else {
        return Err(broken(format!("it has no `{FILE_NAME}`")));
    };
    parse(&json, path)
}

pub(crate) fn parse(json: &[u8], path: &Path) -> Result<RecordingInfo, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let broken = |error: serde_json::Error| StoreError::NotARecording {
        path: path.to_path_buf(),
        reason: format!("`{FILE_NAME}` is damaged: {error}"),
    };
    // First on its own: a later version may have changed everything else.
    let version: Version = serde_json::from_slice(json).map_err(broken)?;
    if version.format_version > FORMAT_VERSION {
        return Err(StoreError::TooNew {
            path: path.to_path_buf(),
            found: version.format_version,
            supported: FORMAT_VERSION,
        });
    }
    if version.format_version < OLDEST_VERSION {
        return Err(StoreError::TooOld {
            path: path.to_path_buf(),
            found: version.format_version,
            supported: OLDEST_VERSION,
        });
    }
    let mut recording: RecordingInfo = serde_json::from_slice(json).map_err(broken)?;
    if let Some(cut) = &mut recording.cut {
        renamed::rename_in_cut(recording.format_version, cut);
    }
    for table in recording.tables.values() {
        for name in table.files.iter().chain(&table.long_files) {
            if !is_plain_name(name) {
                return Err(StoreError::NotARecording {
                    path: path.to_path_buf(),
                    reason: format!(
                        "`{FILE_NAME}` lists a file outside of the recording: {name:?}"
                    ),
                });
            }
        }
    }
    Ok(recording)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}
