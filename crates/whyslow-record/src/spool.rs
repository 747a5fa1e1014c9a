//! Writes blocks: each at once, so that what was written stays readable whatever happens next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use whyslow_model::spool::FILE_SUFFIX;

use crate::packed::Packed;

/// A spool that is being written.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: File,
    number: u64,
    scratch: Vec<u8>,
    /// Bytes in the files.
    pub(crate) bytes: u64,
}

impl SpoolWriter {
    /// Only the owner may read it: it holds what everybody on the machine did.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
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
        })
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
