//! Writes blocks, each immediately, so that written ones stay readable whatever happens next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use whyslow_model::spool::FILE_SUFFIX;

use crate::packed::Packed;

/// Kind of a block: part of the remaining space is reserved for some kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockClass {
    Records,
    Names,
    End,
}

/// A spool that is being written.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: File,
    number: u64,
    scratch: Vec<u8>,
    /// Size of the files, and its limit.
    pub(crate) bytes: u64,
    bytes_max: u64,
}

/// Space reserved for the records that end the spool, and for symbols before them.
const END_BYTES: u64 = 4 << 10;
const NAMES_BYTES_MAX: u64 = 1 << 20;

impl SpoolWriter {
    /// Readable only by the owner: a spool holds what every user of the machine did.
    pub(crate) fn create(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(format!("000001{FILE_SUFFIX}")))?;
        Ok(Self {
            file,
            number: 0,
            scratch: Vec::new(),
            bytes: 0,
            bytes_max,
        })
    }

    /// Whether the block fits, with the space reserved for later kinds.
    pub(crate) fn fits(&self, block: &Packed, kind: BlockClass) -> bool {
        let reserved = match kind {
            BlockClass::Records => (self.bytes_max / 16).clamp(2 * END_BYTES, NAMES_BYTES_MAX),
            BlockClass::Names => END_BYTES,
            BlockClass::End => 0,
        };
        let limit = self.bytes_max.saturating_sub(reserved);
        self.bytes.saturating_add(block.bytes()) <= limit
    }

    pub(crate) fn write(&mut self, block: &Packed) -> io::Result<()> {
        self.scratch.clear();
        block.append_to(&mut self.scratch, self.number);
        self.file.write_all(&self.scratch)?;
        self.number += 1;
        self.bytes += self.scratch.len() as u64;
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
