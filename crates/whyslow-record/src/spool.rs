//! Writes blocks: each at once, so that what was written stays readable whatever happens next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use whyslow_model::spool::{Block, Encoder, FILE_SUFFIX};

/// Fast, and half of the bytes.
const COMPRESSION: i32 = 1;

/// A spool that is being written.
pub(crate) struct SpoolWriter {
    file: File,
    number: u64,
    compressor: zstd::bulk::Compressor<'static>,
    scratch: Vec<u8>,
    /// Bytes in the files.
    pub(crate) bytes: u64,
    /// Bytes of records.
    pub(crate) record_bytes: u64,
    pub(crate) records: u64,
    /// Up to when the blocks so far tell everything.
    complete_until: u64,
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
            compressor: zstd::bulk::Compressor::new(COMPRESSION)?,
            scratch: Vec::new(),
            bytes: 0,
            record_bytes: 0,
            records: 0,
            complete_until: 0,
        })
    }

    /// Writes what the encoder holds as one block, and empties it.
    pub(crate) fn write(&mut self, encoder: &mut Encoder, complete_until: u64) -> io::Result<()> {
        self.write_block(encoder.payload(), encoder.records(), complete_until)?;
        encoder.clear();
        Ok(())
    }

    /// Names of addresses, in a block of their own, so that they can be found without the others.
    pub(crate) fn write_names(&mut self, names: &mut Encoder) -> io::Result<()> {
        let until = self.complete_until;
        self.put(names.payload(), names.records(), (until, true))?;
        names.clear();
        Ok(())
    }

    pub(crate) fn write_block(
        &mut self,
        payload: &[u8],
        records: u32,
        complete_until: u64,
    ) -> io::Result<()> {
        self.complete_until = complete_until;
        self.put(payload, records, (complete_until, false))
    }

    fn put(
        &mut self,
        payload: &[u8],
        records: u32,
        (complete_until, has_names): (u64, bool),
    ) -> io::Result<()> {
        let compressed = self.compressor.compress(payload)?;
        let is_compressed = compressed.len() < payload.len();
        let stored = if is_compressed { &compressed } else { payload };
        let mut block = Block {
            number: self.number,
            complete_until,
            payload_bytes: stored.len() as u32,
            record_bytes: payload.len() as u32,
            records,
            is_compressed,
            has_names,
            crc: 0,
        };
        let head = block.head();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(stored);
        block.crc = crc.finalize();
        self.scratch.clear();
        self.scratch.extend(head);
        self.scratch.extend(block.crc.to_le_bytes());
        self.scratch.extend_from_slice(stored);
        self.file.write_all(&self.scratch)?;
        self.number += 1;
        self.bytes += self.scratch.len() as u64;
        self.record_bytes += payload.len() as u64;
        self.records += u64::from(records);
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
