//! Positioned reads for the Parquet reader.
//!
//! A mapped file that is cut short under us kills the program; a shared file offset forbids reading
//! on several threads. So every read names its place, and none asks for more than the file has.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Enough for a page header and most small pages.
const HEADER_BYTES: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct PreadFile {
    file: Arc<File>,
    bytes: u64,
}

impl PreadFile {
    pub(crate) fn new(file: File, bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            bytes,
        }
    }
}

impl Length for PreadFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for PreadFile {
    type T = BufReader<Positioned>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let positioned = Positioned {
            file: Arc::clone(&self.file),
            at: start,
        };
        Ok(BufReader::with_capacity(HEADER_BYTES, positioned))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at byte {start} reach beyond the end at {}",
                self.bytes
            )));
        }
        let mut content = vec![0; length];
        self.file.read_exact_at(&mut content, start)?;
        Ok(content.into())
    }
}

/// A place in a file.
pub(crate) struct Positioned {
    file: Arc<File>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
