//! Writes blocks: each at once, so that what was written stays readable whatever happens next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use whyslow_model::spool::FILE_SUFFIX;

use crate::packed::Packed;

/// What a block is for: of the room that is left not all is for everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
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
    /// Bytes in the files, and how many there may be.
    pub(crate) bytes: u64,
    bytes_max: u64,
}

/// Room that is kept for the end: for what has to be said there, and for names of addresses before it.
const END_BYTES: u64 = 4 << 10;
const NAMES_BYTES_MAX: u64 = 1 << 20;

impl SpoolWriter {
    /// Only the owner may read it: it holds what everybody on the machine did.
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

    /// Whether the block fits, with what has to come after blocks of its kind.
    pub(crate) fn has_room(&self, block: &Packed, kind: Room) -> bool {
        let reserved = match kind {
            Room::Records => (self.bytes_max / 16).clamp(2 * END_BYTES, NAMES_BYTES_MAX),
            Room::Names => END_BYTES,
            Room::End => 0,
        };
        let room = self.bytes_max.saturating_sub(reserved);
        self.bytes.saturating_add(block.bytes()) <= room
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
