//! A recording as one file: its files in a tar archive, compressed with zstd.
//!
//! The archive is a plain `ustar` archive without directories: `manifest.json` and `checksums`
//! first, then the tables by name. Names and sizes of all entries are known before the first table,
//! so no claim of an archive is trusted: an unexpected name or size, a duplicate, a link or a
//! directory is an error, and so is exceeding the size limit. Owner, mode and time of all entries
//! are the same, so that equal recordings give equal files.

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

/// Usual file name suffix of packed recordings.
const ENDING: &str = ".wsl.tar.zst";
/// Magic number of zstd frames.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Maximum size of a packed recording.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// Space left free on the disk.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Limits of unpacking.
#[derive(Debug, Clone, Copy)]
pub struct Unpacking<'c> {
    /// Maximum size of table files to unpack; more is [`StoreError::TooLarge`].
    pub bytes_max: u64,
    /// Stops unpacking with [`StoreError::Stopped`] when another thread sets it.
    pub cancel: &'c AtomicBool,
}

impl<'c> Unpacking<'c> {
    /// A limit according to the free space of the disk.
    pub fn into(folder: &Path, cancel: &'c AtomicBool) -> Result<Self, StoreError> {
        let disk = rustix::fs::statvfs(folder)
            .map_err(|error| StoreError::io("get the free space of", folder, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        Ok(Self {
            bytes_max: free.saturating_sub(FREE_BYTES_MIN).min(UNPACKED_BYTES_MAX),
            cancel,
        })
    }
}

/// Whether a file is a packed recording, or has such a name and is compressed with zstd.
pub fn is_packed(path: &Path) -> bool {
    // Non-blocking: opening a FIFO would block forever.
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
