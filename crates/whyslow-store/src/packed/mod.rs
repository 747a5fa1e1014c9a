//! A recording as one file, to be sent: its files in a tar archive in zstd.
//!
//! The archive is a plain `ustar` one without folders: `manifest.json` and `checksums` first, then the
//! tables by name. What they are called and how long they are is known before the first of them comes,
//! so nothing an archive claims is believed: another name, another length, a second of one name, a link
//! or folder end the reading, and so does more than may be unpacked. Owner, mode and time of all entries
//! are the same, so that equal recordings are equal files.

mod header;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use reader::unpack;
pub use writer::pack;

use crate::{StoreError, manifest};
use header::{BLOCK, Header};

/// How packed recordings are usually called.
const ENDING: &str = ".wsl.tar.zst";
/// What every zstd frame begins with.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// No recording that is sent is longer.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// Left free on the disk.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// What unpacking may cost, and whether it shall go on.
#[derive(Debug, Clone, Copy)]
pub struct Unpacking<'c> {
    /// Bytes of table files that may be unpacked; more is [`StoreError::TooLarge`].
    pub bytes_max: u64,
    /// Set by another thread, it ends unpacking with [`StoreError::Stopped`].
    pub cancel: &'c AtomicBool,
}

impl<'c> Unpacking<'c> {
    /// As much as the disk has room for.
    pub fn into(folder: &Path, cancel: &'c AtomicBool) -> Result<Self, StoreError> {
        let disk = rustix::fs::statvfs(folder)
            .map_err(|error| StoreError::io("look at the disk of", folder, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        Ok(Self {
            bytes_max: free.saturating_sub(FREE_BYTES_MIN).min(UNPACKED_BYTES_MAX),
            cancel,
        })
    }
}

/// Whether a file is a packed recording, or called like one and compressed as one.
pub fn is_packed(path: &Path) -> bool {
    // Without waiting: a FIFO would never answer.
    if !path.metadata().is_ok_and(|about| about.is_file()) {
        return false;
    }
    let begins = |file: File| -> Option<bool> {
        let mut file = BufReader::new(file);
        let mut magic = [0; ZSTD_MAGIC.len()];
        file.read_exact(&mut magic).ok()?;
        if magic != ZSTD_MAGIC {
            return None;
        }
        if path
            .as_os_str()
            .as_encoded_bytes()
            .ends_with(ENDING.as_bytes())
        {
            return Some(true);
        }
        let mut block = [0; BLOCK];
        let stream = std::io::Cursor::new(magic).chain(file);
        let mut decoder = zstd::stream::read::Decoder::new(stream).ok()?;
        decoder.read_exact(&mut block).ok()?;
        let header = Header::parse(&block).ok()??;
        Some(header.name == manifest::FILE_NAME)
    };
    File::open(path).ok().and_then(begins).unwrap_or(false)
}

fn broken(path: &Path, offset: u64, reason: impl Into<String>) -> StoreError {
    StoreError::Packed {
        path: PathBuf::from(path),
        offset,
        reason: reason.into(),
    }
}
