//! Positioned reads for the Parquet reader.
//!
//! Truncating a mapped file would kill the program with SIGBUS, and a shared file offset would
//! prevent reading from several threads. So every read specifies its offset, and stays within the
//! file size. Reads cover whole blocks, because these have checksums.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::checksums::{BLOCK_BYTES, Checksums};

/// Enough for a page header.
const HEADER_BYTES: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct PreadFile {
    file: Arc<File>,
    checksums: Arc<Checksums>,
}

impl PreadFile {
    /// The checksums also determine the file size.
    pub(crate) fn new(file: File, checksums: Arc<Checksums>) -> Self {
        Self {
            file: Arc::new(file),
            checksums,
        }
    }

    pub(crate) fn verify(&self) -> Result<()> {
        /// Large pieces, but not the whole file.
        const STEP: u64 = 64 * BLOCK_BYTES;
        let bytes = self.checksums.bytes;
        for begin in (0..bytes).step_by(STEP as usize) {
            self.read_checked(begin, STEP.min(bytes - begin) as usize)?;
        }
        Ok(())
    }

    fn read_checked(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.checksums.bytes;
        let Some(end) = start.checked_add(length as u64).filter(|end| *end <= bytes) else {
            return Err(ParquetError::EOF(format!(
                "a read of {length} bytes at byte {start} exceeds the size of {bytes} bytes"
            )));
        };
        let first = start / BLOCK_BYTES;
        let begin = first * BLOCK_BYTES;
        let mut content = vec![0; (end.next_multiple_of(BLOCK_BYTES).min(bytes) - begin) as usize];
        self.file.read_exact_at(&mut content, begin)?;
        for (block, content) in (first..).zip(content.chunks(BLOCK_BYTES as usize)) {
            if !self.checksums.fits(block, content) {
                return Err(ParquetError::General(format!(
                    "checksum mismatch in {} bytes at byte {}",
                    content.len(),
                    block * BLOCK_BYTES
                )));
            }
        }
        let skipped = (start - begin) as usize;
        Ok(Bytes::from(content).slice(skipped..skipped + length))
    }
}

impl Length for PreadFile {
    fn len(&self) -> u64 {
        self.checksums.bytes
    }
}

impl ChunkReader for PreadFile {
    type T = BufReader<Positioned>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let positioned = Positioned {
            file: self.clone(),
            at: start,
        };
        Ok(BufReader::with_capacity(HEADER_BYTES, positioned))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.read_checked(start, length)
    }
}

/// A position in a file.
pub(crate) struct Positioned {
    file: PreadFile,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.checksums.bytes.saturating_sub(self.at);
        let length = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let content = self
            .file
            .read_checked(self.at, length)
            .map_err(io::Error::other)?;
        buffer[..length].copy_from_slice(&content);
        self.at += length as u64;
        Ok(length)
    }
}
