//! Packs a recording into one stream. The bytes depend only on its files: not on time, owner or
//! directory order. Blocks are not verified against their checksums here, because the reader does
//! that.

use std::io::{self, Read, Write};
use std::path::Path;

use super::header::{BLOCK, Header};
use crate::{RecordingInfo, StoreError, checksums, manifest, staging};

/// Tables are already compressed: this exploits what they have in common.
const LEVEL: i32 = 3;
const COPY_BYTES: usize = 128 << 10;

/// Writes a recording as one file; equal recordings give equal bytes. Returns the uncompressed
/// size.
pub fn pack(recording: &Path, out: impl Write) -> Result<u64, StoreError> {
    let directory = staging::open_directory(recording)?;
    let info = manifest::read(&directory, recording)?;
    let failed = |error| StoreError::Write { source: error };
    let mut encoder = zstd::stream::write::Encoder::new(out, LEVEL).map_err(failed)?;
    encoder.include_checksum(true).map_err(failed)?;
    let mut bytes = 0;
    for name in names(&info) {
        let read = |error| StoreError::io("read", recording.join(name), error);
        let (file, length) = manifest::open_file(&directory, recording, name)?;
        let header = Header {
            name: name.to_owned(),
            bytes: length,
        };
        let Some(block) = header.to_block() else {
            let long = io::Error::new(io::ErrorKind::InvalidInput, "the file name is too long");
            return Err(read(long));
        };
        encoder.write_all(&block).map_err(failed)?;
        let mut file = file.take(length);
        let mut buffer = vec![0; COPY_BYTES];
        let mut left = length;
        while left > 0 {
            let count = file.read(&mut buffer).map_err(read)?;
            if count == 0 {
                return Err(read(io::ErrorKind::UnexpectedEof.into()));
            }
            encoder.write_all(&buffer[..count]).map_err(failed)?;
            left -= count as u64;
        }
        let rest = padding(length);
        encoder.write_all(&[0; BLOCK][..rest]).map_err(failed)?;
        bytes += (BLOCK + rest) as u64 + length;
    }
    encoder.write_all(&[0; 2 * BLOCK]).map_err(failed)?;
    let mut out = encoder.finish().map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(bytes + 2 * BLOCK as u64)
}

/// Files that describe the others come first.
fn names(info: &RecordingInfo) -> impl Iterator<Item = &str> {
    let tables = info.tables.values();
    let mut files: Vec<&str> = tables
        .flat_map(|table| table.files.iter().chain(&table.long_files))
        .map(String::as_str)
        .collect();
    files.sort_unstable();
    [manifest::FILE_NAME, checksums::FILE_NAME]
        .into_iter()
        .chain(files)
}

/// Bytes from an end to the next block boundary.
pub(super) fn padding(bytes: u64) -> usize {
    ((BLOCK as u64 - bytes % BLOCK as u64) % BLOCK as u64) as usize
}
